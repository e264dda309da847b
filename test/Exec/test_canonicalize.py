"""Canonicalization changes no value: random graphs of data movement, reductions and contractions of small whole numbers, whose
sums are exact in any order, give the same bits before and after."""

import math
import random

import torch
from interpreter import parse_block
from interpreter import run as interpret
from support import run

GRAPHS = 150


def type_of(shape):
    return "tensor<" + "".join(f"{size}x" for size in shape) + "f32>"


class Graph:
    """A function of random operations. Values are (name, shape); operations read one of the `recent` last."""

    recent = 8

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.values = [], []
        shapes = [[self.random.choice([1, 2, 3, 4]) for _ in range(self.random.randint(0, 3))] for _ in range(3)]
        self.inputs = [
            torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed)).float() for shape in shapes
        ]
        self.values = [(f"%a{i}", shape) for i, shape in enumerate(shapes)]
        self.zero = self.add("arith.constant dense<0.0>", [], "{result}")
        self.two = self.add("arith.constant dense<2.0>", [], "{result}")
        makers = self.makers()
        while len(self.lines) < 16:
            name, shape = self.random.choice(self.values[-self.recent :])
            large = math.prod(shape) > 300 or len(shape) > 5
            self.random.choice([self.slice, self.reduce] if large else makers)(name, shape)

    def makers(self):
        makers = [self.broadcast, self.reshape, self.transpose, self.slice, self.pad, self.concat, self.split]
        return makers + [self.padded_sum, self.reduce, self.contract, self.sum, self.constant]

    def text(self, name, attributes=""):
        returned = [self.values[-1], *self.random.sample(self.values[3:], 3)]
        types = ", ".join(type_of(shape) for _, shape in returned)
        arguments = ", ".join(f"%a{i}: {type_of(x.shape)}{attributes}" for i, x in enumerate(self.inputs))
        names = ", ".join(value for value, _ in returned)
        body = "\n".join(self.lines)
        return f"func.func @{name}({arguments}) -> ({types}) {{\n{body}\nreturn {names} : {types}\n}}\n"

    def add(self, operation, shape, types):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {operation} : {types.format(result=type_of(shape))}")
        self.values.append((name, list(shape)))
        return name

    def like(self, shape, dim):
        """Values that differ from a shape in one dimension at most."""
        return [
            (v, s)
            for v, s in self.values
            if len(s) == len(shape) and s[:dim] + s[dim + 1 :] == shape[:dim] + shape[dim + 1 :]
        ]

    def broadcast(self, x, shape):
        rank = len(shape) + self.random.randint(0, 2)
        dims = sorted(self.random.sample(range(rank), len(shape)))
        result = [shape[dims.index(d)] if d in dims else self.random.choice([1, 2, 3]) for d in range(rank)]
        self.add(f"nd.broadcast {x} dims = {dims}", result, type_of(shape) + " -> {result}")

    def reshape(self, x, shape):
        result = [math.prod(shape[:1]), *shape[2:], *shape[1:2]] if math.prod(shape[1:2]) == 1 else [math.prod(shape)]
        result.insert(self.random.randint(0, len(result)), 1)
        self.add(f"nd.reshape {x}", result, type_of(shape) + " -> {result}")

    def transpose(self, x, shape):
        order = self.random.sample(range(len(shape)), len(shape))
        self.add(f"nd.transpose {x} permutation = {order}", [shape[d] for d in order], type_of(shape) + " -> {result}")

    def slice(self, x, shape):
        starts = [self.random.randrange(size) if self.random.random() < 0.6 else 0 for size in shape]
        strides = [self.random.choice([1, 1, 2]) for _ in shape]
        most = [(n - 1 - start) // stride + 1 for n, start, stride in zip(shape, starts, strides, strict=True)]
        result = [n if self.random.random() < 0.5 else self.random.randint(1, n) for n in most]
        self.add(f"nd.slice {x} starts = {starts} strides = {strides}", result, type_of(shape) + " -> {result}")

    def pad(self, x, shape):
        low, high, gaps = ([self.random.choice([0, 0, 0, 1, 2]) for _ in shape] for _ in range(3))
        result = [a + b + n + (n - 1) * g for a, b, n, g in zip(low, high, shape, gaps, strict=True)]
        value = self.random.choice([self.zero, self.zero, self.two])
        types = type_of(shape) + ", tensor<f32> -> {result}"
        self.add(f"nd.pad {x}, {value} low = {low} high = {high} interior = {gaps}", result, types)

    def join(self, parts, dim):
        result = list(parts[0][1])
        result[dim] = sum(shape[dim] for _, shape in parts)
        types = ", ".join(type_of(shape) for _, shape in parts) + " -> {result}"
        self.add(f"nd.concat {', '.join(v for v, _ in parts)} dim = {dim}", result, types)

    def concat(self, x, shape):
        if shape:
            dim = self.random.randrange(len(shape))
            self.join([self.random.choice(self.like(shape, dim)) for _ in range(self.random.randint(1, 3))], dim)

    def split(self, x, shape):
        """Slices of all of a dimension, and sometimes their concatenation."""
        dim = max(range(len(shape)), key=lambda d: shape[d], default=0)
        if not shape or shape[dim] < 2:
            return
        cut, parts = self.random.randrange(1, shape[dim]), []
        for start, end in ((0, cut), (cut, shape[dim])):
            result, starts = list(shape), [0] * len(shape)
            result[dim], starts[dim] = end - start, start
            types = type_of(shape) + " -> {result}"
            parts.append(
                (self.add(f"nd.slice {x} starts = {starts} strides = {[1] * len(shape)}", result, types), result)
            )
        if self.random.random() < 0.5:
            self.join(parts, dim)

    def padded_sum(self, x, shape):
        """The gradient of slices: zero-padded parts, some with gaps or overlaps, added in any order."""
        if not shape:
            return
        dim, none = self.random.randrange(len(shape)), [0] * len(shape)
        parts = [self.random.choice(self.like(shape, dim)) for _ in range(self.random.randint(2, 4))]
        starts, position = [], 0
        for _, part in parts:
            position = max(0, position + self.random.choice([-1, 0, 0, 0, 0, 0, 1]))
            starts.append(position)
            position += part[dim]
        size = max(start + part[dim] for start, (_, part) in zip(starts, parts, strict=True)) + self.random.choice(
            [0, 0, 1]
        )
        result = [size if d == dim else n for d, n in enumerate(shape)]
        terms = [v for v, s in self.values if s == result][: self.random.randint(0, 1)]
        for start, (value, part) in zip(starts, parts, strict=True):
            low, high = list(none), list(none)
            low[dim], high[dim] = start, size - start - part[dim]
            types = type_of(part) + ", tensor<f32> -> {result}"
            terms.append(
                self.add(f"nd.pad {value}, {self.zero} low = {low} high = {high} interior = {none}", result, types)
            )
        self.random.shuffle(terms)
        while len(terms) > 1:
            at = self.random.randrange(len(terms) - 1)
            terms[at : at + 2] = [self.add(f"arith.addf {terms[at]}, {terms[at + 1]}", result, "{result}")]

    def reduce(self, x, shape):
        dims = sorted(self.random.sample(range(len(shape)), self.random.randint(0, len(shape))))
        result = [size for d, size in enumerate(shape) if d not in dims]
        kind = self.random.choice(["sum", "sum", "max", "min"])
        self.add(f"nd.reduce {kind} {x} dims = {dims}", result, type_of(shape) + " -> {result}")

    def contract(self, x, shape):
        y, other = self.random.choice(self.values)
        pairs = [(i, j) for i in range(len(shape)) for j in range(len(other)) if shape[i] == other[j]]
        self.random.shuffle(pairs)
        used, chosen = (set(), set()), ([], [])
        for i, j in pairs:
            if i not in used[0] and j not in used[1] and self.random.random() < 0.7:
                used[0].add(i), used[1].add(j)
                chosen[self.random.random() < 0.7].append((i, j))
        batch, contracted = chosen
        free = [n for d, n in enumerate(shape) if d not in used[0]]
        right = [n for d, n in enumerate(other) if d not in used[1]]
        result = [shape[i] for i, _ in batch] + free + right
        if math.prod(result) > 300 or len(result) > 5:
            return
        text = f"nd.dot_general {x}, {y} "
        text += f"batch = {[i for i, _ in batch]} x {[j for _, j in batch]} " if batch else ""
        text += f"contract = {[i for i, _ in contracted]} x {[j for _, j in contracted]}"
        value = self.add(text, result, f"{type_of(shape)}, {type_of(other)} -> {{result}}")
        first, middle, rank = len(batch), len(batch) + len(free), len(result)
        order = [*range(first), *range(middle, rank), *range(first, middle)]
        types = type_of(result) + " -> {result}"
        self.add(f"nd.transpose {value} permutation = {order}", [result[d] for d in order], types)

    def sum(self, x, shape):
        self.add(f"arith.addf {x}, {self.random.choice([v for v, s in self.values if s == shape])}", shape, "{result}")

    def constant(self, x, shape):
        self.add(f"arith.constant dense<{self.random.choice([0.0, 1.5, -2.0])}>", shape, "{result}")


class TokenGraph(Graph):
    """Chains of operations, with more reshapes that merge neighbours and split them again."""

    recent = 2

    def makers(self):
        return super().makers() + [self.merge, self.merge, self.merge, self.unmerge, self.sum, self.contract]

    def merge(self, x, shape):
        if len(shape) > 1:
            d = self.random.randrange(len(shape) - 1)
            result = [*shape[:d], shape[d] * shape[d + 1], *shape[d + 2 :]]
            self.add(f"nd.reshape {x}", result, type_of(shape) + " -> {result}")

    def unmerge(self, x, shape):
        for d, size in enumerate(shape):
            if size in (4, 6, 8, 9, 12):
                major = 3 if size == 9 else 2
                result = [*shape[:d], major, size // major, *shape[d + 1 :]]
                return self.add(f"nd.reshape {x}", result, type_of(shape) + " -> {result}")


def compare(graphs, passes, attributes=""):
    """The values are the same before and after; returns the functions before and after."""
    text = "".join(graph.text(f"f{i}", attributes) for i, graph in enumerate(graphs))
    generic = "--mlir-print-op-generic"
    before, after = (
        parse_block(iter(run("nd-opt", "-", *passes, generic, stdin=text).splitlines()))[0][0].region
        for passes in ((), passes)
    )
    compared = 0
    for i, (graph, plain, canonical) in enumerate(zip(graphs, before, after, strict=True)):
        expected, got = interpret(plain, graph.inputs), interpret(canonical, graph.inputs)
        if any(value.abs().max() > 2**20 for value in expected):
            continue  # no longer exact
        compared += 1
        for k, (a, b) in enumerate(zip(expected, got, strict=True)):
            assert torch.equal(a, b), f"graph {i}, result {k}:\n{graph.text('f')}"
    assert compared > GRAPHS // 2
    return before, after


def test_random_graphs_keep_their_values():
    before, after = compare([Graph(seed) for seed in range(GRAPHS)], ("--canonicalize", "--cse", "--canonicalize"))
    assert sum(len(f.region) for f in after) < sum(len(f.region) for f in before)


def test_random_graphs_without_merged_tokens_keep_their_values():
    """Every input dimension but the last is of tokens: most merges move."""
    graphs = [TokenGraph(seed) for seed in range(2 * GRAPHS)]
    passes = ("--canonicalize", "--cse")
    _, merged = compare(graphs, passes, ' {nd.kind = "input"}')
    _, unmerged = compare(graphs, ("--canonicalize", "--nd-unmerge-dimensions", *passes), ' {nd.kind = "input"}')
    assert sum(str(a.region) != str(b.region) for a, b in zip(merged, unmerged, strict=True)) > GRAPHS // 2
