"""Gathers and scatters: take, scatter_add, take_along, scatter_add_along."""

import torch
import torch.nn.functional as F

from .case import Case, Random, t


def cases():
    r = Random("index")
    for rows, width, shape in ((7, 5, (2, 3)), (1, 4, (3,)), (5, 1, (1, 2)), (11, 67, (2, 1, 3))):
        table, ids = r.f(rows, width), r.i(rows, *shape)
        types = f"{t(rows, width)}, {t(*shape, dtype='i64')} -> {t(*shape, width)}"
        for padding in (None, 0):
            attribute = "" if padding is None else f" {{padding_idx = {padding} : i64}}"
            yield Case(
                "nd.take",
                {"table": table, "ids": ids},
                f"%r0 = nd.take %table[%ids]{attribute} : {types}",
                [t(*shape, width)],
                lambda table, ids, padding=padding: F.embedding(ids, table, padding_idx=padding),
                ("table",),
            )
        updates = r.f(*shape, width)
        flat = dict(ids=ids, updates=updates, start=r.f(rows, width))
        yield Case(
            "nd.scatter_add",
            {k: flat[k] for k in ("ids", "updates")},
            f"%r0 = nd.scatter_add %ids, %updates : {t(*shape, dtype='i64')}, {t(*shape, width)} -> {t(rows, width)}",
            [t(rows, width)],
            lambda ids, updates, rows=rows: updates.new_zeros(rows, updates.shape[-1]).index_add(
                0, ids.flatten(), updates.flatten(0, -2)
            ),
            ("updates",),
        )
        yield Case(
            "nd.scatter_add",
            flat,
            f"%r0 = nd.scatter_add %ids, %updates init %start : {t(rows, width)} : {t(*shape, dtype='i64')}, {t(*shape, width)} -> {t(rows, width)}",
            [t(rows, width)],
            lambda ids, updates, start: start.index_add(0, ids.flatten(), updates.flatten(0, -2)),
            ("updates", "start"),
        )
    for shape, count, dim in (((3, 5), 2, 1), ((4, 3), 3, 0), ((2, 33, 1), 4, 1)):
        picked = list(shape)
        picked[dim] = count
        ids = r.i(shape[dim], *picked)
        yield Case(
            "nd.take_along",
            {"x": r.f(*shape), "ids": ids},
            f"%r0 = nd.take_along %x[%ids] dim = {dim} : {t(*shape)}, {t(*picked, dtype='i64')} -> {t(*picked)}",
            [t(*picked)],
            lambda x, ids, dim=dim: torch.gather(x, dim, ids),
            ("x",),
        )
        yield Case(
            "nd.scatter_add_along",
            {"ids": ids, "updates": r.f(*picked)},
            f"%r0 = nd.scatter_add_along %ids, %updates dim = {dim} : {t(*picked, dtype='i64')}, {t(*picked)} -> {t(*shape)}",
            [t(*shape)],
            lambda ids, updates, shape=shape, dim=dim: updates.new_zeros(shape).scatter_add(dim, ids, updates),
            ("updates",),
        )
    yield from copies(r)
    yield Case(  # updates that are a constant
        "nd.scatter_add",
        {"ids": r.i(5, 3)},
        "%one = arith.constant dense<1.0> : tensor<3x2xf32>\n"
        f"%r0 = nd.scatter_add %ids, %one : {t(3, dtype='i64')}, {t(3, 2)} -> {t(5, 2)}",
        [t(5, 2)],
        lambda ids: torch.zeros(5, 2).index_add(0, ids, torch.ones(3, 2)),
    )


def copies(r):
    """Shards of units, of which several are copies of one; before and behind that dimension others."""
    for before, behind, unit, units, groups in (
        ((), (3,), 4, 2, (0, -1, 0, 0, -1, 0)),
        ((2,), (), 1, 3, (1, 0, -1, 0, 0, 1)),
        ((), (5, 2), 3, 1, (0, 2, -1, 0, 1)),
    ):
        shards, count, places = len(groups) // units, max(groups) + 1, unit * units
        dim, stored, summed = len(before), (*before, shards * places, *behind), (*before, count, places, *behind)
        element = torch.tensor(groups).repeat_interleave(unit).reshape(shards, places)
        holds = torch.nn.functional.one_hot(element + 1, count + 1)[..., 1:]  # [shards, places, count]
        attributes = f"dim = {dim} unit = {unit} units = {units} groups = [{', '.join(map(str, groups))}]"

        def sums(x, holds=holds, dim=dim, shards=shards, places=places):
            y = x.unflatten(dim, (shards, places)).movedim((dim, dim + 1), (0, 1))
            return torch.einsum("sp...,spc->cp...", y, holds.to(x.dtype)).movedim((0, 1), (dim, dim + 1))

        def makes(x, holds=holds, dim=dim):
            y = torch.einsum("cp...,spc->sp...", x.movedim((dim, dim + 1), (0, 1)), holds.to(x.dtype))
            return y.movedim((0, 1), (dim, dim + 1)).flatten(dim, dim + 1)

        text, types = "%r0 = nd.{} %x {} : {} -> {}", (t(*stored), t(*summed))
        yield Case(
            "nd.sum_copies", {"x": r.f(*stored)}, text.format("sum_copies", attributes, *types), [types[1]], sums
        )
        types = types[::-1]
        yield Case(
            "nd.make_copies", {"x": r.f(*summed)}, text.format("make_copies", attributes, *types), [types[1]], makes
        )
