"""Data movement: broadcast, reshape, transpose, slice, pad, concat, iota."""

import torch

from .case import Case, Random, t

SHAPES = ((3, 5), (1, 7), (4, 1), (2, 33))


def cases():
    r = Random("structural")
    yield from broadcast(r)
    yield from reshape(r)
    yield from transpose(r)
    yield from slices(r)
    yield from pad(r)
    yield from concat(r)
    for shape, dim in (((3, 5), 1), ((3, 5), 0), ((1, 4, 2), 1)):
        view = [1] * len(shape)
        view[dim] = shape[dim]
        yield Case(
            "nd.iota",
            {},
            f"%r0 = nd.iota dim = {dim} : {t(*shape, dtype='i64')}",
            [t(*shape, dtype="i64")],
            lambda shape=shape, view=view, dim=dim: torch.arange(shape[dim]).reshape(view).expand(shape).contiguous(),
        )


def broadcast(r):
    for source, result, dims in (
        ((5,), (3, 5), [1]),
        ((3,), (3, 5), [0]),
        ((), (2, 1), []),
        ((2, 4), (2, 3, 4), [0, 2]),
    ):
        view = [1] * len(result)
        for d, size in zip(dims, source, strict=True):
            view[d] = size
        yield Case(
            "nd.broadcast",
            {"x": r.f(*source)},
            f"%r0 = nd.broadcast %x dims = {dims} : {t(*source)} -> {t(*result)}",
            [t(*result)],
            lambda x, view=view, result=result: x.reshape(view).expand(result).contiguous(),
            ("x",),
        )


def reshape(r):
    for source, result in (((3, 4), (12,)), ((2, 15), (2, 3, 5)), ((1, 7), (7, 1, 1)), ((2, 3, 4), (6, 4))):
        yield Case(
            "nd.reshape",
            {"x": r.f(*source)},
            f"%r0 = nd.reshape %x : {t(*source)} -> {t(*result)}",
            [t(*result)],
            lambda x, result=result: x.reshape(result),
            ("x",),
        )


def transpose(r):
    for source, p in (((3, 5), [1, 0]), ((2, 3, 4), [0, 2, 1]), ((2, 3, 4, 5), [0, 2, 1, 3]), ((1, 17, 1), [1, 0, 2])):
        result = [source[d] for d in p]
        yield Case(
            "nd.transpose",
            {"x": r.f(*source)},
            f"%r0 = nd.transpose %x permutation = {p} : {t(*source)} -> {t(*result)}",
            [t(*result)],
            lambda x, p=p: x.permute(p).contiguous(),
            ("x",),
        )


def slices(r):
    for source, starts, sizes, strides in (
        ((3, 8), [1, 2], [2, 5], [1, 1]),
        ((4, 9), [0, 1], [4, 4], [1, 2]),
        ((5, 1), [3, 0], [1, 1], [1, 1]),
        ((2, 3, 70), [0, 1, 33], [2, 2, 37], [1, 1, 1]),
    ):
        index = tuple(slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, sizes, strides, strict=True))
        yield Case(
            "nd.slice",
            {"x": r.f(*source)},
            f"%r0 = nd.slice %x starts = {starts} strides = {strides} : {t(*source)} -> {t(*sizes)}",
            [t(*sizes)],
            lambda x, index=index: x[index].contiguous(),
            ("x",),
        )


def pad(r):
    for source, low, high, interior in (
        ((3, 4), [1, 0], [0, 2], [0, 0]),
        ((2, 3), [0, 1], [1, 0], [0, 2]),
        ((2, 4), [0, 1], [0, 2], [0, 0]),
        ((1, 1), [0, 2], [3, 0], [0, 0]),
    ):
        result = [a + n + b + max(n - 1, 0) * i for n, a, b, i in zip(source, low, high, interior, strict=True)]

        def reference(x, v, low=low, interior=interior, result=result):
            out = v.expand(result).clone()
            index = tuple(
                slice(a, a + (n - 1) * (i + 1) + 1, i + 1) for a, n, i in zip(low, x.shape, interior, strict=True)
            )
            out[index] = x
            return out

        yield Case(
            "nd.pad",
            {"x": r.f(*source), "v": r.f()},
            f"%r0 = nd.pad %x, %v low = {low} high = {high} interior = {interior} : {t(*source)}, {t()} -> {t(*result)}",
            [t(*result)],
            reference,
            ("x", "v"),
        )


def concat(r):
    for shapes, dim in ((((2, 3), (2, 5)), 1), (((1, 4), (2, 4), (3, 4)), 0), (((2, 1, 33), (2, 2, 33)), 1)):
        names = [f"x{i}" for i in range(len(shapes))]
        result = list(shapes[0])
        result[dim] = sum(s[dim] for s in shapes)
        yield Case(
            "nd.concat",
            {n: r.f(*s) for n, s in zip(names, shapes, strict=True)},
            f"%r0 = nd.concat {', '.join('%' + n for n in names)} dim = {dim} : {', '.join(t(*s) for s in shapes)} -> {t(*result)}",
            [t(*result)],
            lambda dim=dim, **xs: torch.cat(list(xs.values()), dim),
            tuple(names),
        )
