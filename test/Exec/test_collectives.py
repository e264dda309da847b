"""Collectives on the ranks of a 2 x 3 mesh: along each axis and both, small and large."""

import itertools

import pytest
import torch
from support import Program

MESH = 'nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 3, tensor>]'
DIMENSION = {"dp": 0, "tp": 1}  # of the tensors below: one row per coordinate
GROUPS = (("dp",), ("tp",), ("dp", "tp"))
WIDTHS = (1, 7, 50021)


class Function:
    """A function on local tensors [1, 1, ...]: rank (i, j) holds x[i, j] of the global tensors [2, 3, ...]."""

    def __init__(self):
        self.arguments, self.results, self.body, self.inputs, self.expected = [], [], [], {}, {}

    @staticmethod
    def attributes(kind, name, shape):
        sharding = f'nd.sharding = #nd.sharding<@mesh, [{{"dp"}}, {{"tp"}}{", {}" * (len(shape) - 2)}]>'
        sizes = ", ".join(map(str, shape))
        return f'{{nd.kind = "{kind}", nd.name = "{name}", {sharding}, nd.global_shape = array<i64: {sizes}>}}'

    @staticmethod
    def local(value):
        return f"tensor<1x1x{''.join(f'{n}x' for n in value.shape[2:])}f32>"

    def add(self, value, operation, expected):
        """`operation(x, input type, result type, instance)` is the text of one collective."""
        self.add_several([(value, expected)], operation)

    def add_several(self, pairs, operation):
        """The same with several operands and results: pairs of a value and what becomes of it."""
        first = len(self.results)
        for i, (value, expected) in enumerate(pairs, first):
            self.inputs[f"x{i}"], self.expected[f"r{i}"] = value, expected.contiguous()
            self.arguments.append(f"%x{i}: {self.local(value)} {self.attributes('input', f'x{i}', value.shape)}")
            name = f"%r{first}" + (f"#{i - first}" if len(pairs) > 1 else "")
            self.results.append((name, self.local(expected), self.attributes("output", f"r{i}", expected.shape)))
        values = ", ".join(f"%x{i}" for i in range(first, len(self.results)))
        types = [", ".join(self.local(pair[which]) for pair in pairs) for which in (0, 1)]
        count = f":{len(pairs)}" if len(pairs) > 1 else ""
        self.body.append(f"  %r{first}{count} = {operation(values, *types, first)}")

    def add_coordinate(self, axis):
        """This rank's coordinate, as every rank's element of a [2, 3] tensor."""
        i = len(self.results)
        self.arguments.append(f'%c{i}: tensor<i64> {{nd.kind = "coordinate", nd.name = "{axis}"}}')
        self.body.append(f"  %r{i} = nd.broadcast %c{i} dims = [] : tensor<i64> -> tensor<1x1xi64>")
        self.results.append((f"%r{i}", "tensor<1x1xi64>", self.attributes("output", f"r{i}", (2, 3))))
        steps = torch.arange(2)[:, None] if axis == "dp" else torch.arange(3)[None]
        self.expected[f"r{i}"] = steps.expand(2, 3).contiguous()

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

        function.add(x, text, expected)
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
            return f'nd.all_gather {value} {over(axes)} dims = [2] instance = {i} names = ["x{i}"] reason = "test" : {t} -> {r}'

        function.add(x, text, expected)
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
            group = f'{over(axes)} dims = [2] instance = {n} names = ["x{n}"] reason = "test"'
            return f"nd.reduce_scatter sum {value} {group} : {t} -> {r}"

        function.add(x, text, expected)
    check(function, tmp_path)


def test_kinds_in_turn(tmp_path):
    """Gathers and all-reduces of one group, one after the other."""
    function, generator = Function(), torch.Generator().manual_seed(4)

    def gather(value, t, r, i):
        return f'nd.all_gather {value} {over(["dp"])} dims = [2] instance = {i} names = ["x{i}"] reason = "test" : {t} -> {r}'

    def reduce(value, t, _, i):
        return f'nd.all_reduce sum {value} {over(["dp"])} instance = {i} names = ["x{i}"] reason = "test" : {t}'

    for _ in range(3):
        x, y = torch.randn(2, 3, 4, generator=generator), torch.randn(2, 3, 4, generator=generator)
        function.add(x, gather, x.transpose(0, 1).reshape(1, 3, 8).expand(2, 3, 8).contiguous())
        function.add(y, reduce, y.sum(0, keepdim=True).expand(2, 3, 4).contiguous())
    check(function, tmp_path)


