"""Exports of whole families: the graph computes the model's logits, at other sizes than it was traced with."""

import pytest
from evaluate import attributes, difference, graph, run, tokens
from families import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_logits_equal_transformers(exported, name):
    model, _, out = exported(name)
    inputs = tokens(2, 23, model.config.vocab_size)
    # Bloom takes no positions: its attention knows distances only.
    called = inputs if name != "bloom" else {"input_ids": inputs["input_ids"]}
    expected = model(**called, use_cache=False).logits.detach()
    assert difference(run(out, **inputs)[0], expected) < 2e-6


@pytest.mark.parametrize(
    "name, expected",
    {
        "gpt2": [{"window": 0, "softcap": 0.0, "scale": 0.25}] * 2,
        "mistral": [{"window": 5, "softcap": 0.0}],
        "gemma2": [{"window": 5, "softcap": 50.0}, {"window": 0, "softcap": 50.0}],
        "bloom": [],
    }.items(),
)
def test_each_attention_is_one_node_with_its_attributes(exported, name, expected):
    nodes = [n for n in graph(exported(name)[2]).node if n.domain == "ai.nd"]
    assert len(nodes) == len(expected)
    for node, wanted in zip(nodes, expected, strict=True):
        assert node.op_type == "Attention" and len(node.input) == 3
        wanted = {"causal": 1, "mask_kind": 0, "dropout": 0.0} | wanted
        assert {k: v for k, v in attributes(node).items() if k in wanted} == pytest.approx(wanted)


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral"])
def test_no_mask_arithmetic_is_left(exported, name):
    kinds = {n.op_type for n in graph(exported(name)[2]).node}
    assert not kinds & {"Where", "And", "LessOrEqual", "Greater", "GatherND", "CumSum", "Range", "Softmax"}


def test_grouped_heads_are_not_expanded(exported):
    folder = exported("llama")[2]
    model = graph(folder)
    shapes = {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.value_info}
    node = next(n for n in model.node if n.domain == "ai.nd")
    assert [shapes[name] for name in (*node.input, *node.output)] == [
        ["batch", 4, "seq", 16],
        ["batch", 2, "seq", 16],
        ["batch", 2, "seq", 16],
        ["batch", 4, "seq", 16],
    ]


def test_inputs_and_logits_have_symbols(exported):
    model = graph(exported("gpt2")[2])
    shapes = {
        v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in (*model.input, *model.output)
    }
    assert shapes == {
        "input_ids": ["batch", "seq"],
        "position_ids": ["batch", "seq"],
        "logits": ["batch", "seq", 256],
    }


def test_nodes_keep_module_and_source_line_without_local_paths(exported):
    node = next(n for n in graph(exported("gpt2")[2]).node if n.domain == "ai.nd")
    metadata = {p.key: p.value for p in node.metadata_props}
    assert "'transformer.h.0.attn'" in metadata["pkg.torch.onnx.name_scopes"]
    trace = metadata["pkg.torch.onnx.stack_trace"]
    assert '"transformers/models/gpt2/modeling_gpt2.py", line ' in trace
    assert '"/' not in trace and "nd_export" not in trace
