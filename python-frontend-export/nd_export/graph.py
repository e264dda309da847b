"""Finishing the ONNX graph: parameters by their names and places, symbols by theirs, metadata without local paths."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx
import onnx_ir as ir

from .errors import ExportError
from .parameters import Parameter
from .weights import Stored
from .where import is_machinery, shorten

_ONNX_DTYPES = {
    "f32": onnx.TensorProto.FLOAT,
    "f64": onnx.TensorProto.DOUBLE,
    "bf16": onnx.TensorProto.BFLOAT16,
    "f16": onnx.TensorProto.FLOAT16,
}
_KEPT = {"pkg.torch.onnx.name_scopes", "pkg.torch.onnx.stack_trace"}
_KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
# Constants up to this size are written into the graph, larger ones into model.onnx.data.
INLINE_BYTES = 1 << 20


def finish(
    model: ir.Model,
    parameters: Mapping[str, Parameter],
    stored: Mapping[str, Stored],
    outputs: Sequence[str],
    folder: Path,
) -> onnx.ModelProto:
    """The ONNX model, written to `folder`/model.onnx.

    Each parameter is one initializer under its first name, whatever names the graph used; `stored` says where its bytes
    lie (none: it has no data). `outputs` are the new names of the results, in order.
    """
    graph = model.graph
    _merge_ties(graph, parameters)
    _name_outputs(graph, outputs)
    for node in ir.traversal.RecursiveGraphIterator(graph):
        _clean_metadata(node.metadata_props)
    for value in [*graph.inputs, *graph.outputs]:
        value.metadata_props.clear()
    graph.metadata_props.clear()
    for name in parameters:  # the IR wants values for initializers: these come as protobuf below
        graph.initializers.pop(name, None)
    for name, value in graph.initializers.items():
        if value.const_value is None or (kind := value.metadata_props.get(_KIND)) == "PARAMETER":
            raise ExportError(f"the graph uses '{name}', a parameter that the module does not list", name)
        value.metadata_props.clear()
        if kind is not None:
            value.metadata_props[_KIND] = kind
    proto = ir.to_proto(model)
    proto.producer_name, proto.producer_version = "nd_export", ""
    for name, parameter in parameters.items():
        tensor = proto.graph.initializer.add(name=name, dims=parameter.shape, data_type=_ONNX_DTYPES[parameter.dtype])
        tensor.data_location = onnx.TensorProto.EXTERNAL
        place = stored.get(name)
        if place is not None and place.dtype == parameter.dtype:
            for key, entry in (("location", place.file), ("offset", place.offset), ("length", place.length)):
                tensor.external_data.add(key=key, value=str(entry))
    _move_large_constants(proto, folder)
    temporary = folder / "model.onnx.tmp"
    temporary.write_bytes(proto.SerializeToString())
    temporary.replace(folder / "model.onnx")
    return proto


def _merge_ties(graph: ir.Graph, parameters: Mapping[str, Parameter]) -> None:
    for parameter in parameters.values():
        present = [graph.initializers[n] for n in parameter.names if n in graph.initializers]
        if not present:
            continue
        kept = present[0]
        for other in present[1:]:
            ir.convenience.replace_all_uses_with(other, kept)
            del graph.initializers[other.name]
        if kept.name != parameter.name:
            del graph.initializers[kept.name]
            kept.name = parameter.name
            graph.initializers[parameter.name] = kept


def _name_outputs(graph: ir.Graph, outputs: Sequence[str]) -> None:
    taken = {v.name for node in graph for v in node.outputs} | {v.name for v in graph.inputs}
    for i, (value, name) in enumerate(zip(list(graph.outputs), outputs, strict=True)):
        if value.producer() is None or value in list(graph.outputs)[:i]:
            # An input or parameter returned as it is, or one value under two names.
            node = ir.node("Identity", [value], name=f"node_{name}")
            node.outputs[0].type, node.outputs[0].shape = value.type, value.shape
            graph.append(node)
            value = graph.outputs[i] = node.outputs[0]
        if value.name != name and name in taken:
            clash = next(v for node in graph for v in node.outputs if v.name == name)
            clash.name = f"{name}_inner"
        value.name = name


def _clean_metadata(metadata: dict[str, str]) -> None:
    for key in [k for k in metadata if k not in _KEPT]:
        del metadata[key]
    trace = metadata.get("pkg.torch.onnx.stack_trace")
    if trace:
        metadata["pkg.torch.onnx.stack_trace"] = clean_trace(trace)


def clean_trace(trace: str) -> str:
    """A stack trace with files named from their package on, without the exporter's own frames."""
    frames = re.split(r'(?m)^(?=\s*File ")', trace)
    kept = []
    for frame in frames:
        match = re.match(r'\s*File "([^"]+)"', frame)
        if match is None:
            continue
        if not is_machinery(match.group(1)):
            kept.append(frame.replace(match.group(1), shorten(match.group(1)), 1).rstrip())
    return "\n".join(kept)


def _move_large_constants(proto: onnx.ModelProto, folder: Path) -> None:
    path = folder / "model.onnx.data"
    path.unlink(missing_ok=True)
    large = [t for t in proto.graph.initializer if len(t.raw_data) > INLINE_BYTES]
    if not large:
        return
    with path.open("wb") as f:
        for tensor in large:
            f.seek(-f.tell() % 64, 1)
            for key, entry in (("location", path.name), ("offset", f.tell()), ("length", len(tensor.raw_data))):
                tensor.external_data.add(key=key, value=str(entry))
            f.write(tensor.raw_data)
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
