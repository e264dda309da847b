"""Attention masks as predicates: what transformers' mask functions mean, without ever computing an S x S tensor.

transformers describes a mask as a function of (batch, head, query, key) indices, composed of a few closures, which
`recognize` reads. What it cannot read becomes a general boolean mask: correct, and slower.

transformers also compares neighbouring `position_ids` to guess where packed documents begin, whenever it traces. nd
takes documents as an operand of their own, so those parts are left out: one sample is one document.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable

import torch
from transformers import masking_utils


class MaskPattern:
    """What nd's mask function returns in place of a mask tensor, and nd's attention function reads.

    `causal` and `window` (0: none; a query sees keys with 0 <= q - k < window) say which keys a query may see;
    `padding` is None or a boolean [B, S], true for tokens that may be seen.
    It is no tensor on purpose: a model that computes with its mask fails, by name, instead of computing nonsense.
    """

    ndim = 4  # transformers takes what has 2 dimensions for a padding mask

    def __init__(self, causal: bool, window: int, padding: torch.Tensor | None):
        self.causal, self.window, self.padding = causal, window, padding

    def __getattr__(self, name: str):
        raise AttributeError(
            f"the model uses its attention mask itself ('.{name}'), which nd's symbolic mask cannot do"
        )

    def __getitem__(self, _):
        raise TypeError("the model slices its attention mask itself, which nd's symbolic mask cannot do")


@dataclasses.dataclass(frozen=True)
class _Predicate:
    causal: bool = False
    window: int = 0

    def __and__(self, other: _Predicate) -> _Predicate:
        windows = [w for w in (self.window, other.window) if w]
        return _Predicate(self.causal or other.causal, min(windows, default=0))


def _code(factory: Callable, *args) -> object:
    """The code object that all closures made by one factory of transformers share."""
    return factory(*args).__code__


_ids = torch.zeros(1, 1, dtype=torch.long)
_causal = masking_utils.causal_mask_function
_AND = _code(masking_utils.and_masks, _causal)
_WINDOW = _code(masking_utils.sliding_window_overlay, 1)
_REMAPPED = _code(masking_utils.remap_positions_for_packed_sequence, _causal, _ids)
_DOCUMENTS = _code(masking_utils.packed_sequence_mask_function, _ids)


def recognize(function: Callable) -> tuple[bool, int] | None:
    """(causal, window) of a transformers mask function, or None if it is anything else."""
    predicate = _recognize(function)
    # A window that looks into the future as well has another definition in every framework: leave it general.
    if predicate is None or (predicate.window and not predicate.causal):
        return None
    return predicate.causal, predicate.window


def _recognize(function: Callable) -> _Predicate | None:
    if function is masking_utils.causal_mask_function:
        return _Predicate(causal=True)
    if function is masking_utils.bidirectional_mask_function:
        return _Predicate()
    code = getattr(function, "__code__", None)
    cells = inspect.getclosurevars(function).nonlocals if code else {}
    if code is _WINDOW:
        return _Predicate(window=int(cells["sliding_window"]))
    if code is _REMAPPED:
        return _recognize(cells["mask_function"])
    if code is _DOCUMENTS:
        return _Predicate()
    if code is _AND:
        result = _Predicate()
        for part in map(_recognize, cells["mask_functions"]):
            if part is None:
                return None
            result = result & part
        return result
    return None


def nd_mask(*, mask_function: Callable, attention_mask=None, q_length, kv_length, q_offset=0, kv_offset=0, **rest):
    """transformers' mask interface: a `MaskPattern`, or a boolean tensor [B, 1, S, S] for a mask without a pattern.

    `attention_mask` is None or the boolean [B, S] of tokens that may be seen.
    """
    if isinstance(attention_mask, MaskPattern):  # made by an outer model and handed to an inner one
        return attention_mask
    pattern = recognize(mask_function)
    if pattern is not None and isinstance(q_offset, int) and q_offset == kv_offset == 0:
        return MaskPattern(*pattern, padding=attention_mask)
    arguments = rest | {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    return masking_utils.sdpa_mask(
        mask_function=mask_function,
        attention_mask=attention_mask,
        q_length=q_length,
        kv_length=kv_length,
        q_offset=q_offset,
        kv_offset=kv_offset,
        **arguments,
    )
