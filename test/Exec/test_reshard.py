"""Reshards on the ranks: many pairs of shardings in one program, from shards and from partial sums, every element right on
every rank. The unit test of the planner goes through all pairs; here are all of a 2 x 4 mesh and samples of larger ones."""

import itertools
import random

import pytest
import torch
from support import Program

AXES = "abc"


def shardings(axes, rank):
    """Every sharding: per dimension a tuple of axes, and the unreduced axes."""
    found = {(((),) * rank, ())}
    for axis in axes:
        more = set(found)
        for dims, unreduced in found:
            more.add((dims, (*unreduced, axis)))
            for d, place in itertools.product(range(rank), range(len(axes) + 1)):
                if place <= len(dims[d]):
                    more.add(((*dims[:d], (*dims[d][:place], axis, *dims[d][place:]), *dims[d + 1 :]), unreduced))
        found = more
    return sorted(found)


def encoding(dims, unreduced=()):
    def names(list_):
        return "{" + ", ".join(f'"{a}"' for a in list_) + "}"

    partial = f", unreduced = sum {names(unreduced)}" if unreduced else ""
    return f"#nd.sharding<@mesh, [{', '.join(names(d) for d in dims)}]{partial}>"


def tensor(shape, dims, unreduced=()):
    return f"tensor<{''.join(f'{n}x' for n in shape)}f32, {encoding(dims, unreduced)}>"


class Reshards:
    """A function of the global view: an input for each source, a result for each pair."""

    def __init__(self, mesh, shape, pairs):
        self.sizes = dict(zip(AXES, mesh, strict=False))
        self.shape = shape
        self.arguments, self.results, self.body, self.inputs, self.expected = [], [], [], {}, {}
        self.sources = {}
        for source, target in pairs:
            self.add(source, target)

    def source(self, dims, unreduced):
        """A value of that sharding; a partial sum is the sum over a dimension that is sharded."""
        if (dims, unreduced) in self.sources:
            return self.sources[dims, unreduced]
        i = len(self.inputs)
        parts = 1
        for axis in unreduced:
            parts *= self.sizes[axis]
        shape = (parts, *self.shape) if unreduced else self.shape
        held = (unreduced, *dims) if unreduced else dims
        x = torch.randint(-8, 9, shape, generator=torch.Generator().manual_seed(i)).float()
        self.inputs[f"x{i}"] = x
        kind = f'{{nd.kind = "input", nd.name = "x{i}", nd.sharding = {encoding(held)}}}'
        self.arguments.append(f"%x{i}: {tensor(shape, held)} {kind}")
        name, whole = f"%x{i}", x
        if unreduced:
            name, whole = f"%p{i}", x.sum(0)
            types = f"{tensor(shape, held)} -> {tensor(self.shape, dims, unreduced)}"
            self.body.append(f"  {name} = nd.reduce sum %x{i} dims = [0] : {types}")
        self.sources[dims, unreduced] = name, whole
        return name, whole

    def reshard(self, result, value, source, target):
        types = f"{tensor(self.shape, *source)} -> {tensor(self.shape, *target)}"
        self.body.append(
            f'  {result} = nd.reshard {value} instance = {len(self.body)} name = "x" reason = "r" : {types}'
        )

    def add(self, source, target):
        value, whole = self.source(*source)
        i, (dims, unreduced) = len(self.results), target
        self.reshard(f"%r{i}", value, source, target)
        result = f"%r{i}"
        if unreduced:
            result = f"%s{i}"
            self.reshard(result, f"%r{i}", target, (dims, ()))
        self.results.append((result, f'{tensor(self.shape, dims)} {{nd.kind = "output", nd.name = "r{i}"}}'))
        self.expected[f"r{i}"] = (whole, source, target)

    def text(self):
        axes = ", ".join(f'#nd.axis<"{a}" = {n}, replicate>' for a, n in self.sizes.items())
        types = ", ".join(t for _, t in self.results)
        returned = (
            ", ".join(v for v, _ in self.results) + " : " + ", ".join(t.split(" {nd")[0] for _, t in self.results)
        )
        lines = [f"nd.mesh @mesh axes [{axes}]", f"func.func @main({', '.join(self.arguments)}) -> ({types}) {{"]
        return "\n".join([*lines, *self.body, f"  return {returned}", "}"]) + "\n"


CASES = {
    "2x4": ((2, 4), (8, 16), None),
    "2x4-rank3": ((2, 4), (8, 8, 8), 200),
    "4x4": ((4, 4), (16, 16), 120),
    "2x2x2": ((2, 2, 2), (8, 8), 250),
    "2x2x2-rank3": ((2, 2, 2), (8, 8, 8), 250),
    "3x2": ((3, 2), (6, 12), None),
}


@pytest.mark.parametrize("case", CASES)
def test_pairs(case, tmp_path):
    mesh, shape, limit = CASES[case]
    states = shardings(AXES[: len(mesh)], len(shape))
    pairs = [(s, t) for s in states for t in states if s != t and set(t[1]) <= set(s[1])]
    if limit and limit < len(pairs):
        pairs = random.Random(1).sample(pairs, limit)
    ranks = 1
    for size in mesh:
        ranks *= size
    function = Reshards(mesh, shape, pairs)
    passes = ("-nd-verify-sharding", "-nd-partition", "-nd-verify-sharding")
    got = Program(tmp_path, function.text(), *passes, ranks=ranks).call(function.inputs)
    for name, (whole, source, target) in function.expected.items():
        assert torch.equal(got[name], whole), f"{source} -> {target}"
