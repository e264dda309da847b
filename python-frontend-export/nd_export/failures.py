"""What can go wrong in torch.export and torch.onnx, as errors about the user's module and line."""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Iterator

import torch

from .errors import ExportError
from .where import ModuleTracker, first_paragraph, where_in_trace, where_raised


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without what PyTorch logs: warnings about itself, and errors that are raised as well."""
    level = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


@contextlib.contextmanager
def user_errors(tracker: ModuleTracker) -> Iterator[None]:
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
def conversion_errors(program) -> Iterator[None]:
    """A failed translation to ONNX, as an error that names the operation, its module and its line."""
    try:
        yield
    except torch.onnx.OnnxExporterError as error:
        chain, cause = [], error
        while cause is not None:
            chain.append(cause)
            cause = cause.__cause__
        text = first_paragraph(str(chain[-1]))
        node = _node_in_message(program, " ".join(map(str, chain)))
        scopes = list((node.meta.get("nn_module_stack") or {}).values()) if node else []
        module = str(scopes[-1][0]) if scopes else None
        raise ExportError(
            f"torch.onnx cannot translate an operation: {text}",
            module,
            where_in_trace(node.meta.get("stack_trace")) if node else None,
            "write that line with other PyTorch operations, or choose a config that avoids it",
        ) from error


def _node_in_message(program, message: str) -> torch.fx.Node | None:
    """The node that a failed translation is about. It may be a part of the node as traced: then go by the operation."""
    named = re.search(r"translating node %(\w+).*?target=torch\.ops\.\w+\.(\w+)", message)
    if named is None:
        return None
    same = [n for n in program.graph.nodes if n.name == named.group(1)]
    return next(iter(same + [n for n in program.graph.nodes if named.group(2) in str(n.target)]), None)


# Arguments that the translation to ONNX drops without a word: operation -> argument -> its neutral value and a remedy.
_DROPPED = {
    torch.ops.aten.cross_entropy_loss.default: {
        "label_smoothing": (0.0, "write the smoothed loss out of log_softmax, gather and mean")
    },
    torch.ops.aten.embedding.default: {
        "scale_grad_by_freq": (False, "leave it off: the gradient would not be scaled"),
    },
}


def refuse_dropped_arguments(program) -> None:
    """Refuses calls whose arguments would be lost in translation: the program would train on other numbers."""
    for node in program.graph.nodes:
        for name, (neutral, remedy) in _DROPPED.get(node.target, {}).items():
            position = [a.name for a in node.target._schema.arguments].index(name)
            value = node.kwargs.get(name, node.args[position] if position < len(node.args) else neutral)
            if value != neutral:
                scopes = list((node.meta.get("nn_module_stack") or {}).values())
                raise ExportError(
                    f"{node.target.name().split('::')[-1]} with {name}={value} has no translation to ONNX",
                    str(scopes[-1][0]) if scopes else None,
                    where_in_trace(node.meta.get("stack_trace")),
                    remedy,
                )


def refuse_stopped_gradients(program) -> None:
    """Refuses `detach` and `no_grad` of what depends on trained parameters: translated, gradients would flow through them."""
    parameters = program.graph_signature.inputs_to_parameters
    trained = {
        node
        for node in program.graph.nodes
        if node.op == "placeholder"
        and node.name in parameters
        and program.state_dict[parameters[node.name]].requires_grad
    }
    for node in program.graph.nodes:
        results = torch.utils._pytree.tree_leaves(node.meta.get("val"))
        floats = any(isinstance(v, torch.Tensor) and v.dtype.is_floating_point for v in results)
        if not floats or trained.isdisjoint(node.all_input_nodes):
            continue
        detached = node.target is torch.ops.aten.detach.default
        if detached or (node.target is torch.ops.higher_order.wrap_with_set_grad_enabled and node.args[0] is False):
            scopes = list((node.meta.get("nn_module_stack") or {}).values())
            raise ExportError(
                f"{'detach' if detached else 'no_grad'} stops a gradient, and ONNX has nothing that says so: nd would "
                "train on another gradient",
                str(scopes[-1][0]) if scopes else None,
                where_in_trace(node.meta.get("stack_trace")),
                "let the gradient through, or freeze the parameters that the value is computed from",
            )
        trained.add(node)


def refuse_state(program) -> None:
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
