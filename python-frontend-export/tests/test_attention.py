"""What the attention function receives goes into the node or is refused by name."""

import nd_export
import pytest
import torch
from evaluate import attributes, difference, graph, run, tokens
from nd_export.attention import nd_attention
from nd_export.masks import MaskPattern
from nd_export.testing import perturb, tiny_llama

Q, KV = torch.zeros(1, 4, 5, 8), torch.zeros(1, 2, 5, 8)
SYMBOLS = {0: "batch", 1: "seq"}


class Attend(torch.nn.Module):
    """Stands for an attention module of transformers."""

    is_causal = True

    def __init__(self, **arguments):
        super().__init__()
        self.arguments = arguments

    def forward(self, q, k, v):
        mask = self.arguments.pop("attention_mask", None)
        return nd_attention(self, q, k, v, mask, **self.arguments)[0]


class Masked(torch.nn.Module):
    """A transformers model called with a mask of the user's."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, position_ids, attention_mask):
        given = {"input_ids": input_ids, "position_ids": position_ids, "attention_mask": attention_mask}
        return self.model(**given, use_cache=False).logits


@pytest.mark.parametrize(
    "given, named",
    [
        ({"s_aux": torch.zeros(4)}, "'s_aux' .a float32 tensor of rank 1"),
        ({"position_bias": torch.zeros(1, 4, 5, 5)}, "'position_bias'"),
        ({"chunk": 3}, "'chunk' .int 3"),
        ({"sliding_window": 3, "attention_mask": MaskPattern(True, 0, None)}, "'sliding_window' is 3 .* window none"),
        ({"sliding_window": 3, "is_causal": False}, "'sliding_window' 3 on attention that is not causal"),
        ({"attention_mask": torch.ones(1, 5)}, "'attention_mask' is a float32 tensor of rank 2"),
    ],
)
def test_refused_by_name(given, named):
    with pytest.raises(nd_export.ExportError, match=named):
        Attend(**given)(Q, KV, KV)


def test_refusal_names_module_and_line(tmp_path):
    outer = torch.nn.Sequential()
    outer.add_module("attention", Attend(sinks=2))
    outer.forward = lambda q, k, v: outer.attention(q, k, v)
    with pytest.raises(nd_export.ExportError) as error:
        nd_export.export(outer, {"q": Q, "k": KV, "v": KV}, tmp_path)
    text = str(error.value)
    assert text.startswith("attention (Attend): the attention function receives 'sinks' (int 2)")
    assert "test_attention.py:" in text and "return nd_attention(self" in text and "remedy: " in text


def test_neutral_arguments_pass(tmp_path):
    attend = Attend(position_ids=torch.arange(5), use_cache=False, s_aux=None, sliding_window=3, dropout=0.25)
    nd_export.export(attend, {"q": Q, "k": KV, "v": KV}, tmp_path)
    (node,) = (n for n in graph(tmp_path).node if n.domain == "ai.nd")
    given = {"causal": 1, "window": 3, "dropout": 0.25, "softcap": 0.0, "mask_kind": 0, "scale": 8**-0.5}
    assert attributes(node) == pytest.approx(given)


def test_keys_of_another_length_are_refused():
    with pytest.raises(nd_export.ExportError, match="keys of another length"):
        Attend()(Q, torch.zeros(1, 2, 6, 8), torch.zeros(1, 2, 6, 8))


@pytest.fixture(scope="module")
def llama():
    return perturb(tiny_llama(odd=True, num_hidden_layers=1)).eval()


def test_key_padding_becomes_an_operand(llama, tmp_path):
    inputs = tokens(2, 9, 251) | {"attention_mask": torch.arange(9).expand(2, 9) < torch.tensor([[9], [6]])}
    shapes = dict.fromkeys(inputs, SYMBOLS)
    nd_export.export(Masked(llama), inputs, tmp_path, outputs="logits", dynamic_shapes=shapes)
    (node,) = (n for n in graph(tmp_path).node if n.domain == "ai.nd")
    assert len(node.input) == 4 and attributes(node)["mask_kind"] == 1 and attributes(node)["causal"] == 1
    expected = Masked(llama)(**inputs).detach()
    assert difference(run(tmp_path, **inputs)[0], expected) < 2e-6


def test_general_mask_becomes_an_operand(llama, tmp_path):
    inputs = tokens(2, 9, 251)
    inputs["attention_mask"] = torch.randn(2, 1, 9, 9, generator=torch.Generator().manual_seed(0))
    shapes = {"input_ids": SYMBOLS, "position_ids": SYMBOLS, "attention_mask": {0: "batch", 2: "seq", 3: "seq"}}
    nd_export.export(Masked(llama), inputs, tmp_path, outputs="logits", dynamic_shapes=shapes)
    (node,) = (n for n in graph(tmp_path).node if n.domain == "ai.nd")
    assert len(node.input) == 4 and attributes(node)["mask_kind"] == 2 and attributes(node)["causal"] == 0
    expected = Masked(llama)(**inputs).detach()
    assert difference(run(tmp_path, **inputs)[0], expected) < 2e-6


def test_model_keeps_its_attention_after_an_export(llama, tmp_path):
    before = llama.config._attn_implementation
    nd_export.export(Masked(llama), tokens(2, 9, 251) | {"attention_mask": torch.ones(2, 9).bool()}, tmp_path)
    assert llama.config._attn_implementation == before != "nd"
    assert not llama.training
