"""`nd_export.export`: any torch.nn.Module to an export folder."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from . import dropout as dropouts
from . import fake, graph, sidecar, weights
from .attention import nd_attention_in
from .errors import ExportError
from .parameters import DTYPES, Parameter, blocks, describe
from .progress import Progress
from .trace import Traced, bind, trace
from .version import __version__


@dataclasses.dataclass
class Exported:
    """What an export wrote: `folder`/model.onnx and model.nd.json; `content` is the latter."""

    folder: Path
    content: dict
    nodes: int


@dataclasses.dataclass
class Extra:
    """What the caller knows about a model beyond the module itself; becomes part of the sidecar."""

    weights_dir: Path | None = None
    stored: dict[str, weights.Stored] | None = None  # None: save the module's own weights
    files: list[str] = dataclasses.field(default_factory=list)
    vocab_size: int | None = None
    max_positions: int | None = None
    ignore_index: int = -100


def export(
    module: torch.nn.Module,
    example_inputs: Any,
    path: str | Path,
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    dynamic_shapes: Mapping[str, Mapping[int, str]] | None = None,
    *,
    weights: bool = True,
    dropout: str = "keep",
    limits: Mapping[str, int] | None = None,
    quiet: bool = True,
) -> Exported:
    """Exports `module` for nd: `path`/model.onnx, model.nd.json and, with `weights`, model.safetensors.

    example_inputs   a tensor, a tuple of tensors, or a dict of tensors by argument name of `forward`
    outputs          what the results are, in order: "logits" [B, S, V], "loss_sum" and "loss_count" (scalars: a loss of
                     your own, nd trains on sum / count over all microbatches and ranks), or "output". A mapping gives
                     results names of their own: {"scores": "logits"}. Default: all are outputs.
    dynamic_shapes   sizes that stay symbols: {"input_ids": {0: "batch", 1: "seq"}}; all others are as in the examples.
                     Examples of a symbol need a size of at least 2.
    limits           largest sizes of symbols: {"seq": 1024}
    dropout          "keep", or "off": every dropout probability is 0 in the export

    The module is exported in training mode and left as it was. Names in the graph and the sidecar are its own. Models
    of transformers inside it use nd's attention node.

    Raises ExportError, with module, line of code and remedy, for what cannot be exported.
    """
    progress = Progress(quiet=quiet)
    inputs = bind(module, example_inputs)
    dimensions = _check_dimensions(inputs, dynamic_shapes or {})
    extra = Extra(stored=None if weights and not fake.is_fake(module) else {})
    return export_module(module, inputs, dimensions, limits or {}, Path(path), outputs, dropout, extra, progress)


def export_module(
    module: torch.nn.Module,
    inputs: dict[str, torch.Tensor],
    dimensions: Mapping[str, Mapping[int, str]],
    limits: Mapping[str, int | None],
    folder: Path,
    outputs: Sequence[str] | Mapping[str, str] | None,
    dropout: str,
    extra: Extra,
    progress: Progress,
) -> Exported:
    """The common road of `export` and `nd-export hf`."""
    if dropout not in ("keep", "off"):
        raise ExportError(f"dropout is 'keep' or 'off', not '{dropout}'")
    parameters = describe(module)
    _check_parameters(parameters)
    training = [(m, m.training) for m in module.modules()]
    try:
        module.train()
        off = dropouts.dropout_off(module) if dropout == "off" else contextlib.nullcontext()
        with off, nd_attention_in(module) as plain:
            for name in plain:
                progress.say(f"{name} does not use transformers' attention interface: exported as plain operations")
            traced = trace(module, inputs, dimensions, limits, progress)
    finally:
        for child, was in training:
            child.training = was
    roles = _roles(traced, outputs)
    folder.mkdir(parents=True, exist_ok=True)
    stored = extra.stored
    if stored is None:
        with progress.stage("writing weights"):
            stored = weights.save(module, parameters, folder / "model.safetensors")
    with progress.stage("writing the graph"):
        proto = graph.finish(traced.model, parameters, stored if stored else {}, list(roles), folder)
        content = sidecar.build(
            traced,
            roles,
            parameters,
            stored,
            version=__version__,
            blocks=blocks(module),
            weights_dir=extra.weights_dir,
            files=extra.files,
            ignore_index=extra.ignore_index,
            vocab_size=extra.vocab_size,
            max_positions=extra.max_positions,
        )
        sidecar.write(content, folder)
    return Exported(folder, content, len(proto.graph.node))


def _check_parameters(parameters: Mapping[str, Parameter]) -> None:
    for name, parameter in parameters.items():
        if parameter.dtype not in ("f32", "bf16", "f16"):
            raise ExportError(
                f"parameter '{name}' is {parameter.dtype}; nd trains f32, bf16 and f16",
                parameter.module or None,
                remedy="convert the module, e.g. module.float()",
            )


def _check_dimensions(
    inputs: Mapping[str, torch.Tensor], dimensions: Mapping[str, Mapping[int, str]]
) -> dict[str, dict[int, str]]:
    result: dict[str, dict[int, str]] = {}
    for name, axes in dimensions.items():
        if name not in inputs:
            raise ExportError(f"dynamic_shapes names '{name}', which is not an input", remedy=f"inputs: {list(inputs)}")
        for axis, symbol in axes.items():
            if not isinstance(symbol, str) or not symbol.isidentifier():
                raise ExportError(f"dynamic_shapes of '{name}' has {symbol!r}; symbols are names, such as 'batch'")
            if not 0 <= axis < inputs[name].ndim:
                raise ExportError(f"dynamic_shapes of '{name}' has dimension {axis}; it has {inputs[name].ndim}")
            if inputs[name].shape[axis] < 2:
                raise ExportError(
                    f"the example of '{name}' has size {inputs[name].shape[axis]} in dimension {axis} ('{symbol}')",
                    remedy="give an example of size 2 or more: PyTorch treats sizes 0 and 1 as constants",
                )
        result[name] = dict(axes)
    return result


def _roles(traced: Traced, outputs: Sequence[str] | Mapping[str, str] | None) -> dict[str, str]:
    """Name -> role of each result, checked against what the graph returns."""
    results = traced.outputs
    if outputs is None:
        names = ["output"] if len(results) == 1 else [f"output{i}" for i in range(len(results))]
        outputs = dict.fromkeys(names, "output")
    elif isinstance(outputs, str):
        outputs = {outputs: outputs}
    elif not isinstance(outputs, Mapping):
        if len(set(outputs)) != len(outputs):
            raise ExportError(f"outputs names one result twice: {list(outputs)}", remedy="give a mapping: name -> role")
        outputs = {role: role for role in outputs}
    roles = dict(outputs)
    if len(roles) != len(results):
        raise ExportError(f"forward returns {len(results)} tensors, but outputs names {len(roles)}: {list(roles)}")
    for (name, role), tensor in zip(roles.items(), results, strict=True):
        if role not in sidecar.ROLES:
            raise ExportError(f"output '{name}' has role '{role}'; roles are {', '.join(sidecar.ROLES)}")
        if not isinstance(tensor, torch.Tensor):
            raise ExportError(f"output '{name}' is {type(tensor).__name__}, not a tensor")
        if role in ("loss_sum", "loss_count") and tensor.ndim != 0:
            raise ExportError(
                f"output '{name}' has shape {list(tensor.shape)}; {role} is a scalar",
                remedy="return (sum of losses, number of terms), e.g. with reduction='sum'",
            )
        if role != "loss_count" and not tensor.dtype.is_floating_point and role != "output":
            raise ExportError(f"output '{name}' is {DTYPES.get(tensor.dtype, tensor.dtype)}; {role} is floating-point")
    if sorted(r for r in roles.values() if r.startswith("loss")) not in ([], ["loss_count", "loss_sum"]):
        raise ExportError("a loss is one loss_sum and one loss_count", remedy="return (sum of losses, number of terms)")
    return roles