def test_all_to_all_and_permute(tmp_path):
    """Over one axis and over both, in the order of the mesh and not."""
    function, generator = Function(), torch.Generator().manual_seed(5)
    for axes in (("dp",), ("tp",), ("dp", "tp"), ("tp", "dp")):
        size = {("dp",): 2, ("tp",): 3}.get(axes, 6)

        def position(i, j, axes=axes):
            return {("dp",): i, ("tp",): j, ("dp", "tp"): 3 * i + j, ("tp", "dp"): 2 * j + i}[axes]

        def rank(p, i, j, axes=axes):
            return {("dp",): (p, j), ("tp",): (i, p), ("dp", "tp"): divmod(p, 3), ("tp", "dp"): divmod(p, 2)[::-1]}[
                axes
            ]

        sources = [(3 * p + 1) % size if size != 3 else (p + 1) % 3 for p in range(size)]
        sources = sources if len(set(sources)) == size else list(range(1, size)) + [0]
        x = torch.randn(2, 3, 7, generator=generator)
        expected = torch.stack(
            [torch.stack([x[rank(sources[position(i, j)], i, j)] for j in range(3)]) for i in (0, 1)]
        )

        def permute(value, t, _, n, axes=axes, sources=sources):
            return (
                f'nd.permute {value} {over(axes)} sources = {sources} instance = {n} name = "x{n}" reason = "t" : {t}'
            )

        function.add(x, permute, expected)
        x = torch.randn(2, 3, 4 * size, 5, generator=generator)
        for split, concat in ((2, 3), (3, 2)):
            y = x if split == 2 else x.transpose(2, 3).contiguous()
            rows = []
            for i, j in itertools.product(range(2), range(3)):
                parts = [y[rank(p, i, j)].chunk(size, split - 2)[position(i, j)] for p in range(size)]
                rows.append(torch.cat(parts, concat - 2))
            expected = torch.stack(rows).reshape(2, 3, *rows[0].shape)

            def exchange(value, t, r, n, axes=axes, split=split, concat=concat):
                dims = f"split_dim = {split} concat_dim = {concat}"
                return (
                    f'nd.all_to_all {value} {over(axes)} {dims} instance = {n} name = "x{n}" reason = "t" : {t} -> {r}'
                )

            function.add(y, exchange, expected)
    check(function, tmp_path, exact=True)


def test_several_operands_and_any_dimension(tmp_path):
    """Gathers and scatters of several tensors in one call, along other dimensions than the first."""
    function, generator = Function(), torch.Generator().manual_seed(6)
    x = torch.randn(2, 3, 4, 5, generator=generator)
    columns = x.transpose(0, 1)  # [3, 2, 4, 5]: the parts of a dp group
    gathered = torch.cat(list(columns.unbind(1)), 2)[None].expand(2, 3, 4, 10)
    function.add_several(
        [(x, gathered), (x + 1, torch.cat(list((columns + 1).unbind(1)), 1)[None].expand(2, 3, 8, 5))],
        lambda values, t, r, n: (
            f'nd.all_gather {values} {over(["dp"])} dims = [3, 2] instance = {n} names = ["a", "b"] reason = "t" : {t} -> {r}'
        ),
    )
    y, z = torch.randn(2, 3, 4, 6, generator=generator), torch.randn(2, 3, 9, 2, generator=generator)
    scattered = torch.stack(y.sum(1).chunk(3, 2), 1)
    function.add_several(
        [(y, scattered), (z, torch.stack(z.sum(1).chunk(3, 1), 1))],
        lambda values, t, r, n: (
            f'nd.reduce_scatter sum {values} {over(["tp"])} dims = [3, 2] instance = {n} names = ["a", "b"] reason = "t" : '
            f"{t} -> {r}"
        ),
    )
    check(function, tmp_path)


def test_all_slice_and_coordinates(tmp_path):
    """A rank's part of a tensor, and its coordinates as arguments."""
    function = Function()
    x = torch.arange(2 * 3 * 4 * 6, dtype=torch.float32).reshape(1, 1, 4 * 2, 18).expand(2, 3, 8, 18).contiguous()
    rows = torch.stack([torch.stack([x[i, j].chunk(3, 1)[j] for j in range(3)]) for i in range(2)])

    def cut(value, t, r, n):
        return f'nd.all_slice {value} {over(["tp"])} dim = 3 instance = {n} name = "x" reason = "t" : {t} -> {r}'

    function.add(x, cut, rows)
    both = torch.stack([torch.stack([x[i, j].chunk(6, 1)[2 * j + i] for j in range(3)]) for i in range(2)])

    def cut_both(value, t, r, n):
        return f'nd.all_slice {value} {over(["tp", "dp"])} dim = 3 instance = {n} name = "x" reason = "t" : {t} -> {r}'

    function.add(x, cut_both, both)
    for axis in ("dp", "tp"):
        function.add_coordinate(axis)
    check(function, tmp_path, exact=True)


def test_names_of_groups(tmp_path):
    """Metrics and reports name a group by whole axes, in the order of the mesh; a minor part of one by its size."""
    axes = '#nd.axis<"dp" = 2, replicate>, #nd.axis<"cp" = 1, context>'
    parts = ", ".join(f'#nd.axis<"tp.{i}" = 2, tensor>' for i in range(3))
    groups = {
        ("dp",): "dp",
        ("dp", "cp"): "dp",
        ("tp.0", "tp.1", "tp.2"): "tp",
        ("tp.2", "tp.0", "tp.1", "dp"): "dp+tp",
        ("tp.2",): "tp[2]",
        ("tp.2", "tp.1"): "tp[4]",
        ("tp.0",): "tp.0",
        ("tp.0", "tp.2"): "tp.0+tp.2",
    }
    body = "\n".join(
        f'  %{i} = nd.all_reduce sum %x {over(group)} instance = {i} names = ["x"] reason = "t" : tensor<4xf32>'
        for i, group in enumerate(groups)
    )
    values = ", ".join(f"%{i}" for i in range(len(groups)))
    types = ", ".join(["tensor<4xf32>"] * len(groups))
    text = f"nd.mesh @mesh axes [{axes}, {parts}]\nfunc.func @main(%x: tensor<4xf32>) -> ({types}) {{\n{body}\n"
    program = Program(tmp_path, f"{text}  return {values} : {types}\n}}\n", ranks=16)
    assert [c["group"] for c in program.manifest["collectives"]] == list(groups.values())
