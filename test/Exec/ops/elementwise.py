"""Upstream arith and math on tensors, as nd uses them."""

import torch

from .case import Case, Random, t

SHAPES = ((3, 5), (1,), (2, 67))
BINARY = {
    "addf": torch.add,
    "subf": torch.sub,
    "mulf": torch.mul,
    "divf": torch.div,
    "maximumf": torch.maximum,
    "minimumf": torch.minimum,
    "remf": torch.fmod,
}
UNARY = {
    "math.exp": torch.exp,
    "math.expm1": torch.expm1,
    "math.sqrt": torch.sqrt,
    "math.rsqrt": torch.rsqrt,
    "math.log": torch.log,
    "math.log1p": torch.log1p,
    "math.tanh": torch.tanh,
    "math.erf": torch.erf,
    "math.sin": torch.sin,
    "math.cos": torch.cos,
    "math.absf": torch.abs,
    "math.floor": torch.floor,
    "math.ceil": torch.ceil,
    "math.roundeven": torch.round,
    "arith.negf": torch.neg,
}
FLAT = {"math.floor", "math.ceil", "math.roundeven"}  # no gradient flows
POSITIVE = {"math.sqrt", "math.rsqrt", "math.log", "math.log1p", "math.powf"}
INTEGER = {
    "addi": torch.add,
    "subi": torch.sub,
    "muli": torch.mul,
    "andi": torch.bitwise_and,
    "ori": torch.bitwise_or,
    "xori": torch.bitwise_xor,
    "maxsi": torch.maximum,
    "minsi": torch.minimum,
}


def cases():
    r = Random("elementwise")
    yield from scale(r)
    for shape in SHAPES:
        ty = t(*shape)
        for name, function in BINARY.items():
            yield Case(
                f"arith.{name}",
                {"x": r.f(*shape), "y": r.f(*shape)},
                f"%r0 = arith.{name} %x, %y : {ty}",
                [ty],
                lambda x, y, f=function: f(x, y),
                ("x", "y"),
            )
        yield Case(
            "math.powf",
            {"x": r.positive(*shape), "y": r.f(*shape)},
            f"%r0 = math.powf %x, %y : {ty}",
            [ty],
            torch_pow,
            ("x", "y"),
        )
        for name, function in UNARY.items():
            x = r.positive(*shape) if name in POSITIVE else 3 * r.f(*shape)
            yield Case(
                name,
                {"x": x},
                f"%r0 = {name} %x : {ty}",
                [ty],
                lambda x, f=function: f(x),
                () if name in FLAT else ("x",),
            )
        yield Case(
            "arith.select",
            {"c": r.b(*shape), "x": r.f(*shape), "y": r.f(*shape)},
            f"%r0 = arith.select %c, %x, %y : {t(*shape, dtype='i1')}, {ty}",
            [ty],
            lambda c, x, y: torch.where(c, x, y),
            ("x", "y"),
        )
        for predicate, function in (("olt", torch.lt), ("oge", torch.ge), ("oeq", torch.eq)):
            x = r.i(3, *shape).float()
            y = r.i(3, *shape).float()
            yield Case(
                "arith.cmpf",
                {"x": x, "y": y},
                f"%r0 = arith.cmpf {predicate}, %x, %y : {ty}",
                [t(*shape, dtype="i1")],
                lambda x, y, f=function: f(x, y),
            )
        yield from integers(r, shape)


def scale(r):
    for shape in SHAPES:
        yield Case(
            "nd.scale",
            {"x": r.f(*shape), "f": r.f()},
            f"%r0 = nd.scale %x, %f : {t(*shape)}, {t()}",
            [t(*shape)],
            lambda x, f: x * f,
        )


def torch_pow(x, y):
    return torch.pow(x, y)


def integers(r, shape):
    ty = t(*shape, dtype="i64")
    for name, function in INTEGER.items():
        yield Case(
            f"arith.{name}",
            {"x": r.i(9, *shape), "y": r.i(9, *shape)},
            f"%r0 = arith.{name} %x, %y : {ty}",
            [ty],
            lambda x, y, f=function: f(x, y),
        )
    for name, function in (("divsi", lambda x, y: torch.div(x, y, rounding_mode="trunc")), ("remsi", torch.fmod)):
        yield Case(
            f"arith.{name}",
            {"x": r.i(90, *shape) - 45, "y": r.i(9, *shape) + 1},
            f"%r0 = arith.{name} %x, %y : {ty}",
            [ty],
            lambda x, y, f=function: f(x, y),
        )
    yield Case("math.absi", {"x": r.i(90, *shape) - 45}, f"%r0 = math.absi %x : {ty}", [ty], lambda x: x.abs())
    yield Case(
        "math.ipowi",
        {"x": r.i(9, *shape) - 4, "y": r.i(5, *shape)},
        f"%r0 = math.ipowi %x, %y : {ty}",
        [ty],
        torch_pow,
    )
    yield Case(
        "arith.cmpi",
        {"x": r.i(3, *shape), "y": r.i(3, *shape)},
        f"%r0 = arith.cmpi sle, %x, %y : {ty}",
        [t(*shape, dtype="i1")],
        torch_le,
    )
    yield Case(
        "arith.sitofp",
        {"x": r.i(99, *shape) - 50},
        f"%r0 = arith.sitofp %x : {ty} to {t(*shape)}",
        [t(*shape)],
        lambda x: x.to(torch.get_default_dtype()),
    )
    yield Case(
        "arith.fptosi", {"x": 9 * r.f(*shape)}, f"%r0 = arith.fptosi %x : {t(*shape)} to {ty}", [ty], lambda x: x.long()
    )
    yield Case(
        "arith.uitofp",
        {"x": r.b(*shape)},
        f"%r0 = arith.uitofp %x : {t(*shape, dtype='i1')} to {t(*shape)}",
        [t(*shape)],
        lambda x: x.float(),
    )
    yield Case(
        "arith.extui",
        {"x": r.b(*shape)},
        f"%r0 = arith.extui %x : {t(*shape, dtype='i1')} to {ty}",
        [ty],
        lambda x: x.long(),
    )
    yield Case(
        "arith.extsi",
        {"x": r.i(99, *shape).int() - 50},
        f"%r0 = arith.extsi %x : {t(*shape, dtype='i32')} to {ty}",
        [ty],
        lambda x: x.long(),
    )
    yield Case(
        "arith.trunci",
        {"x": r.i(99, *shape)},
        f"%r0 = arith.trunci %x : {ty} to {t(*shape, dtype='i32')}",
        [t(*shape, dtype="i32")],
        lambda x: x.int(),
    )


def torch_le(x, y):
    return x <= y
