"""From a module to an ONNX graph in memory, through torch.export."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from . import fake
from .errors import ExportError
from .failures import (
    conversion_errors,
    quiet,
    refuse_dropped_arguments,
    refuse_state,
    refuse_stopped_gradients,
    user_errors,
)
from .progress import Progress
from .where import ModuleTracker

OPSET = 23
# Traced sizes of symbols: primes, so that no size of a model is taken for a symbol's.
_SIZES = (3, 11, 5, 7, 13, 17)


@dataclasses.dataclass
class Traced:
    """`model`: the graph; `symbols`: name -> (min, max or None); `inputs`: name -> example tensor (fake or real)."""

    model: ir.Model
    symbols: dict[str, tuple[int, int | None]]
    inputs: dict[str, torch.Tensor]
    dimensions: dict[str, dict[int, str]]
    outputs: list[torch.Tensor]


def bind(module: torch.nn.Module, example_inputs: Any) -> dict[str, torch.Tensor]:
    """Example inputs (a tensor, a tuple, or a mapping by name) by the names of `forward`'s arguments."""
    if isinstance(example_inputs, Mapping):
        args, kwargs = (), dict(example_inputs)
    else:
        args = tuple(example_inputs) if isinstance(example_inputs, Sequence) else (example_inputs,)
        kwargs = {}
    name = type(module).__name__
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise ExportError(
            f"example_inputs do not fit {name}.forward: {error}",
            remedy="give one example for each argument without a default, in order or by name",
        ) from None
    for argument, value in bound.items():
        if not isinstance(value, torch.Tensor):
            raise ExportError(
                f"input '{argument}' of {name}.forward is {type(value).__name__}, not a tensor",
                remedy="give tensors only, one a named argument; wrap the module to fix other arguments",
            )
    return dict(bound)


def trace(
    module: torch.nn.Module,
    inputs: dict[str, torch.Tensor],
    dimensions: Mapping[str, Mapping[int, str]],
    limits: Mapping[str, int | None],
    progress: Progress,
) -> Traced:
    """Exports `module` called with `inputs`; `dimensions` says which of their sizes are symbols, by name.

    `limits` gives the largest size of a symbol where there is one.
    """
    dims = {s: torch.export.Dim(s, max=limits.get(s)) for d in dimensions.values() for s in d.values()}
    shapes = {name: {axis: dims[s] for axis, s in dimensions.get(name, {}).items()} for name in inputs}
    tracker = ModuleTracker(module)
    with quiet(), progress.stage("tracing the module"), user_errors(tracker), tracker.watch():
        program = torch.export.export(module, (), inputs, dynamic_shapes=shapes, strict=False)
    refuse_state(program)
    refuse_dropped_arguments(program)
    refuse_stopped_gradients(program)
    with quiet(), progress.stage("translating to ONNX"), conversion_errors(program), fake.mode_of(module):
        onnx_program = torch.onnx.export(program, dynamo=True, optimize=False, opset_version=OPSET, verbose=False)
    if onnx_program is None:
        raise ExportError("torch.onnx.export returned no program")
    model = onnx_program.model
    renamed = _rename_symbols(model, dimensions)
    ranges = {renamed[str(s)]: r for s, r in program.range_constraints.items() if str(s) in renamed}
    symbols = {}
    for name in dims:
        upper = getattr(ranges.get(name), "upper", None)
        bounded = upper is not None and upper.is_finite is not False and str(upper).isdigit()
        symbols[name] = (max(1, _integer(getattr(ranges.get(name), "lower", 1))), int(upper) if bounded else None)
    results = [n.meta.get("val") for n in program.graph.output_node().args[0]]
    return Traced(model, symbols, inputs, {k: dict(v) for k, v in dimensions.items()}, results)


def example_size(position: int, limit: int | None) -> int:
    """A size to trace the symbol number `position` with; no symbol has another's, and none has 0 or 1."""
    size = _SIZES[position % len(_SIZES)]
    return size if limit is None else max(2, min(size, limit))


def _integer(bound) -> int:
    return int(bound) if str(bound).lstrip("-").isdigit() else 1


def _rename_symbols(model: ir.Model, dimensions: Mapping[str, Mapping[int, str]]) -> dict[str, str]:
    """torch's s44, s70 become the symbols' own names in all shapes; returns that renaming."""
    names: dict[str, str] = {}
    for value in model.graph.inputs:
        for axis, symbol in dimensions.get(value.name, {}).items():
            if isinstance(value.shape[axis], int):
                raise ExportError(
                    f"the size '{symbol}' of input '{value.name}' became the constant {value.shape[axis]}"
                )
            names[str(value.shape[axis])] = symbol
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b") if names else None

    def renamed(value: ir.Value | None) -> None:
        if value is None or value.shape is None or pattern is None or value.shape.is_static():
            return
        sizes = [d if isinstance(d, int) else pattern.sub(lambda m: names[m.group()], str(d)) for d in value.shape]
        value.shape = ir.Shape(sizes)

    for value in [*model.graph.inputs, *model.graph.outputs]:
        renamed(value)
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        for value in node.outputs:
            renamed(value)
    return names
