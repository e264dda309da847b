"""Models of ten families, exported by nd and by plain torch.onnx.export, import with every composite found and compute
PyTorch's logits."""

import json
import re

import families
import pytest
import torch
from safetensors.torch import load_file, save_file
from support import relative, run

# route -> (attention, positions are an input, symbolic sizes, options)
ROUTES = {
    "sdpa-symbolic": ("sdpa", True, True, {"opset_version": 23, "optimize": False}),
    "sdpa-18": ("sdpa", False, False, {"opset_version": 18, "optimize": False}),
    "eager-23": ("eager", True, False, {"opset_version": 23, "optimize": False}),
    "eager-default": ("eager", False, False, {"opset_version": 18}),
    "sdpa-24": ("sdpa", False, False, {"opset_version": 24}),
}
# Gemma 2 has no sdpa; the other families take one route each, so that every route meets two of them.
PAIRS = [
    (family, route)
    for i, family in enumerate(families.CONFIGS)
    for j, route in enumerate(ROUTES)
    if (route.startswith("eager") if family == "gemma2" else (i + j) % len(ROUTES) == 0)
]


def check(family, folder, given, expected):
    mlir = folder / "model.mlir"
    run("nd-import", folder / "model.onnx", f"--batch={families.BATCH}", f"--seq={families.SEQ}", "-o", mlir)
    text = mlir.read_text()
    norm, norms = families.NORMS.get(family, ("rms_norm", 5))
    counts = {op: len(re.findall(rf"= nd\.{op}\b", text)) for op in ("attention", norm, "rope", "softmax")}
    assert counts == {"attention": 2, norm: norms, "rope": families.ROTATIONS.get(family, 4), "softmax": 0}
    assert "onnx." not in text.replace("model.onnx", "")
    # No mask: neither as an operand nor as a tensor of queries by keys.
    assert "mask(" not in text and f"{families.SEQ}x{families.SEQ}x" not in text
    assert text.count(" causal ") == (0 if family == "bert" else 2)
    run("nd-opt", "--forward-only", mlir, "-o", folder / "step.mlir")
    # Batch and sequence are never merged: no leading dimension is as large as all tokens.
    tokens = families.BATCH * families.SEQ
    assert not re.search(f"<{tokens}x", (folder / "step.mlir").read_text())
    run("nd-compile", folder / "step.mlir", "--target=host", "-o", folder / "prog")
    save_file(given | families.arguments(text, folder), folder / "in.safetensors")
    run("nd-run", folder / "prog", "--call", folder / "in.safetensors", "-o", folder / "out.safetensors")
    results = load_file(folder / "out.safetensors")
    (logits,) = (value for name, value in results.items() if name.startswith("logits:"))
    assert relative(logits, expected) < 1e-5


@pytest.mark.parametrize("family,route", PAIRS)
def test_plain_export(family, route, tmp_path):
    attention, positions, symbolic, options = ROUTES[route]
    positions = positions and family != "opt"
    module = families.export(families.build(family), tmp_path / "model.onnx", attention, positions, symbolic, **options)
    values = families.inputs(positions)
    with torch.no_grad():
        expected = module(*values)
    check(family, tmp_path, dict(zip(("input_ids", "position_ids"), values, strict=False)), expected)


@pytest.mark.parametrize("family", [f for f in families.CONFIGS if f != "bert"])
def test_clean_route(family, tmp_path):
    from nd_export.huggingface import export_hf

    model = families.build(family).eval()
    model.save_pretrained(tmp_path / "hf")
    export_hf(tmp_path / "hf", tmp_path)
    ids, positions = families.inputs(True)
    sidecar = json.loads((tmp_path / "model.nd.json").read_text())
    for name in {entry["file"] for entry in sidecar["parameters"].values()} - {None}:
        if not (tmp_path / name).exists():
            (tmp_path / name).symlink_to(tmp_path / "hf" / name)
    with torch.no_grad():
        expected = (
            model(input_ids=ids, position_ids=positions).logits if family != "opt" else model(input_ids=ids).logits
        )
    check(family, tmp_path, {"input_ids": ids, "position_ids": positions}, expected)
