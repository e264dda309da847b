"""Runs an export folder with ONNX's reference evaluator: what the files mean, with no code of nd_export's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


class NdAttention(OpRun):
    """`ai.nd::Attention` by its definition in nd_export/attention.py, in float64."""

    op_domain = "ai.nd"

    def _run(
        self, q, k, v, mask=None, causal=None, scale=None, window=None, softcap=None, dropout=None, mask_kind=None
    ):
        assert dropout == 0.0
        repeat = q.shape[1] // k.shape[1]
        k64, v64 = (np.repeat(x.astype(np.float64), repeat, axis=1) for x in (k, v))
        scores = scale * q.astype(np.float64) @ k64.transpose(0, 1, 3, 2)
        if softcap:
            scores = softcap * np.tanh(scores / softcap)
        distance = np.arange(q.shape[2])[:, None] - np.arange(k.shape[2])[None, :]
        seen = np.ones_like(distance, dtype=bool)
        if causal:
            seen &= distance >= 0
        if window:
            seen &= distance < window
        seen = np.broadcast_to(seen, scores.shape)
        if mask_kind == 1:
            seen = seen & mask[:, None, None, :]
        elif mask_kind == 2:
            seen = seen & mask if mask.dtype == bool else seen
            scores = scores if mask.dtype == bool else scores + mask
        weights = np.exp(np.where(seen, scores, -np.inf) - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return ((weights @ v64).astype(q.dtype),)


def load(folder: Path) -> onnx.ModelProto:
    """The model with its external parameters filled in, from where the graph says their bytes are."""
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    weights = Path(sidecar(folder)["weights_dir"] or folder)
    for node in model.graph.node:
        if node.domain == "ai.nd":  # the evaluator would take the attributes of ONNX's own operator of that name
            node.op_type = f"Nd{node.op_type}"
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            place = {entry.key: entry.value for entry in tensor.external_data}
            with (weights / place["location"]).open("rb") as f:
                f.seek(int(place["offset"]))
                tensor.raw_data = f.read(int(place["length"]))
            tensor.ClearField("external_data")
            tensor.data_location = onnx.TensorProto.DEFAULT
    return model


def graph(folder: Path) -> onnx.GraphProto:
    """The graph as it is in the file."""
    return onnx.load(folder / "model.onnx", load_external_data=False).graph


def sidecar(folder: Path) -> dict:
    """model.nd.json."""
    return json.loads((folder / "model.nd.json").read_text())


def attributes(node: onnx.NodeProto) -> dict:
    """A node's attributes by name."""
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def run(folder: Path, **inputs) -> list[np.ndarray]:
    """The graph's results for `inputs` (torch or numpy)."""
    evaluator = ReferenceEvaluator(load(folder), new_ops=[NdAttention])
    return evaluator.run(None, {name: np.asarray(value) for name, value in inputs.items()})


def tokens(batch: int, seq: int, vocab: int, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random input_ids and the positions 0.. of each token, [batch, seq] int64."""
    ids = torch.randint(vocab, (batch, seq), generator=torch.Generator().manual_seed(seed))
    return {"input_ids": ids, "position_ids": torch.arange(seq).expand(batch, seq)}


def difference(a, b) -> float:
    """|a - b| / |b| by Frobenius norm."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))
