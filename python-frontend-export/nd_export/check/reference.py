"""The step by transformers: loss, gradients, and every module's output."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch
import transformers

from ..dropout import dropout_off
from ..errors import ExportError
from .batch import Batch


@dataclasses.dataclass
class Step:
    """Loss (mean over tokens), gradients by parameter name (before clipping), and the names of modules as they ran."""

    loss: float
    gradients: dict[str, torch.Tensor]
    order: list[str]

    @property
    def norm(self) -> float:
        """Norm of all gradients together."""
        return float(torch.stack([g.double().norm() for g in self.gradients.values()]).norm())


def load(folder: Path, content: dict, dtype: torch.dtype) -> torch.nn.Module:
    """The model of `folder`, with the trainable flags of the sidecar `content`."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation="eager", local_files_only=True
    )
    ours = content["parameters"]
    for name, parameter in model.named_parameters():
        if name not in ours:
            raise ExportError(f"the export lacks parameter '{name}' of {folder}", remedy="export the folder again")
        parameter.requires_grad_(ours[name]["trainable"])
    return model.train()


def run_step(model: torch.nn.Module, batch: Batch) -> Step:
    """Forward and backward of the mean cross-entropy, without dropout."""
    order: dict[str, None] = {}
    hooks = [
        module.register_forward_pre_hook(lambda *_, name=name: order.setdefault(name))
        for name, module in model.named_modules()
    ]
    with dropout_off(model):
        logits = model(**batch.inputs, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.labels.flatten())
        loss.backward()
    for hook in hooks:
        hook.remove()
    gradients = {
        name: torch.zeros_like(p) if p.grad is None else p.grad
        for name, p in model.named_parameters()
        if p.requires_grad
    }
    return Step(loss.item(), gradients, list(order))


class Outputs:
    """Inside `watch`, remembers the tensor that each module of `model` returns from its first call."""

    def __init__(self, model: torch.nn.Module, names: list[str] | None = None):
        self.tensors: dict[str, torch.Tensor] = {}
        self._modules = {n: m for n, m in model.named_modules() if n and (names is None or n in names)}
        self._hooks: list = []

    def __enter__(self) -> Outputs:
        for name, module in self._modules.items():
            self._hooks.append(module.register_forward_hook(lambda m, i, out, name=name: self._keep(name, out)))
        return self

    def __exit__(self, *_) -> None:
        for hook in self._hooks:
            hook.remove()

    def _keep(self, name: str, out) -> None:
        value = out[0] if isinstance(out, tuple) and out else out
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point and value.ndim >= 2:
            self.tensors.setdefault(name, value)


def module_outputs(model: torch.nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
    """What each module returned (floating-point tensors of rank 2 and more), in the order they finished."""
    with torch.no_grad(), dropout_off(model), Outputs(model) as outputs:
        model(**batch.inputs, use_cache=False)
    return outputs.tensors
