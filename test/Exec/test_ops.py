"""Every registered nd operation, executed on random shapes beside PyTorch, and its gradient where it has one.

All cases of one operation become one program, since compiling costs more than running."""

import collections
import re

import pytest
import torch
from ops import CASES
from support import Program, assert_close, run, tensor_type

BY_OP = collections.defaultdict(list)
for _case in CASES:
    BY_OP[_case.op].append(_case)

# Operations that have no definition of their own on one rank, and where they are executed instead.
ELSEWHERE = {
    "nd.kernel": "formed by the lowering of every program here",
    "nd.gemm": "formed by the lowering of nd.dot_general",
    "nd.yield": "the terminator of nd.kernel",
    "nd.microbatch": "test_microbatches.py",
    "nd.accumulate": "test_microbatches.py",
    "nd.repeat": "test_microbatches.py",
    "nd.mesh": "test_collectives.py",
    "nd.all_reduce": "test_collectives.py",
    "nd.all_gather": "test_collectives.py",
    "nd.reduce_scatter": "test_collectives.py",
    "nd.all_to_all": "test_collectives.py",
    "nd.permute": "test_collectives.py",
    "nd.all_slice": "test_collectives.py",
    "nd.as_partial": "the norm of gradients of which some are sharded: test_meshes",
    "nd.reshard": "replaced by collectives in every sharded program",
}
# Operations that partitioning replaces.
GLOBAL_VIEW = {"nd.scale"}


def renamed(text, index):
    """The case's text with its values made unique by the case's number."""
    return re.sub(r"%(\w+)", rf"%\1_{index}", text)


def forward_module(cases):
    """One function that computes all cases; inputs NAME_i, results rK_i."""
    arguments, results, body, returned = [], [], [], []
    for i, case in enumerate(cases):
        for name, value in case.inputs.items():
            arguments.append(f'%{name}_{i}: {tensor_type(value)} {{nd.kind = "input", nd.name = "{name}_{i}"}}')
        body.append("  " + renamed(case.text, i))
        for k, kind in enumerate(case.results):
            results.append(f'{kind} {{nd.kind = "output", nd.name = "r{k}_{i}"}}')
            returned.append((f"%r{k}_{i}", kind))
    values, types = zip(*returned, strict=True)
    return (
        f"func.func @forward({', '.join(arguments)}) -> ({', '.join(results)}) {{\n"
        + "\n".join(body)
        + f"\n  return {', '.join(values)} : {', '.join(types)}\n}}\n"
    )


def training_module(cases, cotangents):
    """The loss sum(result * cotangent) over all cases, as a model whose weights are the inputs to differentiate."""
    arguments, body, total = (
        [],
        ["  %zero = arith.constant dense<0.0> : tensor<f32>", "  %one = arith.constant dense<1> : tensor<i64>"],
        "%zero",
    )
    for i, case in enumerate(cases):
        for name, value in case.inputs.items():
            kind = "weight" if name in case.gradient else "input"
            trainable = ", nd.trainable = true, nd.rank = 2 : i64" if kind == "weight" else ""
            arguments.append(
                f'%{name}_{i}: {tensor_type(value)} {{nd.kind = "{kind}", nd.name = "{name}_{i}"{trainable}}}'
            )
        body.append("  " + renamed(case.text, i))
        for k, c in cotangents[i].items():
            ty, dims = tensor_type(c), list(range(c.ndim))
            arguments.append(f'%c{k}_{i}: {ty} {{nd.kind = "input", nd.name = "c{k}_{i}"}}')
            body.append(f"  %m{k}_{i} = arith.mulf %r{k}_{i}, %c{k}_{i} : {ty}")
            body.append(f"  %s{k}_{i} = nd.reduce sum %m{k}_{i} dims = {dims} : {ty} -> tensor<f32>")
            body.append(f"  %t{k}_{i} = arith.addf {total}, %s{k}_{i} : tensor<f32>")
            total = f"%t{k}_{i}"
    return (
        f'func.func @forward({", ".join(arguments)}) -> (tensor<f32> {{nd.kind = "loss_sum", nd.name = "loss_sum"}}, '
        'tensor<i64> {nd.kind = "loss_count", nd.name = "loss_count"}) {\n'
        + "\n".join(body)
        + f"\n  return {total}, %one : tensor<f32>, tensor<i64>\n}}\n"
    )


def cotangents_of(cases):
    """The gradient of the loss with respect to each differentiable result, by its number, for each case."""
    generator = torch.Generator().manual_seed(7)
    return [
        {
            k: torch.randn(r.shape, generator=generator)
            for k, r in enumerate(c.expected())
            if r.is_floating_point() and (c.through is None or k in c.through)
        }
        for c in cases
    ]


@pytest.mark.parametrize("op", sorted(BY_OP))
def test_forward(op, tmp_path):
    cases = BY_OP[op]
    options = ["--shard=dp1"] if op in GLOBAL_VIEW else []
    program = Program(tmp_path, forward_module(cases), "--forward-only", *options)
    got = program.call({f"{n}_{i}": v for i, c in enumerate(cases) for n, v in c.inputs.items()})
    for i, case in enumerate(cases):
        for k, (single, double) in enumerate(zip(case.expected(), case.expected(double=True), strict=True)):
            assert_close(f"{op} case {i} result {k}", got[f"r{k}_{i}"], single, double)


@pytest.mark.parametrize("op", sorted(op for op, cases in BY_OP.items() if any(c.gradient for c in cases)))
def test_gradient(op, tmp_path):
    cases = [c for c in BY_OP[op] if c.gradient]
    cotangents = cotangents_of(cases)
    options = ("--train", "--optimizer=sgd", "--lr=0", "--clip=0", "--keep-gradients")
    program = Program(tmp_path, training_module(cases, cotangents), *options)
    inputs = {f"{n}_{i}": v for i, c in enumerate(cases) for n, v in c.inputs.items()}
    inputs |= {f"c{k}_{i}": c for i, cs in enumerate(cotangents) for k, c in cs.items()}
    got = program.call(inputs)
    for i, case in enumerate(cases):
        single, double = case.expected_gradients(cotangents[i]), case.expected_gradients(cotangents[i], double=True)
        for name in case.gradient:
            assert_close(f"{op} case {i} d{name}", got[f"gradient:{name}_{i}"], single[name], double[name])


def test_every_operation_is_executed():
    """A newly registered operation needs a case here, or a place where it is executed instead."""
    registered = set(run("nd-opt", "--list-operations").split())
    assert registered, "nd-opt lists no operation"
    missing = {op for op in registered if op.startswith("nd.")} - set(BY_OP) - set(ELSEWHERE)
    assert not missing, f"no executed test for {sorted(missing)}"
