"""Evaluates MLIR text of nd, arith and math on torch tensors: an independent reading of what the operations mean.

The text is the generic form (nd-opt --mlir-print-op-generic), one operation a line, regions nested."""

import dataclasses
import re
import struct

import torch

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32, "i1": torch.bool}
OPERATION = re.compile(r'(?:(%\w+)(?::\d+)? = )?"([\w.]+)"\(([^)]*)\)(.*)')
COMPARE = [torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge]  # cmpi; unsigned ones are not used
COMPARE_FLOAT = {1: torch.eq, 2: torch.gt, 3: torch.ge, 4: torch.lt, 5: torch.le, 13: torch.ne}


@dataclasses.dataclass
class Operation:
    name: str
    operands: list[str]
    result: str | None
    attributes: dict[str, str]
    types: list[str]  # of the results
    region: list["Operation"] = dataclasses.field(default_factory=list)
    arguments: list[str] = dataclasses.field(default_factory=list)

    def ints(self, name):
        """A list of integers, empty when absent: array<i64: 1, 2>."""
        return [int(i) for i in re.findall(r"-?\d+", self.attributes.get(name, "").partition(":")[2])]

    def int(self, name):
        return int(self.attributes[name].split(" : ")[0])

    def shape(self, index=0):
        return parse_type(self.types[index])[0]

    def dtype(self, index=0):
        return parse_type(self.types[index])[1]


def parse_type(text):
    dims, element = re.match(r"tensor<((?:\d+x)*)(\w+)", text).groups()
    return [int(d) for d in dims.split("x") if d], TYPES[element]


def split(text, separator=","):
    """Splits at separators outside of brackets and quotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for i, c in enumerate(text):
        if c == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif c in "<([{":
            depth += 1
        elif c in ")]}" or (c == ">" and text[i - 1] != "-"):
            depth -= 1
        elif c == separator and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in [*parts, text[start:].strip()] if part]


def dictionary(text):
    pairs = (entry.partition(" = ") for entry in split(text))
    return {key.strip('"'): value for key, _, value in pairs}


def parse_block(lines):
    """The operations up to the end of a region."""
    operations, arguments = [], []
    for line in lines:
        line = line.strip()
        if line.startswith("^bb"):
            arguments = re.findall(r"(%\w+):", line)
        elif line.startswith("})"):
            return operations, arguments, line[2:]
        elif match := OPERATION.match(line):
            result, name, operands, rest = match.groups()
            operation = Operation(name, split(operands), result, {}, [])
            if rest.startswith(" <{"):
                inner, _, rest = rest[3:].partition("}>")
                operation.attributes = dictionary(inner)
            if rest.endswith("({"):
                operation.region, operation.arguments, rest = parse_block(lines)
            operation.types = split(rest.rpartition(" -> ")[2].removeprefix("(").removesuffix(")"))
            operations.append(operation)
    return operations, arguments, ""


class Function:
    """The function of a module: called with tensors by name, it returns tensors by name."""

    def __init__(self, text):
        (module,) = parse_block(iter(text.splitlines()))[0]
        (self.function,) = module.region
        self.names = self.named("arg_attrs")
        self.results = self.named("res_attrs")

    def named(self, attribute):
        entries = split(self.function.attributes.get(attribute, "[]")[1:-1])
        named = [dictionary(entry[1:-1]) for entry in entries]
        return [(entry.get("nd.kind", "").strip('"'), entry.get("nd.name", "").strip('"')) for entry in named]

    def __call__(self, inputs):
        return run(self.function, [inputs[name] for _, name in self.names])


def run(operation, inputs):
    """The values that the operation's region returns."""
    values = dict(zip(operation.arguments, inputs, strict=True))

    def value(name):
        base, _, index = name.partition("#")
        return values[base][int(index)] if index else values[base]

    for op in operation.region:
        operands = [value(name) for name in op.operands]
        if op.name in ("func.return", "nd.yield"):
            return operands
        results = run(op, operands) if op.name == "nd.kernel" else RULES[op.name](op, *operands)
        results = results if isinstance(results, (tuple, list)) else [results]
        for got, kind in zip(results, op.types, strict=True):
            shape, dtype = parse_type(kind)
            assert list(got.shape) == shape and got.dtype == dtype, (
                f"{op.name} gives {got.shape} {got.dtype}, not {kind}"
            )
        values[op.result] = results[0] if len(results) == 1 else results
    raise AssertionError("a region without a return")


