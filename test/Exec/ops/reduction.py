"""Contractions and reductions: dot_general, reduce, arg_max, top_k, cumsum."""

import torch

from .case import Case, Random, t


def cases():
    r = Random("reduction")
    yield from dot_general(r)
    for shape, dims in (
        ((3, 5), [1]),
        ((3, 5), [0]),
        ((2, 3, 4), [0, 1]),
        ((2, 37, 1), [1]),
        ((4, 70), [0, 1]),
        ((1, 1), [1]),
    ):
        result = [n for d, n in enumerate(shape) if d not in dims]
        for kind, function in (("sum", torch.sum), ("max", torch.amax), ("min", torch.amin)):
            yield Case(
                "nd.reduce",
                {"x": r.f(*shape)},
                f"%r0 = nd.reduce {kind} %x dims = {dims} : {t(*shape)} -> {t(*result)}",
                [t(*result)],
                lambda x, f=function, dims=dims: f(x, dims),
                ("x",),
            )
    for shape, dim in (((3, 5), 1), ((3, 5), 0), ((2, 1, 40), 2)):
        result = [n for d, n in enumerate(shape) if d != dim]
        yield Case(
            "nd.arg_max",
            {"x": r.f(*shape)},
            f"%r0 = nd.arg_max %x dim = {dim} : {t(*shape)} -> {t(*result, dtype='i64')}",
            [t(*result, dtype="i64")],
            lambda x, dim=dim: torch.argmax(x, dim),
        )
    for shape, k in (((3, 7), 2), ((1, 5), 5), ((2, 3, 33), 1)):
        result = (*shape[:-1], k)
        yield Case(
            "nd.top_k",
            {"x": r.f(*shape)},
            f"%r0, %r1 = nd.top_k %x : {t(*shape)} -> {t(*result)}, {t(*result, dtype='i64')}",
            [t(*result), t(*result, dtype="i64")],
            lambda x, k=k: tuple(torch.topk(x, k)),
            ("x",),
            (0,),
        )
    for read in (0, 1):  # the other result is not
        yield Case(
            "nd.top_k",
            {"x": r.f(3, 7)},
            f"%r{read}, %other = nd.top_k %x : {t(3, 7)} -> {t(3, 2)}, {t(3, 2, dtype='i64')}".replace(
                "%r1, %other", "%other, %r0"
            ),
            [t(3, 2, dtype="i64" if read else "f32")],
            lambda x, read=read: torch.topk(x, 2)[read],
        )
    for shape, dim in (((3, 5), 1), ((4, 3), 0), ((1, 40), 1)):
        for exclusive in (False, True):
            for reverse in (False, True):

                def reference(x, dim=dim, exclusive=exclusive, reverse=reverse):
                    y = x.flip(dim) if reverse else x
                    total = torch.cumsum(y, dim) - (y if exclusive else 0)
                    return total.flip(dim) if reverse else total

                flags = (" exclusive" if exclusive else "") + (" reverse" if reverse else "")
                yield Case(
                    "nd.cumsum",
                    {"x": r.f(*shape)},
                    f"%r0 = nd.cumsum %x dim = {dim}{flags} : {t(*shape)}",
                    [t(*shape)],
                    reference,
                    ("x",),
                )


def dot_general(r):
    """Shapes of lhs and rhs, batch and contracting dimensions, and the einsum that says the same."""
    for lhs, rhs, batch, contract, einsum in (
        ((3, 4), (4, 5), None, ([1], [0]), "mk,kn->mn"),
        ((3, 4), (5, 4), None, ([1], [1]), "mk,nk->mn"),
        ((4, 3), (4, 5), None, ([0], [0]), "km,kn->mn"),
        ((2, 3, 4), (5, 4), None, ([2], [1]), "abk,nk->abn"),
        ((2, 3, 4), (2, 3, 5), None, ([0, 1], [0, 1]), "abm,abn->mn"),
        ((2, 3, 4), (2, 5, 4), ([0], [0]), ([2], [2]), "bmk,bnk->bmn"),
        ((2, 3, 4, 5), (2, 3, 5, 6), ([0, 1], [0, 1]), ([3], [2]), "abmk,abkn->abmn"),
        ((1, 1), (1, 1), None, ([1], [0]), "mk,kn->mn"),
        ((1, 37), (37, 67), None, ([1], [0]), "mk,kn->mn"),
        ((3, 4), (4,), None, ([1], [0]), "mk,k->m"),
        ((4,), (4, 6), None, ([0], [0]), "k,kn->n"),
        ((3, 2, 4), (2, 5, 4), ([1], [0]), ([2], [2]), "mbk,bnk->bmn"),
    ):
        b = f"batch = {batch[0]} x {batch[1]} " if batch else ""
        x, w = r.f(*lhs), r.f(*rhs)
        result = torch.einsum(einsum, x, w).shape
        yield Case(
            "nd.dot_general",
            {"x": x, "w": w},
            f"%r0 = nd.dot_general %x, %w {b}contract = {contract[0]} x {contract[1]} : {t(*lhs)}, {t(*rhs)} -> {t(*result)}",
            [t(*result)],
            lambda x, w, e=einsum: torch.einsum(e, x, w),
            ("x", "w"),
        )
