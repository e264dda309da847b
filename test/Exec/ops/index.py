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
    yield Case(  # updates that are a constant
        "nd.scatter_add",
        {"ids": r.i(5, 3)},
        "%one = arith.constant dense<1.0> : tensor<3x2xf32>\n"
        f"%r0 = nd.scatter_add %ids, %one : {t(3, dtype='i64')}, {t(3, 2)} -> {t(5, 2)}",
        [t(5, 2)],
        lambda ids: torch.zeros(5, 2).index_add(0, ids, torch.ones(3, 2)),
    )