RULES = {}


def rule(*names):
    def register(function):
        RULES.update({name: function for name in names})
        return function

    return register


def elementwise(dialect, functions):
    for name, function in functions.items():
        RULES[f"{dialect}.{name}"] = lambda op, *operands, f=function: f(*operands)


elementwise(
    "arith",
    {
        "addf": torch.add,
        "subf": torch.sub,
        "mulf": torch.mul,
        "divf": torch.div,
        "negf": torch.neg,
        "remf": torch.fmod,
        "maximumf": torch.maximum,
        "minimumf": torch.minimum,
        "addi": torch.add,
        "subi": torch.sub,
        "muli": torch.mul,
        "divsi": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        "remsi": torch.fmod,
        "maxsi": torch.maximum,
        "minsi": torch.minimum,
        "andi": torch.bitwise_and,
        "ori": torch.bitwise_or,
        "xori": torch.bitwise_xor,
        "select": torch.where,
    },
)
elementwise(
    "math",
    {
        "exp": torch.exp,
        "expm1": torch.expm1,
        "log": torch.log,
        "log1p": torch.log1p,
        "sqrt": torch.sqrt,
        "rsqrt": torch.rsqrt,
        "tanh": torch.tanh,
        "erf": torch.erf,
        "sin": torch.sin,
        "cos": torch.cos,
        "floor": torch.floor,
        "ceil": torch.ceil,
        "trunc": torch.trunc,
        "absf": torch.abs,
        "absi": torch.abs,
        "powf": torch.pow,
        "ipowi": torch.pow,
        "roundeven": torch.round,
        "copysign": torch.copysign,
    },
)


@rule("arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.extui", "arith.extsi")
@rule("arith.trunci")
def convert(op, x):
    # A boolean extended with its sign is -1.
    return (
        -x.to(op.dtype()) if op.name in ("arith.extsi", "arith.sitofp") and x.dtype == torch.bool else x.to(op.dtype())
    )


@rule("arith.cmpi")
def cmpi(op, x, y):
    return (
        COMPARE[op.int("predicate")](x.int(), y.int()) if x.dtype == torch.bool else COMPARE[op.int("predicate")](x, y)
    )


@rule("arith.cmpf")
def cmpf(op, x, y):
    predicate = op.int("predicate")
    if predicate in (7, 14):  # ordered, unordered
        unordered = torch.isnan(x) | torch.isnan(y)
        return unordered if predicate == 14 else ~unordered
    if predicate == 6:  # one
        return (x != y) & ~torch.isnan(x) & ~torch.isnan(y)
    if predicate in COMPARE_FLOAT:
        return COMPARE_FLOAT[predicate](x, y)
    return COMPARE_FLOAT[predicate - 7](x, y) | torch.isnan(x) | torch.isnan(y)


@rule("arith.constant")
def constant(op):
    shape, dtype = parse_type(op.types[0])
    text = re.match(r"dense<(.*)> : tensor", op.attributes["value"])[1]
    if text.startswith('"0x'):
        data = bytearray.fromhex(text[3:-1])
        return torch.frombuffer(data, dtype=dtype).clone().reshape(shape)
    numbers = [number(part, dtype) for part in re.findall(r"[^\s,\[\]]+", text)]
    numbers = torch.tensor(numbers, dtype=dtype)
    return numbers[0].expand(shape) if len(numbers) == 1 else numbers.reshape(shape)


def number(text, dtype):
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("0x") and dtype.is_floating_point:
        return struct.unpack(">f" if len(text) == 10 else ">d", bytes.fromhex(text[2:]))[0]
    return float(text) if dtype.is_floating_point else int(text, 0)


@rule("nd.scale")
def scale(op, x, factor):
    return x * factor


@rule("nd.broadcast")
def broadcast(op, x):
    shape, dims = op.shape(), op.ints("dims")
    return x.reshape([size if dim in dims else 1 for dim, size in enumerate(shape)]).expand(shape)


@rule("nd.reshape")
def reshape(op, x):
    return x.reshape(op.shape())


