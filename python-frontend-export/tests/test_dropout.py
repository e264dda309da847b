"""Dropout is exported, or turned off on request; never dropped silently."""

import onnx
import pytest
from evaluate import attributes, graph
from nd_export.dropout import dropout_off, probabilities
from nd_export.huggingface import export_hf
from nd_export.testing import tiny_gpt2

RATES = {"embd_pdrop": 0.1, "attn_pdrop": 0.2, "resid_pdrop": 0.3}


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt2")
    tiny_gpt2(n_layer=1, **RATES).config.save_pretrained(folder)
    return folder / "config.json"


def constants(model):
    """Values of Constant nodes by their output."""
    result = {}
    for node in model.node:
        if node.op_type == "Constant" and "value" in attributes(node):
            result[node.output[0]] = onnx.numpy_helper.to_array(attributes(node)["value"]).item()
    return result


def test_kept_with_probability_and_training_flag(config, tmp_path):
    export_hf(config, tmp_path, no_weights=True)
    model = graph(tmp_path)
    nodes = [n for n in model.node if n.op_type == "Dropout"]
    values = constants(model)
    rates = [values[n.input[1]] for n in nodes]
    assert rates == pytest.approx([0.1, 0.3, 0.3])
    assert all(values[n.input[2]] is True for n in nodes)
    (attention,) = (n for n in model.node if n.domain == "ai.nd")
    assert attributes(attention)["dropout"] == pytest.approx(0.2)


def test_off(config, tmp_path):
    export_hf(config, tmp_path, no_weights=True, dropout="off")
    model = graph(tmp_path)
    assert not [n for n in model.node if n.op_type == "Dropout"]
    (attention,) = (n for n in model.node if n.domain == "ai.nd")
    assert attributes(attention)["dropout"] == 0.0


def test_module_is_left_as_it_was():
    model = tiny_gpt2(n_layer=1, **RATES)
    before = probabilities(model)
    assert len(before) >= 4
    with dropout_off(model):
        assert probabilities(model) == {}
        assert not model.transformer.drop.training
    assert probabilities(model) == before and model.transformer.drop.training
