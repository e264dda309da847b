"""Collectives on the ranks of a 2 x 3 mesh: along each axis and both, small and larger than the transport's chunks."""

import itertools

import pytest
import torch
from support import Program

MESH = 'nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 3, tensor>]'
DIMENSION = {"dp": 0, "tp": 1}  # of the tensors below: one row per coordinate
GROUPS = (("dp",), ("tp",), ("dp", "tp"))
WIDTHS = (1, 7, 50021)


class Function:
    """A function on local tensors [1, 1, n]: rank (i, j) holds x[i, j] of the global tensors [2, 3, n]."""

    def __init__(self):
        self.arguments, self.results, self.body, self.inputs, self.expected = [], [], [], {}, {}

    @staticmethod
    def attributes(kind, name, width):
        sharding = 'nd.sharding = #nd.sharding<@mesh, [{"dp"}, {"tp"}, {}]>'
        shape = f"nd.global_shape = array<i64: 2, 3, {width}>"
        return f'{{nd.kind = "{kind}", nd.name = "{name}", {sharding}, {shape}}}'

    def add(self, value, operation, width, expected):
        """`operation(x, input type, result type)` is the text of one collective."""
        i = len(self.results)
        x, r = f"tensor<1x1x{value.shape[2]}xf32>", f"tensor<1x1x{width}xf32>"
        self.inputs[f"x{i}"], self.expected[f"r{i}"] = value, expected
        self.arguments.append(f"%x{i}: {x} {self.attributes('input', f'x{i}', value.shape[2])}")
        self.results.append((f"%r{i}", r, self.attributes("output", f"r{i}", width)))
        self.body.append(f"  %r{i} = {operation(f'%x{i}', x, r, i)}")

    def text(self):
        types = ", ".join(f"{t} {a}" for _, t, a in self.results)
        returned = ", ".join(v for v, _, _ in self.results) + " : " + ", ".join(t for _, t, _ in self.results)
        body = "\n".join(self.body)
        return (
            f"{MESH}\nfunc.func @main({', '.join(self.arguments)}) -> ({types}) {{\n{body}\n  return {returned}\n}}\n"
        )


def over(axes):
    return "over @mesh [" + ", ".join(f'"{a}"' for a in axes) + "]"


def check(function, folder, exact=False):
    program = Program(folder, function.text(), ranks=6)
    got = program.call(function.inputs)
    for name, expected in function.expected.items():
        if exact:
            assert torch.equal(got[name], expected), name
        else:
            torch.testing.assert_close(got[name], expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
def test_all_reduce(kind, tmp_path):
    function, generator = Function(), torch.Generator().manual_seed(1)
    combine = {"sum": torch.sum, "max": torch.amax, "min": torch.amin}[kind]
    for axes, width in itertools.product(GROUPS, WIDTHS):
        x = torch.randn(2, 3, width, generator=generator)
        expected = combine(x, [DIMENSION[a] for a in axes], keepdim=True).expand(2, 3, width).contiguous()

        def text(value, t, _, i, axes=axes):
            return f'nd.all_reduce {kind} {value} {over(axes)} instance = {i} names = ["x{i}"] reason = "test" : {t}'

        function.add(x, text, width, expected)
    check(function, tmp_path, exact=kind != "sum")


def test_all_gather(tmp_path):
    function, generator = Function(), torch.Generator().manual_seed(2)
    for axes, width in itertools.product(GROUPS, WIDTHS):
        x = torch.randn(2, 3, width, generator=generator)
        rows = {("dp",): x.transpose(0, 1).reshape(1, 3, -1), ("tp",): x.reshape(2, 1, -1)}.get(
            axes, x.reshape(1, 1, -1)
        )
        expected = rows.expand(2, 3, rows.shape[2]).contiguous()

        def text(value, t, r, i, axes=axes):
            return (
                f'nd.all_gather {value} {over(axes)} dim = 2 instance = {i} name = "x{i}" reason = "test" : {t} -> {r}'
            )

        function.add(x, text, rows.shape[2], expected)
    check(function, tmp_path, exact=True)


def test_reduce_scatter(tmp_path):
    function, generator = Function(), torch.Generator().manual_seed(3)
    for axes, width in itertools.product(GROUPS, WIDTHS):
        size = {("dp",): 2, ("tp",): 3}.get(axes, 6)
        x = torch.randn(2, 3, size * width, generator=generator)
        total = x.sum([DIMENSION[a] for a in axes], keepdim=True).expand(2, 3, size * width).reshape(2, 3, size, width)
        i, j = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
        part = {("dp",): i, ("tp",): j}.get(axes, 3 * i + j)
        expected = torch.gather(total, 2, part[..., None, None].expand(2, 3, 1, width)).squeeze(2)

        def text(value, t, r, n, axes=axes):
            group = f'{over(axes)} dim = 2 instance = {n} name = "x{n}" reason = "test"'
            return f"nd.reduce_scatter sum {value} {group} : {t} -> {r}"

        function.add(x, text, width, expected)
    check(function, tmp_path)


def test_kinds_in_turn(tmp_path):
    """Gathers and all-reduces of one group share its slots and counters."""
    function, generator = Function(), torch.Generator().manual_seed(4)

    def gather(value, t, r, i):
        return f'nd.all_gather {value} {over(["dp"])} dim = 2 instance = {i} name = "x{i}" reason = "test" : {t} -> {r}'

    def reduce(value, t, _, i):
        return f'nd.all_reduce sum {value} {over(["dp"])} instance = {i} names = ["x{i}"] reason = "test" : {t}'

    for _ in range(3):
        x, y = torch.randn(2, 3, 4, generator=generator), torch.randn(2, 3, 4, generator=generator)
        function.add(x, gather, 8, x.transpose(0, 1).reshape(1, 3, 8).expand(2, 3, 8).contiguous())
        function.add(y, reduce, 4, y.sum(0, keepdim=True).expand(2, 3, 4).contiguous())
    check(function, tmp_path)
