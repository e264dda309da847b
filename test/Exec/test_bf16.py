"""bf16: operations on bf16 tensors beside PyTorch in f64, and training in mixed precision beside PyTorch's autocast."""

import dataclasses
import functools

import pytest
import torch
from interpreter import Function
from nd_export import testing
from safetensors.torch import load_file
from support import Program, run
from test_definitions import DEFINE
from test_ops import BY_OP, cotangents_of, forward_module, training_module
from training import Settings, assert_near, nd_run, torch_run

# Operations with results or operands that are f32 whatever the others are; --dtype=bf16 covers them below.
MIXED = {
    "nd.adamw",
    "nd.attention",
    "nd.attention_grad",
    "nd.layer_norm",
    "nd.rms_norm",
    "nd.rope",
    "nd.sgd",
    "nd.softmax_cross_entropy",
    "nd.softmax_cross_entropy_grad",
}
# A bf16 has eight significant bits: half a unit in the last place is 2^-9 of the number.
ROUNDING = 2.0**-8


def shortened(case):
    """The case on bf16 tensors, its f64 reference on the same numbers."""
    inputs = {k: v.bfloat16() if v.dtype == torch.float32 else v for k, v in case.inputs.items()}
    results = [r.replace("f32", "bf16") for r in case.results]
    return dataclasses.replace(case, inputs=inputs, text=case.text.replace("f32", "bf16"), results=results)


def close(what, ours, reference, bound):
    """By tensor norm; NaN and infinities in the same places, but for what overflows bf16 alone."""
    if not reference.is_floating_point():
        return
    finite = torch.isfinite(reference) & torch.isfinite(ours)
    assert torch.equal(torch.isnan(ours), torch.isnan(reference)), f"{what}: NaN in other places"
    error = (ours[finite].double() - reference[finite]).norm().item()
    norm = reference[finite].norm().item()
    assert error <= bound * norm + 1e-6, f"{what}: differs by {error:.2e}, its norm is {norm:.2e}"


def float_cases(op):
    return [c for c in BY_OP[op] if any(v.dtype == torch.float32 for v in c.inputs.values())]


@pytest.mark.parametrize("op", sorted(op for op in BY_OP.keys() - MIXED if float_cases(op)))
def test_operation_on_bf16(op, tmp_path):
    """By generated code and by the interpreter of the definitions."""
    cases = [shortened(c) for c in float_cases(op)]
    options = ["--shard=dp1"] if op == "nd.scale" else []
    text = forward_module(cases)
    inputs = {f"{n}_{i}": v for i, c in enumerate(cases) for n, v in c.inputs.items()}
    program = Program(tmp_path, text, "--forward-only", *options).call(inputs)
    defined = iter(Function(run("nd-opt", "-", *DEFINE, stdin=text))(inputs))
    for i, case in enumerate(cases):
        for k, double in enumerate(case.expected(double=True)):
            got, definition = program[f"r{k}_{i}"], next(defined)
            close(f"{op} case {i} result {k} and its definition", got, definition.double(), 2 * ROUNDING)
            close(f"{op} case {i} result {k}", got, double, 4 * ROUNDING)


@pytest.mark.parametrize("op", sorted(op for op, cases in BY_OP.items() if any(c.gradient for c in cases)))
def test_gradient_in_mixed_precision(op, tmp_path):
    """f32 weights whose numbers bf16 holds, through --dtype=bf16: gradients are f32, within a few roundings."""
    cases = [
        dataclasses.replace(
            c, inputs={k: v.bfloat16().float() if v.is_floating_point() else v for k, v in c.inputs.items()}
        )
        for c in BY_OP[op]
        if c.gradient
    ]
    cotangents = cotangents_of(cases)
    options = ("--dtype=bf16", "--optimizer=sgd", "--lr=0", "--clip=0", "--keep-gradients")
    program = Program(tmp_path, training_module(cases, cotangents), *options)
    inputs = {f"{n}_{i}": v for i, c in enumerate(cases) for n, v in c.inputs.items()}
    inputs |= {f"c{k}_{i}": c for i, cs in enumerate(cotangents) for k, c in cs.items()}
    got = program.call(inputs)
    for i, case in enumerate(cases):
        for name, double in case.expected_gradients(cotangents[i], double=True).items():
            ours = got[f"gradient:{name}_{i}"]
            assert ours.dtype == torch.float32
            close(f"{op} case {i} d{name}", ours, double, 8 * ROUNDING)


MODELS = ["gpt2", "llama"]
SETTINGS = Settings(steps=10)


