"""Where weights come from and go to: folders, shards, names, damage, and none at all."""

import json

import pytest
import torch
import transformers
from evaluate import difference, graph, run, sidecar, tokens
from nd_export import ExportError, checkpoint, fake, huggingface
from nd_export.huggingface import export_hf
from nd_export.progress import Progress
from nd_export.testing import perturb, tiny_gpt2, tiny_llama
from safetensors.torch import load_file, save_file

SMALL = {"n_layer": 1, "n_embd": 8, "n_head": 2, "n_inner": 16, "vocab_size": 31, "n_positions": 16}


@pytest.fixture
def folder(tmp_path):
    """A saved GPT-2 of 4000 numbers."""
    perturb(tiny_gpt2(**SMALL)).save_pretrained(tmp_path / "hf")
    return tmp_path / "hf"


def test_weights_of_a_folder_stay_there(exported):
    _, source, out = exported("gpt2")
    content = sidecar(out)
    assert content["weights_dir"] == str(source) and not list(out.glob("*.safetensors"))
    assert content["files"] == ["config.json", "generation_config.json"]
    assert {p["file"] for p in content["parameters"].values()} == {"model.safetensors"}


def test_renamed_weights_stay_there_under_their_stored_key(exported):
    _, source, out = exported("gpt_neox")
    content = sidecar(out)
    assert content["weights_dir"] == str(source)
    assert content["parameters"]["lm_head.weight"]["key"] == "embed_out.weight"


def test_sharded_folder(tmp_path):
    model = perturb(tiny_llama(odd=True, num_hidden_layers=1)).eval()
    model.save_pretrained(tmp_path / "hf", max_shard_size="40KB")
    export_hf(tmp_path / "hf", tmp_path / "out")
    content = sidecar(tmp_path / "out")
    assert len({p["file"] for p in content["parameters"].values()}) > 1
    assert "model.safetensors.index.json" not in content["files"]
    inputs = tokens(2, 7, 251)
    assert difference(run(tmp_path / "out", **inputs)[0], model(**inputs, use_cache=False).logits.detach()) < 2e-6


def located(folder):
    """Parameter -> stored tensor, as an export of `folder` finds them; nothing is traced."""
    with fake.fake_parameters():
        model = huggingface.build(huggingface.load_config(folder))
    return checkpoint.stored_weights(model, folder, folder / "out", False, Progress(quiet=True))[1].stored


def test_keys_of_the_base_model_are_found(folder):
    tensors = load_file(folder / "model.safetensors")
    renamed = {k.removeprefix("transformer."): v for k, v in tensors.items()}
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    assert located(folder)["transformer.wte.weight"].key == "wte.weight"


def test_tied_weight_stored_under_its_other_name_is_found(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors.pop("transformer.wte.weight")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert located(folder)["transformer.wte.weight"].key == "lm_head.weight"


def test_bf16_weights_keep_their_type_and_the_graph_is_f32(folder, tmp_path):
    tensors = {k: v.bfloat16() for k, v in load_file(folder / "model.safetensors").items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    export_hf(folder, tmp_path / "out")
    entry = sidecar(tmp_path / "out")["parameters"]["transformer.ln_f.bias"]
    assert entry["dtype"] == "f32" and entry["stored_dtype"] == "bf16" and entry["file"] == "model.safetensors"
    assert not any(t.external_data for t in graph(tmp_path / "out").initializer)


def test_weights_stored_in_another_form_are_loaded(folder, monkeypatch):
    found = checkpoint._by_model_names

    def lacking(model, stored):  # as if transformers had to compute this one from several
        return {k: v for k, v in found(model, stored).items() if k != "transformer.wpe.weight"}

    monkeypatch.setattr(checkpoint, "_by_model_names", lacking)
    with fake.fake_parameters():
        model = huggingface.build(huggingface.load_config(folder))
    (folder / "out").mkdir()
    model, extra = checkpoint.stored_weights(model, folder, folder / "out", False, Progress(quiet=True))
    assert extra.stored is None and extra.weights_dir is None  # the export writes them into its own folder
    assert "config.json" in extra.files
    theirs = load_file(folder / "model.safetensors")["transformer.wpe.weight"]
    assert torch.equal(model.transformer.wpe.weight, theirs)


def test_random_init_writes_a_folder_that_transformers_loads(folder, tmp_path):
    (folder / "tokenizer.json").write_text("{}")
    export_hf(folder, tmp_path / "a", random_init=5, perturb=True)
    content = sidecar(tmp_path / "a")
    assert content["weights_dir"] is None
    assert content["files"] == ["config.json", "generation_config.json", "tokenizer.json"]
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "a").eval()
    inputs = tokens(2, 7, 31)
    assert difference(run(tmp_path / "a", **inputs)[0], model(**inputs, use_cache=False).logits.detach()) < 2e-6
    saved = load_file(tmp_path / "a" / "model.safetensors")
    assert not any((t == 0).all() or (t == 1).all() for t in saved.values())


def test_random_init_is_the_seeds(folder):
    config = huggingface.load_config(folder)
    models = []
    for seed in (5, 5, 6):
        transformers.set_seed(seed)
        models.append(perturb(huggingface.build(config), seed).state_dict())
    assert all(torch.equal(models[0][k], models[1][k]) for k in models[0])
    assert not any(torch.equal(models[0][k], models[2][k]) for k in models[0])


def test_no_weights_has_only_the_data_of_tables(tmp_path):
    model = tiny_llama(num_hidden_layers=1)
    model.config.save_pretrained(tmp_path)
    export_hf(tmp_path / "config.json", tmp_path / "out", no_weights=True)
    content = sidecar(tmp_path / "out")
    assert content["weights_dir"] is None and {p["file"] for p in content["parameters"].values()} == {None}
    assert not list((tmp_path / "out").glob("*.safetensors"))
    tensors = graph(tmp_path / "out").initializer
    assert not any(t.external_data for t in tensors)
    (table,) = (t for t in tensors if t.raw_data)  # of rotary frequencies, computed when the model is made
    assert table.raw_data == model.model.rotary_emb.inv_freq.numpy().tobytes()


def _truncate(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-40])


def _no_header(folder):
    (folder / "model.safetensors").write_bytes(b"\xff" * 30)


def _empty(folder):
    (folder / "model.safetensors").write_bytes(b"")


def _missing_shard(folder):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def _pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _other_shape(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["transformer.ln_f.bias"] = torch.zeros(9)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _bad_config(folder):
    (folder / "config.json").write_text("{ not json")


def _quantized(folder):
    config = json.loads((folder / "config.json").read_text()) | {"quantization_config": {"quant_method": "gptq"}}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    "damage, message",
    [
        (_truncate, "cannot read .*model.safetensors: .* ends beyond the file"),
        (_no_header, "its header is longer than the file"),
        (_empty, "cannot read .*model.safetensors"),
        (_missing_shard, "names model-00001-of-00002.safetensors, which is not in"),
        (_pickled, "no model.safetensors .*it has pytorch_model.bin"),
        (_other_shape, "no weights of the right shape for transformer.ln_f.bias"),
        (_bad_config, "config.json is not the config of a transformers model"),
        (_quantized, "'quantization_config'"),
    ],
)
def test_damage_is_named(folder, tmp_path, damage, message):
    damage(folder)
    with pytest.raises(ExportError, match=message):
        export_hf(folder, tmp_path / "out")
