"""`model.nd.json`: what ONNX cannot say about a model, for nd-import and for saving weights."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from pathlib import Path

import torch
import transformers

from .parameters import DTYPES, Parameter
from .trace import OPSET, Traced
from .weights import Stored

FORMAT, VERSION = "nd.sidecar", 1
NAME = "model.nd.json"
ROLES = ("logits", "loss_sum", "loss_count", "output")


def task_of(outputs: Mapping[str, str]) -> str:
    """`loss` if a loss is among the results, `causal-lm` if logits are, else `forward`. `outputs`: name -> role."""
    roles = set(outputs.values())
    if "loss_sum" in roles:
        return "loss"
    return "causal-lm" if "logits" in roles else "forward"


def build(
    traced: Traced,
    outputs: Mapping[str, str],
    parameters: Mapping[str, Parameter],
    stored: Mapping[str, Stored],
    *,
    version: str,
    blocks: list[str],
    weights_dir: Path | None = None,
    files: list[str] | None = None,
    ignore_index: int = -100,
    vocab_size: int | None = None,
    max_positions: int | None = None,
) -> dict:
    """The sidecar's content. `weights_dir` None: weights and `files` lie beside the sidecar."""
    inputs = {}
    for name, tensor in traced.inputs.items():
        shape = [traced.dimensions.get(name, {}).get(axis, int(size)) for axis, size in enumerate(tensor.shape)]
        inputs[name] = {"dtype": DTYPES[tensor.dtype], "shape": shape}
    entries = {}
    for name, parameter in parameters.items():
        place = stored.get(name)
        entries[name] = {
            "shape": parameter.shape,
            "dtype": parameter.dtype,
            "rank": len(parameter.shape),
            "trainable": parameter.trainable,
            "module": parameter.module,
            "padding_idx": parameter.padding_idx,
            "aliases": parameter.aliases,
            "file": place.file if place else None,
            "key": place.key if place else None,
        }
        if place and place.dtype != parameter.dtype:
            entries[name]["stored_dtype"] = place.dtype  # the loader converts
    return {
        "format": FORMAT,
        "version": VERSION,
        "producer": {
            "nd_export": version,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
        },
        "opset": OPSET,
        "task": task_of(outputs),
        "inputs": inputs,
        "symbols": {name: {"min": low, "max": high} for name, (low, high) in traced.symbols.items()},
        "outputs": {name: {"role": role} for name, role in outputs.items()},
        "ignore_index": ignore_index,
        "weights_dir": str(weights_dir.resolve()) if weights_dir else None,
        "parameters": entries,
        "blocks": blocks,
        "files": files or [],
        "vocab_size": vocab_size,
        "max_positions": max_positions,
    }


def write(content: dict, folder: Path) -> None:
    """Writes `folder`/model.nd.json, whole or not at all."""
    temporary = folder / (NAME + ".tmp")
    temporary.write_text(json.dumps(content, indent=1) + "\n")
    temporary.replace(folder / NAME)


def read(folder: Path) -> dict:
    """The sidecar of an export folder."""
    return json.loads((folder / NAME).read_text())
