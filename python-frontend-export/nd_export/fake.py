"""Models without weights: parameters are fake tensors (shape and dtype, no memory), buffers are real.

A graph of any size can then be exported, and the small tables that modules compute when they are made (rotary
frequencies, say) still have their values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode


def is_fake(module: torch.nn.Module) -> bool:
    """Whether `module` was made under `fake_parameters`."""
    return any(isinstance(p, FakeTensor) for p in module.parameters())


def mode_of(module: torch.nn.Module) -> contextlib.AbstractContextManager:
    """The fake mode that `module` was made in, or a context that does nothing."""
    modes = [p.fake_mode for p in module.parameters() if isinstance(p, FakeTensor)]
    return modes[0] if modes else contextlib.nullcontext()


@contextlib.contextmanager
def fake_parameters() -> Iterator[FakeTensorMode]:
    """Parameters of modules made while it is open are fake; each replaces the real one as soon as it is registered."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    register = torch.nn.Module.register_parameter

    def register_fake(self, name, param):
        if param is not None and not isinstance(param, FakeTensor):
            with mode:
                data = torch.empty(param.shape, dtype=param.dtype)
            param = torch.nn.Parameter(data, requires_grad=param.requires_grad)
        register(self, name, param)

    torch.nn.Module.register_parameter = register_fake
    try:
        yield mode
    finally:
        torch.nn.Module.register_parameter = register