@pytest.fixture(scope="session")
def autocast(exported, tokens):
    """name -> PyTorch's outcome under autocast."""
    return functools.cache(lambda name: torch_run(exported(name) / "hf", tokens[1], SETTINGS, autocast=torch.bfloat16))


@pytest.mark.parametrize("shard", ["dp1", "dp2"])
@pytest.mark.parametrize("name", MODELS)
def test_equals_autocast(name, shard, imported, autocast, tokens, tmp_path):
    """Losses within 1e-2, every gradient's cosine at least 0.999; gradients cross the link in f32."""
    mlir, reference = imported(name, SETTINGS.batch, SETTINGS.seq), autocast(name)
    ours = nd_run(mlir, tokens[0], SETTINGS, tmp_path, shard, options=["--dtype=bf16"])
    assert_near(name, ours, reference)
    if shard == "dp2":
        parameters = sum(w.numel() for w in ours.weights.values())
        assert ours.sent[0]["dp"] == {"all_reduce": 2 * 4 * parameters}


def test_files_keep_their_type(tokens, tmp_path):
    """Weights in bf16 are read into f32, trained there, and saved in bf16 again, or in f32 when asked for."""
    model = testing.tiny_llama().bfloat16()
    model.save_pretrained(tmp_path / "hf")
    run("nd-export", "hf", tmp_path / "hf", "-o", tmp_path / "onnx")
    run("nd-import", tmp_path / "onnx" / "model.onnx", "--batch=2", "--seq=8", "-o", tmp_path / "model.mlir")
    run("nd-opt", "--dtype=bf16", "--lr=1e-3", tmp_path / "model.mlir", "-o", tmp_path / "step.mlir")
    run("nd-compile", tmp_path / "step.mlir", "--target=host", "-o", tmp_path / "prog")
    saved = {}
    for name, options in (("default", []), ("f32", ["--save-dtype=f32"])):
        command = ("nd-run", tmp_path / "prog", "--data", tokens[0], "--data-dtype=uint16", "--no-shuffle", "--steps=3")
        run(*command, "--save", tmp_path / name, *options)
        saved[name] = load_file(tmp_path / name / "model.safetensors")
    start = load_file(tmp_path / "hf" / "model.safetensors")
    assert saved["default"].keys() == saved["f32"].keys() == start.keys()
    for name, weight in saved["f32"].items():
        assert weight.dtype == torch.float32 and saved["default"][name].dtype == torch.bfloat16
        assert torch.equal(weight.bfloat16(), saved["default"][name]), name
        assert not torch.equal(weight, start[name].float()), f"{name} was not trained"
        assert not torch.equal(weight, weight.bfloat16().float()), f"{name} lost its f32"


def test_casts_that_a_model_writes(tmp_path):
    """x.half(), x.bfloat16() and x.double() inside a model run as they are written, whatever --dtype says."""
    text = """
      func.func @forward(%x: tensor<4x8xf32> {nd.kind = "input", nd.name = "x"},
                         %w: tensor<8x8xf32> {nd.kind = "weight", nd.name = "w"})
          -> (tensor<4x8xf32> {nd.kind = "output", nd.name = "y"}, tensor<4x8xf16> {nd.kind = "output", nd.name = "z"}) {
        %xh = arith.truncf %x : tensor<4x8xf32> to tensor<4x8xf16>
        %wh = arith.truncf %w : tensor<8x8xf32> to tensor<8x8xf16>
        %p = nd.dot_general %xh, %wh contract = [1] x [0] : tensor<4x8xf16>, tensor<8x8xf16> -> tensor<4x8xf16>
        %s = nd.softmax %p dim = 1 : tensor<4x8xf16>
        %a = arith.addf %s, %p : tensor<4x8xf16>
        %d = arith.extf %a : tensor<4x8xf16> to tensor<4x8xf64>
        %e = arith.mulf %d, %d : tensor<4x8xf64>
        %z = arith.truncf %e : tensor<4x8xf64> to tensor<4x8xf16>
        %b = arith.truncf %e : tensor<4x8xf64> to tensor<4x8xbf16>
        %y = arith.extf %b : tensor<4x8xbf16> to tensor<4x8xf32>
        return %y, %z : tensor<4x8xf32>, tensor<4x8xf16>
      }"""
    x, w = torch.randn(4, 8), torch.randn(8, 8).bfloat16().float()
    product = x.half() @ w.half()
    square = (product.float().softmax(1).half() + product).double().square()
    for dtype in ("f32", "bf16"):
        got = Program(tmp_path / dtype, text, "--forward-only", f"--dtype={dtype}").call({"x": x, "w": w})
        close("y", got["y"], square.bfloat16().double(), ROUNDING)
        close("z", got["z"], square.half().double(), 2.0**-10)
