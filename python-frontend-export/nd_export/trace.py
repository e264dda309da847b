"""From a module to an ONNX graph in memory, through torch.export."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from . import fake
from .errors import ExportError, ModuleTracker, first_paragraph, where_in_trace, where_raised
from .progress import Progress

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
    with _quiet(), progress.stage("tracing the module"), _user_errors(tracker), tracker.watch():
        program = torch.export.export(module, (), inputs, dynamic_shapes=shapes, strict=False)
    _refuse_state(program)
    with _quiet(), progress.stage("translating to ONNX"), _conversion_errors(program), fake.mode_of(module):
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


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings that are about PyTorch itself."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _user_errors(tracker: ModuleTracker) -> Iterator[None]:
    """Exceptions from the model's own code, as errors that name the module and the line."""
    try:
        yield
    except ExportError as error:
        error.module = tracker.path() or error.module
        error.where = error.where or where_raised(error)
        raise
    except Exception as error:
        text = first_paragraph(str(error)) or type(error).__name__
        remedy = None
        if "data-dependent" in text:
            remedy = "the code branches on values of tensors, which a graph cannot; use torch.where or fix it in config"
        elif "Constraints violated" in text or "specialized" in text:
            remedy = (
                "the code treats some sizes apart; give the symbol a smaller limit (nd-export hf --max-seq, limits=...), "
                "or leave it out of dynamic_shapes"
            )
        where = where_raised(error) or where_in_trace(str(error))
        raise ExportError(f"torch.export failed: {text}", tracker.path(), where, remedy) from error


@contextlib.contextmanager
def _conversion_errors(program) -> Iterator[None]:
    """A failed translation to ONNX, as an error that names the operation, its module and its line."""
    try:
        yield
    except torch.onnx.OnnxExporterError as error:
        chain, cause = [], error
        while cause is not None:
            chain.append(cause)
            cause = cause.__cause__
        text = first_paragraph(str(chain[-1]))
        named = re.search(r"translating node %(\w+)", " ".join(map(str, chain)))
        node = next((n for n in program.graph.nodes if named and n.name == named.group(1)), None)
        scopes = list((node.meta.get("nn_module_stack") or {}).values()) if node else []
        module = str(scopes[-1][0]) if scopes else None
        raise ExportError(
            f"torch.onnx cannot translate an operation: {text}",
            module,
            where_in_trace(node.meta.get("stack_trace")) if node else None,
            "write that line with other PyTorch operations, or choose a config that avoids it",
        ) from error


def _refuse_state(program) -> None:
    """The translation to ONNX silently drops updates of buffers: refuse a graph with any."""
    buffers = program.graph_signature.inputs_to_buffers
    for node in program.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        arguments = list(zip(node.target._schema.arguments, node.args, strict=False))
        written = [a for s, a in arguments if s.alias_info is not None and s.alias_info.is_write]
        if node.target is torch.ops.aten.batch_norm.default and node.args[5]:
            written += node.args[3:5]
        for argument in written:
            if isinstance(argument, torch.fx.Node) and argument.name in buffers:
                scopes = list((node.meta.get("nn_module_stack") or {}).values())
                raise ExportError(
                    f"forward updates the buffer '{buffers[argument.name]}', and nd has no state besides parameters",
                    str(scopes[-1][0]) if scopes else None,
                    where_in_trace(node.meta.get("stack_trace")),
                    "use a module without running statistics (LayerNorm instead of BatchNorm), or put it in eval()",
                )


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