@rule("nd.transpose")
def transpose(op, x):
    return x.permute(op.ints("permutation"))


@rule("nd.slice")
def slice_(op, x):
    for dim, (start, stride, size) in enumerate(zip(op.ints("starts"), op.ints("strides"), op.shape(), strict=True)):
        x = x.index_select(dim, start + stride * torch.arange(size))
    return x


@rule("nd.pad")
def pad(op, x, value):
    if x.ndim == 0:
        return x
    places = zip(op.ints("low"), op.ints("interior"), x.shape, strict=True)
    index = torch.meshgrid(*(low + (gap + 1) * torch.arange(size) for low, gap, size in places), indexing="ij")
    return torch.index_put(value.expand(op.shape()), index, x)


@rule("nd.concat")
def concat(op, *parts):
    return torch.cat(parts, op.int("dim"))


@rule("nd.iota")
def iota(op):
    shape, dim = op.shape(), op.int("dim")
    return (
        torch.arange(shape[dim], dtype=op.dtype())
        .reshape([-1 if d == dim else 1 for d in range(len(shape))])
        .expand(shape)
    )


@rule("nd.reduce")
def reduce(op, x):
    kind, dims = re.search(r"sum|max|min", op.attributes["kind"])[0], op.ints("dims")
    if not dims:
        return x
    if x.dtype == torch.bool:
        return reduce(op, x.int()).bool()
    return {"sum": torch.sum, "max": torch.amax, "min": torch.amin}[kind](x, dim=dims).to(x.dtype)


@rule("nd.dot_general")
def dot_general(op, x, y):
    left, right = list(range(x.ndim)), list(range(x.ndim, x.ndim + y.ndim))
    batch, contract = op.ints("lhs_batch"), op.ints("lhs_contract")
    for a, b in zip(batch + contract, op.ints("rhs_batch") + op.ints("rhs_contract"), strict=True):
        right[b] = left[a]
    used = {left[d] for d in batch + contract}
    free = [d for d in left + right if d not in used]
    # Products of bf16 are summed in f32 and rounded once.
    x, y = (operand.float() if operand.dtype == torch.bfloat16 else operand for operand in (x, y))
    return torch.einsum(x, left, y, right, [left[d] for d in batch] + free).to(op.dtype())


@rule("nd.gemm")
def gemm(op, x, y, *rest):
    x = x.mT if "transpose_lhs" in op.attributes else x
    y = y.mT if "transpose_rhs" in op.attributes else y
    x, y, *rest = (operand.float() if operand.dtype == torch.bfloat16 else operand for operand in (x, y, *rest))
    return sum(rest, x @ y).to(op.dtype())


@rule("nd.take")
def take(op, table, indices):
    return table[indices]


@rule("nd.scatter_add")
def scatter_add(op, indices, updates, init=None):
    start = torch.zeros(op.shape(), dtype=op.dtype()) if init is None else init
    indices = indices.reshape(-1)
    updates = updates.reshape(-1, *op.shape()[1:])
    if "padding_idx" in op.attributes:
        kept = indices != op.int("padding_idx")
        indices, updates = indices[kept], updates[kept]
    return start.index_add(0, indices, updates)


@rule("nd.take_along")
def take_along(op, x, indices):
    return torch.gather(x, op.int("dim"), indices)


@rule("nd.scatter_add_along")
def scatter_add_along(op, indices, updates):
    return torch.zeros(op.shape(), dtype=op.dtype()).scatter_add(op.int("dim"), indices, updates)


@rule("nd.arg_max")
def arg_max(op, x):
    return torch.argmax(x, op.int("dim")).to(op.dtype())


@rule("nd.top_k")
def top_k(op, x):
    values, indices = torch.topk(x, op.shape()[-1], dim=-1)
    return values, indices.to(op.dtype(1))


@rule("nd.cumsum")
def cumsum(op, x):
    dim = op.int("dim")
    x = x.flip(dim) if "reverse" in op.attributes else x
    total = torch.cumsum(x, dim, dtype=x.dtype)
    total = total - x if "exclusive" in op.attributes else total
    return total.flip(dim) if "reverse" in op.attributes else total


@rule("nd.dropout")
def dropout(op, x):
    assert float(op.attributes["p"].split(" : ")[0]) == 0, "dropout is random"
    return x
