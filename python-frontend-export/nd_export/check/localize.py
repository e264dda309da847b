"""Which module is wrong: by the outputs of all modules, or, if only gradients are wrong, by those."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import torch

from ..api import Extra, export_module
from ..errors import ExportError
from ..parameters import describe
from ..progress import Progress
from . import reference
from .batch import Batch
from .compare import Difference, relative
from .toolchain import Toolchain


@dataclasses.dataclass
class Finding:
    """The first wrong module, or None, and how it was found."""

    module: str | None
    method: str
    detail: str


def by_gradients(model: torch.nn.Module, order: list[str], entries: list[Difference], tolerance: float) -> Finding:
    """Backward runs through modules from last to first: the last module, in forward order, with a wrong gradient.

    Sound if the forward is right. All modules that ran after it have right gradients; modules without parameters in
    between are suspects too, and so is every user of a tied parameter.
    """
    method = "gradients alone: the last module in forward order whose gradients differ; all later ones agree"
    wrong = [e.name for e in entries if not e.small(tolerance)]
    owners = {name: name.rpartition(".")[0] for name in wrong}
    ran = [module for module in order if module in owners.values()]
    if not ran:
        return Finding(None, method, f"no module that ran owns {', '.join(wrong[:5])}")
    aliases = {name: p.aliases for name, p in describe(model).items()}
    names = [" = ".join([n, *aliases.get(n, [])]) for n, owner in owners.items() if owner == ran[-1]]
    return Finding(ran[-1], method, f"wrong gradients: {', '.join(names)}")


def by_outputs(
    model: torch.nn.Module, batch: Batch, tools: Toolchain, work: Path, tolerance: float, progress: Progress
) -> Finding:
    """Compiles a second program that returns every module's output, and names the first that differs.

    `model` is transformers' model, in float32, with real weights.
    """
    method = "outputs of all modules, from a second program that returns them (it may be fused otherwise)"
    expected = reference.module_outputs(model, batch)
    names = list(expected)
    folder = work / "probe"
    dimensions = {name: {0: "batch", 1: "seq"} for name in batch.inputs}
    with _outputs_as_results(model, names):
        roles = dict.fromkeys(names, "output")
        export_module(model, batch.inputs, dimensions, {}, folder, roles, "off", Extra(stored={}), progress)
    ours = tools.forward(folder, batch, dict(model.named_parameters()))
    before = "the inputs"
    for name in names:
        if name not in ours:
            raise ExportError(f"the program returns {sorted(ours)[:5]}..., without '{name}'")
        off = relative(ours[name].float(), expected[name].float())
        if off > tolerance:
            kind = type(model.get_submodule(name)).__name__
            return Finding(name, method, f"{kind}: its output differs by {off:.1e}; {before} before it agrees")
        before = name
    return Finding(None, method, f"the outputs of all {len(names)} modules agree")


@contextlib.contextmanager
def _outputs_as_results(model: torch.nn.Module, names: list[str]) -> Iterator[None]:
    """While open, `model(input_ids, position_ids)` returns the outputs of the modules `names`."""
    original = model.forward

    def forward(input_ids, position_ids):
        with reference.Outputs(model, names) as outputs:
            original(input_ids=input_ids, position_ids=position_ids, use_cache=False)
        return tuple(outputs.tensors[name] for name in names)

    model.forward = forward
    try:
        yield
    finally:
        del model.forward
