"""Attention as one node: nd's entries in transformers' registries of attention and mask functions.

Every call of transformers' attention interface becomes one `ai.nd::Attention` node (version 1):

  operands    q [B, Hq, S, D], k [B, Hkv, S, D], v [B, Hkv, S, Dv], and a mask if `mask_kind` is not 0
  result      [B, Hq, S, Dv]
  causal      1: a query sees keys at its own position and before
  window      w > 0: only keys with q - k < w; 0: no window
  scale       factor on q k^T
  softcap     c > 0: scores become c * tanh(scores / c), before masking; 0: none
  dropout     probability on the attention weights; 0: none
  mask_kind   0: no operand; 1: boolean [B, S], true for keys that may be seen;
              2: boolean (true: seen) or float (added), broadcastable to [B, Hq, S, S], which replaces causal and window

What an attention function receives goes into the node or is refused by name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from transformers import PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from .errors import ExportError
from .masks import MaskPattern, nd_mask

NAME = "nd"
# Arguments that models hand through to every attention function and that change nothing in training without a cache.
_NEUTRAL = {"position_ids", "use_cache", "output_attentions", "output_hidden_states", "output_router_logits"}


def nd_attention(
    module,
    query,
    key,
    value,
    attention_mask,
    scaling=None,
    dropout=0.0,
    is_causal=None,
    sliding_window=None,
    softcap=None,
    **others,
):
    """transformers' attention interface: q [B, Hq, S, D], k/v [B, Hkv, S, D(v)] -> ([B, S, Hq, Dv], None)."""
    for name, given in others.items():
        if name not in _NEUTRAL and given is not None and given is not False:
            _refuse(module, f"the attention function receives '{name}' ({_kind(given)}), which ai.nd::Attention lacks")
    if not statically_known_true(query.shape[2] == key.shape[2]):
        _refuse(module, "keys of another length than queries (cross attention, or a cache) are not supported")
    causal, window, mask_kind, mask = _mask(module, attention_mask, is_causal, sliding_window)
    out = torch.onnx.ops.symbolic(
        "ai.nd::Attention",
        (query, key, value) if mask is None else (query, key, value, mask),
        attrs={
            "causal": int(causal),
            "scale": float(scaling if scaling is not None else query.shape[-1] ** -0.5),
            "window": int(window),
            "softcap": float(softcap or 0.0),
            "dropout": float(dropout),
            "mask_kind": mask_kind,
        },
        dtype=query.dtype,
        shape=(*query.shape[:-1], value.shape[-1]),
        version=1,
    )
    return out.transpose(1, 2).contiguous(), None


def _mask(module, mask, is_causal, sliding_window) -> tuple[bool, int, int, torch.Tensor | None]:
    """(causal, window, mask_kind, operand): the mask is the whole truth if there is one, as in `eager` and `sdpa`."""
    if isinstance(mask, MaskPattern):
        if sliding_window and sliding_window != mask.window:
            _refuse(module, f"'sliding_window' is {sliding_window} but its mask has window {mask.window or 'none'}")
        return mask.causal, mask.window, 0 if mask.padding is None else 1, mask.padding
    if mask is None:
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        if sliding_window and not causal:
            _refuse(module, f"'sliding_window' {sliding_window} on attention that is not causal")
        return causal, sliding_window or 0, 0, None
    if not isinstance(mask, torch.Tensor) or mask.ndim != 4:
        _refuse(module, f"'attention_mask' is {_kind(mask)}; known are none, padding [B, S] and [B, H, S, S]")
    return False, 0, 2, mask


def _kind(value) -> str:
    if isinstance(value, torch.Tensor):
        return f"a {str(value.dtype).removeprefix('torch.')} tensor of rank {value.ndim}"
    return f"{type(value).__name__} {value!r:.40}"


def _refuse(module, message: str) -> None:
    raise ExportError(
        message,
        module=type(module).__name__,
        remedy="turn that feature off in the model's config, or export the module with an attention of its own "
        "(plain PyTorch operations) through nd_export.export",
    )


ALL_ATTENTION_FUNCTIONS.register(NAME, nd_attention)
ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, nd_mask)


@contextlib.contextmanager
def nd_attention_in(module: torch.nn.Module) -> Iterator[list[str]]:
    """All transformers models inside `module` use nd's attention while it is open.

    Yields the names of those that cannot (they do not use the attention interface): their attention is exported as the
    plain operations that they are made of.
    """
    models = {name: m for name, m in module.named_modules() if isinstance(m, PreTrainedModel)}
    previous = [(m.config, m.config._attn_implementation) for m in models.values()]
    plain = [name or type(m).__name__ for name, m in models.items() if not m._can_set_attn_implementation()]
    for model in models.values():
        if model._can_set_attn_implementation():
            model.set_attn_implementation(NAME)
    try:
        yield plain
    finally:
        for config, implementation in previous:
            config._attn_implementation_internal = implementation
