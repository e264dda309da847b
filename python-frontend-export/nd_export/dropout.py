"""Dropout: kept as it is, or turned off for the time of an export."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import torch

# What modules call their dropout probabilities: dropout, attn_pdrop, attention_dropout, hidden_dropout, drop_rate...
_PROBABILITY = re.compile(r"(^|_)(p?drop|dropout|droprate|layerdrop|drop_path)(_|$)|pdrop$|dropout$")


def probabilities(module: torch.nn.Module) -> dict[str, float]:
    """Path of each dropout probability above 0 in `module`, e.g. {"transformer.drop.p": 0.1}."""
    return {
        f"{path}.{name}" if path else name: getattr(owner, name)
        for path, owner, name in _owners(module)
        if getattr(owner, name) > 0
    }


def _owners(module: torch.nn.Module):
    for path, child in module.named_modules():
        if isinstance(child, torch.nn.modules.dropout._DropoutNd):
            yield path, child, "p"
        for name, value in vars(child).items():
            if isinstance(value, float) and _PROBABILITY.search(name):
                yield path, child, name


@contextlib.contextmanager
def dropout_off(module: torch.nn.Module) -> Iterator[None]:
    """Every dropout probability in `module` is 0, and its Dropout modules are identities, while it is open.

    Modules that skip whole layers by chance (`layerdrop`) do not skip either.
    """
    previous = [(owner, name, getattr(owner, name)) for _, owner, name in _owners(module)]
    idle = [m for m in module.modules() if isinstance(m, torch.nn.modules.dropout._DropoutNd)]
    idle += [m for m in module.modules() if hasattr(m, "layerdrop")]
    training = [(m, m.training) for m in idle]
    try:
        for owner, name, _ in previous:
            setattr(owner, name, 0.0)
        for child in idle:
            child.training = False
        yield
    finally:
        for owner, name, value in previous:
            setattr(owner, name, value)
        for child, was in training:
            child.training = was
