"""Sharding rules by execution: every operation, sharded along every factor that its rule lets pass or sums over, on two or
more ranks beside PyTorch.

The rule says which dimensions of which operands a factor is (`nd-opt -nd-print-sharding-rules`); annotating these and nothing
else makes the operation run on shards. All cases of one operation (of all elementwise ones of a dialect) become one program,
on the smallest number of ranks that some factor's size is a multiple of."""

import collections
import dataclasses
import re

import pytest
import torch
from support import Program, assert_close, run, tensor_type
from test_ops import BY_OP, renamed

RULE = re.compile(r"(\d+):\d+: remark: \((.*)\) -> \((.*)\) \{(.*?)\}(.*)")


@dataclasses.dataclass
class Sharded:
    """A case with the dimension that is sharded, per input."""

    case: object
    dims: dict[str, int]


def printed_rule(case, folder):
    """Per operand the factors of its dimensions; the factors' sizes; those that may be sharded."""
    arguments = ", ".join(f"%{name}: {tensor_type(value)}" for name, value in case.inputs.items())
    lines = [f"func.func @f({arguments}) {{", *case.text.splitlines(), "return", "}"]
    source = folder / "rule.mlir"
    source.write_text("\n".join(lines))
    remarks = run("sh", "-c", f"nd-opt -nd-print-sharding-rules {source} -o /dev/null 2>&1")
    for line, operands, _, sizes, rest in RULE.findall(remarks):
        text = lines[int(line) - 1]
        if case.op not in text:
            continue
        names = re.findall(r"%(\w+)", text.split("=", 1)[1])
        dims = [[d.split("*") for d in t.split(", ") if d] for t in re.findall(r"\[(.*?)\]", operands)]
        extent = {f: int(n) for f, n in (s.split("=") for s in sizes.split(", ") if s)}
        whole = re.search(r"need_replication=\{(.*?)\}", rest)
        return list(zip(names, dims, strict=True)), extent, set(whole.group(1).split(", ")) if whole else set()
    return None


def shardings(case, ranks, folder):
    """The case once for each factor that the ranks can share."""
    rule = printed_rule(case, folder)
    if rule is None:
        return
    operands, extent, whole = rule
    for factor, size in extent.items():
        if size % ranks or factor in whole:
            continue
        places = [(name, d, f) for name, dims in operands for d, f in enumerate(dims) if factor in f]
        # A shard is a contiguous part of a dimension, so the factor has to be its major one; and of an input, to be annotated.
        if places and all(name in case.inputs and f[0] == factor for name, _, f in places):
            dims = {name: d for name, d, _ in places}
            if len(dims) == len({(name, d) for name, d, _ in places}):
                yield Sharded(case, dims)


def module(all_sharded):
    arguments, results, body, returned = [], [], [], []
    for i, sharded in enumerate(all_sharded):
        for name, value in sharded.case.inputs.items():
            axes = ["{}"] * value.ndim
            if name in sharded.dims:
                axes[sharded.dims[name]] = '{"dp"}'
            attributes = (
                f'nd.kind = "input", nd.name = "{name}_{i}", nd.sharding = #nd.sharding<@mesh, [{", ".join(axes)}]>'
            )
            arguments.append(f"%{name}_{i}: {tensor_type(value)} {{{attributes}}}")
        body.append("  " + renamed(sharded.case.text, i))
        for k, kind in enumerate(sharded.case.results):
            results.append(f'{kind} {{nd.kind = "output", nd.name = "r{k}_{i}"}}')
            returned.append((f"%r{k}_{i}", kind))
    values, types = zip(*returned, strict=True)
    return (
        f"func.func @forward({', '.join(arguments)}) -> ({', '.join(results)}) {{\n"
        + "\n".join(body)
        + f"\n  return {', '.join(values)} : {', '.join(types)}\n}}\n"
    )


GROUPS = collections.defaultdict(list)
for _op, _cases in BY_OP.items():
    GROUPS[_op if _op.startswith("nd.") else _op.split(".")[0]] += _cases


# An iota has no operand to annotate; it is sharded with what reads it, in whole programs.
@pytest.mark.parametrize("group", sorted(GROUPS.keys() - {"nd.iota"}))
def test_on_shards(group, tmp_path):
    for ranks in (2, 3, 5, 7):
        all_sharded = [s for case in GROUPS[group] for s in shardings(case, ranks, tmp_path)]
        if all_sharded:
            break
    else:
        pytest.fail("no case has a dimension that ranks can share: add one")
    program = Program(tmp_path, module(all_sharded), "--forward-only", f"--shard=dp{ranks}", ranks=ranks)
    got = program.call({f"{n}_{i}": v.clone() for i, s in enumerate(all_sharded) for n, v in s.case.inputs.items()})
    for i, sharded in enumerate(all_sharded):
        case = sharded.case
        for k, (single, double) in enumerate(zip(case.expected(), case.expected(double=True), strict=True)):
            assert_close(f"{case.op} sharded {sharded.dims} result {k}", got[f"r{k}_{i}"], single, double)


def test_product_of_a_partial_sum_by_a_number(tmp_path):
    """The reduction comes behind the product: nd.scale."""
    x, s = torch.randn(4, 6), torch.randn(())
    text = """
      func.func @forward(%x: tensor<4x6xf32> {nd.kind = "input", nd.name = "x"},
                         %s: tensor<f32> {nd.kind = "input", nd.name = "s"})
          -> (tensor<6xf32> {nd.kind = "output", nd.name = "y"}) {
        %0 = nd.reduce sum %x dims = [0] : tensor<4x6xf32> -> tensor<6xf32>
        %1 = nd.broadcast %s dims = [] : tensor<f32> -> tensor<6xf32>
        %2 = arith.mulf %0, %1 : tensor<6xf32>
        return %2 : tensor<6xf32>
      }"""
    got = Program(tmp_path, text, "--forward-only", "--shard=dp2", ranks=2).call({"x": x, "s": s})["y"]
    assert_close("y", got, x.sum(0) * s, x.double().sum(0) * s.double())
