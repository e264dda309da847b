"""Which masks are recognised as predicates, and what happens to the others."""

import pytest
import torch
from nd_export.masks import MaskPattern, nd_mask, recognize
from transformers import masking_utils as m

IDS = torch.arange(6)[None]
SIZES = {"batch_size": 1, "q_length": 6, "kv_length": 6, "dtype": torch.float32, "device": "cpu", "use_vmap": False}


def packed(function):
    """As transformers wraps a mask when it traces with position_ids."""
    return m.and_masks(m.remap_positions_for_packed_sequence(function, IDS), m.packed_sequence_mask_function(IDS))


@pytest.mark.parametrize(
    "function, expected",
    [
        (m.causal_mask_function, (True, 0)),
        (m.bidirectional_mask_function, (False, 0)),
        (m.sliding_window_causal_mask_function(3), (True, 3)),
        (packed(m.causal_mask_function), (True, 0)),
        (packed(m.sliding_window_causal_mask_function(3)), (True, 3)),
        (m.and_masks(m.sliding_window_overlay(4), m.sliding_window_causal_mask_function(3)), (True, 3)),
        (m.sliding_window_bidirectional_mask_function(3), None),
        (m.chunked_causal_mask_function(3, torch.zeros(1, dtype=torch.long)), None),
        (m.or_masks(m.causal_mask_function, m.bidirectional_mask_function), None),
        (m.and_masks(m.causal_mask_function, lambda b, h, q, k: k != 2), None),
    ],
)
def test_recognize(function, expected):
    assert recognize(function) == expected


@pytest.mark.parametrize("window", [0, 3])
def test_recognized_predicate_is_transformers_mask(window):
    function = m.sliding_window_causal_mask_function(window) if window else m.causal_mask_function
    pattern = nd_mask(mask_function=function, **SIZES)
    distance = torch.arange(6)[:, None] - torch.arange(6)[None, :]
    ours = (distance >= 0) & ((distance < pattern.window) if pattern.window else True)
    assert torch.equal(ours, m.sdpa_mask(mask_function=function, allow_is_causal_skip=False, **SIZES)[0, 0])


def test_padding_goes_along():
    padding = torch.tensor([[True, True, True, True, False, False]])
    assert nd_mask(mask_function=m.causal_mask_function, attention_mask=padding, **SIZES).padding is padding


def test_unrecognized_mask_becomes_a_boolean_tensor():
    mask = nd_mask(mask_function=m.chunked_causal_mask_function(3, torch.zeros(1, dtype=torch.long)), **SIZES)
    block = torch.ones(3, 3).tril().bool()
    assert torch.equal(mask[0, 0], torch.block_diag(block, block))


def test_model_that_computes_with_its_mask_fails_by_name():
    pattern = MaskPattern(True, 0, None)
    with pytest.raises(AttributeError, match="uses its attention mask itself .'.masked_fill'"):
        pattern.masked_fill(0)
    with pytest.raises(TypeError, match="slices its attention mask itself"):
        pattern[:, :, :, :3]
