"""The definitions themselves, without the back end: every operation's decomposition and gradient rule, canonicalized,
evaluated by an interpreter of the IR and compared with PyTorch. A failure here is the dialect's, not generated code's."""

import pytest
import torch
from interpreter import Function
from support import assert_close, run
from test_ops import BY_OP, cotangents_of, forward_module, training_module

DEFINE = ("--nd-decompose=all", "--canonicalize", "--cse", "--mlir-print-op-generic")
TRAIN = ("--train", "--optimizer=sgd", "--lr=0", "--clip=0", "--keep-gradients")


@pytest.mark.parametrize("op", sorted(BY_OP))
def test_definition(op):
    cases = BY_OP[op]
    function = Function(run("nd-opt", "-", *DEFINE, stdin=forward_module(cases)))
    got = iter(function({f"{n}_{i}": v for i, c in enumerate(cases) for n, v in c.inputs.items()}))
    for i, case in enumerate(cases):
        for k, (single, double) in enumerate(zip(case.expected(), case.expected(double=True), strict=True)):
            assert_close(f"{op} case {i} result {k}", next(got), single, double)


@pytest.mark.parametrize("op", sorted(op for op, cases in BY_OP.items() if any(c.gradient for c in cases)))
def test_gradient_rule(op):
    cases = [c for c in BY_OP[op] if c.gradient]
    cotangents = cotangents_of(cases)
    step = run("nd-opt", "-", *TRAIN, stdin=training_module(cases, cotangents))
    function = Function(run("nd-opt", "-", *DEFINE, stdin=step))
    inputs = {f"{n}_{i}": v for i, c in enumerate(cases) for n, v in c.inputs.items()}
    inputs |= {f"c{k}_{i}": c for i, cs in enumerate(cotangents) for k, c in cs.items()}
    got = dict(zip(function.results, function(inputs | {"lr": torch.tensor(0.0)}), strict=True))
    for i, case in enumerate(cases):
        single, double = case.expected_gradients(cotangents[i]), case.expected_gradients(cotangents[i], double=True)
        for name in case.gradient:
            assert_close(f"{op} case {i} d{name}", got["gradient", f"{name}_{i}"], single[name], double[name])
