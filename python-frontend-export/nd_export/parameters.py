"""What the sidecar says about each parameter, read from the module tree."""

from __future__ import annotations

import dataclasses

import torch

DTYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
}


@dataclasses.dataclass
class Parameter:
    """One parameter under its first name; `aliases` are the other names that share the tensor."""

    name: str
    shape: list[int]
    dtype: str
    trainable: bool
    module: str
    padding_idx: int | None
    aliases: list[str]

    @property
    def names(self) -> list[str]:
        return [self.name, *self.aliases]


def describe(module: torch.nn.Module) -> dict[str, Parameter]:
    """Every parameter of `module` by its first name, in the order of `named_parameters`."""
    owners = dict(module.named_modules())
    groups: dict[int, list[str]] = {}
    tensors: dict[int, torch.nn.Parameter] = {}
    for name, tensor in module.named_parameters(remove_duplicate=False):
        groups.setdefault(id(tensor), []).append(name)
        tensors[id(tensor)] = tensor
    result = {}
    for key, names in groups.items():
        tensor = tensors[key]
        paddings = (getattr(owners[name.rpartition(".")[0]], "padding_idx", None) for name in names)
        result[names[0]] = Parameter(
            name=names[0],
            shape=list(tensor.shape),
            dtype=DTYPES[tensor.dtype],
            trainable=tensor.requires_grad,
            module=names[0].rpartition(".")[0],
            padding_idx=next((p for p in paddings if p is not None), None),
            aliases=names[1:],
        )
    return result


def blocks(module: torch.nn.Module) -> list[str]:
    """Paths of the repeated blocks: the children of outermost ModuleLists, in order.

    Children of a list may alternate between kinds, but each has parameters. A Sequential counts as such a list if its
    children are modules with children of their own, all of one class.
    """
    found: list[str] = []

    def visit(path: str, parent: torch.nn.Module) -> None:
        for name, child in parent.named_children():
            here = f"{path}.{name}" if path else name
            if _is_stack(child):
                found.extend(f"{here}.{index}" for index, _ in child.named_children())
            else:
                visit(here, child)

    if _is_stack(module):
        return [index for index, _ in module.named_children()]
    visit("", module)
    return found


def _is_stack(module: torch.nn.Module) -> bool:
    children = list(module.children())
    if not children or any(next(c.parameters(), None) is None for c in children):
        return False
    if isinstance(module, torch.nn.Sequential):
        return len(children) > 1 and len({type(c) for c in children}) == 1 and any(children[0].children())
    return isinstance(module, torch.nn.ModuleList)
