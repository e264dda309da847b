"""Names, ties, paddings, frozen parameters and blocks in the graph and the sidecar."""

import nd_export
import onnx
import pytest
import torch
from evaluate import difference, graph, run, sidecar
from nd_export.parameters import blocks, describe


class Tied(torch.nn.Module):
    """Embedding with padding, a frozen layer, and a head tied to the embedding."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(11, 6, padding_idx=3)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(6, 6) for _ in range(3))
        self.unused = torch.nn.Linear(2, 2)
        self.head = torch.nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight
        self.layers[1].weight.requires_grad_(False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer(x).tanh()
        return self.head(x)


@pytest.fixture(scope="module")
def tied(tmp_path_factory):
    module, out = Tied(), tmp_path_factory.mktemp("tied")
    nd_export.export(module, torch.ones(2, 5, dtype=torch.long), out, outputs="logits")
    return module, out


def test_tied_parameter_is_one_initializer_under_its_first_name(tied):
    model = graph(tied[1])
    names = [t.name for t in model.initializer]
    assert names.count("embed.weight") == 1 and "head.weight" not in names
    users = [n.op_type for n in model.node if "embed.weight" in n.input]
    assert sorted(users) == ["Gather", "Transpose"]
    assert sidecar(tied[1])["parameters"]["embed.weight"]["aliases"] == ["head.weight"]


def test_tied_gpt2_uses_the_embeddings_name(exported):
    model = graph(exported("gpt2")[2])
    used = {name for n in model.node for name in n.input}
    assert "transformer.wte.weight" in used and "lm_head.weight" not in used


def test_padding_and_trainable_and_module(tied):
    parameters = sidecar(tied[1])["parameters"]
    assert parameters["embed.weight"]["padding_idx"] == 3
    assert [n for n, p in parameters.items() if not p["trainable"]] == ["layers.1.weight"]
    assert parameters["layers.2.bias"]["module"] == "layers.2" and parameters["layers.2.bias"]["rank"] == 1


def test_unused_parameter_is_kept(tied):
    assert "unused.weight" in {t.name for t in graph(tied[1]).initializer}
    assert "unused.weight" in sidecar(tied[1])["parameters"]


def test_initializers_point_into_safetensors(tied):
    module, out = tied
    for tensor in graph(out).initializer:
        assert tensor.data_location == onnx.TensorProto.EXTERNAL
        assert {e.key: e.value for e in tensor.external_data}["location"] == "model.safetensors"
    ids = torch.tensor([[1, 3, 5, 7, 2], [0, 10, 3, 3, 4]])
    assert difference(run(out, ids=ids)[0], module(ids).detach()) < 1e-6


def test_names_and_shapes_are_the_modules(exported):
    model, _, out = exported("llama")
    ours = {n: p["shape"] for n, p in sidecar(out)["parameters"].items()}
    assert ours == {n: list(p.shape) for n, p in model.named_parameters()}


def test_sidecar_of_a_language_model(exported):
    content = sidecar(exported("gpt2")[2])
    assert content["format"] == "nd.sidecar" and content["version"] == 1 and content["opset"] == 23
    assert content["task"] == "causal-lm" and content["outputs"] == {"logits": {"role": "logits"}}
    assert content["inputs"]["position_ids"] == {"dtype": "i64", "shape": ["batch", "seq"]}
    assert content["symbols"] == {"batch": {"min": 1, "max": None}, "seq": {"min": 1, "max": 64}}
    assert content["blocks"] == ["transformer.h.0", "transformer.h.1"]
    assert (content["vocab_size"], content["max_positions"], content["ignore_index"]) == (256, 64, -100)


def test_small_constants_are_inline_and_large_ones_beside(tmp_path):
    class Tables(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(3))
            self.register_buffer("small", torch.tensor([1.0, 2.0, 3.0]))
            self.register_buffer("large", torch.randn(1 << 17, 3))

        def forward(self, x):
            return (x * self.scale + self.small + self.large).sum(0)

    module = Tables()
    nd_export.export(module, torch.ones(3), tmp_path)
    tensors = {t.name: t for t in graph(tmp_path).initializer}
    assert len(tensors["small"].raw_data) == 12 and not tensors["large"].raw_data
    assert difference(run(tmp_path, x=torch.ones(3))[0], module(torch.ones(3)).detach()) < 1e-4


def test_blocks_are_outermost_lists():
    class Experts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(2))

    stack = torch.nn.ModuleDict({"h": torch.nn.ModuleList([Experts(), Tied()]), "acts": torch.nn.ModuleList()})
    assert blocks(stack) == ["h.0", "h.1"]
    assert blocks(torch.nn.Sequential(Experts(), Experts())) == ["0", "1"]
    assert blocks(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))) == []
    assert [p.aliases for p in describe(Tied()).values() if p.aliases] == [["head.weight"]]
