"""Training runs of GPT-2 and Llama on 1 to 8 data-parallel ranks beside PyTorch, from the same weights and batches."""

import copy
import functools

import pytest
import torch
from support import relative, run
from training import Settings, nd_run, torch_run, zero_slices
from transformers import AutoModelForCausalLM

MODELS = ["gpt2", "llama", "gpt2-odd", "llama-odd"]
SETTINGS = {
    "adamw": Settings(),
    "sgd": Settings(optimizer="sgd", lr=0.5, momentum=0.9),
}


@pytest.fixture(scope="session")
def reference(exported, tokens):
    """(model, optimizer) -> PyTorch's outcome in f32 and in f64."""

    @functools.cache
    def build(name, optimizer):
        return tuple(
            torch_run(exported(name) / "hf", tokens[1], SETTINGS[optimizer], d) for d in (torch.float32, torch.float64)
        )

    return build


def close(what, ours, single, double, bound):
    """Relative difference from PyTorch within `bound`; else f64 judges: at most twice PyTorch's own error."""
    if abs(ours - single) > bound * abs(single):
        assert abs(ours - double) <= 2 * abs(single - double), f"{what}: {ours} against {single} (f32), {double} (f64)"


def tensors_close(what, ours, single, double, bound, scale=None):
    norm = single.double().norm().item() if scale is None else scale
    if (ours.double() - single.double()).norm().item() > bound * norm:
        own = (single.double() - double).norm().item()
        error = (ours.double() - double).norm().item()
        assert error <= 2 * own, f"{what}: {error / norm:.2e} from f64 where PyTorch's f32 is {own / norm:.2e} from it"


@pytest.mark.parametrize("shard", ["dp1", "dp2", "dp3", "dp4", "dp8"])
@pytest.mark.parametrize("optimizer", SETTINGS)
@pytest.mark.parametrize("name", MODELS)
def test_equals_pytorch(name, optimizer, shard, imported, reference, tokens, tmp_path):
    settings = SETTINGS[optimizer]
    single, double = reference(name, optimizer)
    ours = nd_run(imported(name, settings.batch, settings.seq), tokens[0], settings, tmp_path, shard)

    assert single.losses[0] - min(single.losses[-3:]) >= 1, f"the run is too short to mean much: {single.losses}"
    for step in range(settings.steps):
        close(f"loss of step {step + 1}", ours.losses[step], single.losses[step], double.losses[step], 1e-5)
        close(f"grad_norm of step {step + 1}", ours.norms[step], single.norms[step], double.norms[step], 1e-5)

    assert ours.gradients.keys() == single.gradients.keys()
    for parameter, expected in single.gradients.items():
        got, exact = ours.gradients[parameter], double.gradients[parameter]
        zero = zero_slices(parameter, name)
        if zero is not None:
            assert zero(got).norm().item() <= 1e-5 * single.norms[0], f"{parameter}: a slice that must be zero is not"
            got, expected, exact = (x.clone() for x in (got, expected, exact))
            for x in (got, expected, exact):
                zero(x).zero_()
        tensors_close(f"gradient of {parameter}", got, expected, exact, 1e-5)

    bound = 1e-3 if optimizer == "adamw" else 1e-5
    assert ours.weights.keys() <= single.weights.keys() and len(ours.weights) == len(single.weights)
    for parameter, expected in single.weights.items():
        tensors_close(f"weight {parameter}", ours.weights[parameter], expected, double.weights[parameter], bound)


def test_parts_of_fused_parameters_train_alike(imported, tokens, tmp_path):
    """GPT-2's c_attn as three parameters each, on two ranks: files, gradients and saved weights are those of the whole."""
    settings = Settings(optimizer="sgd", lr=0.5, momentum=0.9, steps=5)
    model, split = imported("gpt2-odd", settings.batch, settings.seq), tmp_path / "split.mlir"
    run(
        *("nd-opt", "--canonicalize", "--nd-unmerge-dimensions", "--canonicalize", "--nd-split-parameters"),
        *(model, "-o", split),
    )
    assert "c_attn.weight#2" in split.read_text()
    ours = nd_run(split, tokens[0], settings, tmp_path / "ours", "dp2")
    whole = nd_run(model, tokens[0], settings, tmp_path / "whole", "dp1")
    assert ours.gradients.keys() == whole.gradients.keys() and ours.weights.keys() == whole.weights.keys()
    for got, expected in zip(ours.losses + ours.norms, whole.losses + whole.norms, strict=True):
        assert abs(got - expected) <= 1e-5 * expected
    for parameter, expected in whole.gradients.items():
        assert relative(ours.gradients[parameter], expected) <= 1e-5, parameter
    for parameter, expected in whole.weights.items():
        assert relative(ours.weights[parameter], expected) <= 1e-5, parameter


@pytest.mark.parametrize("ranks", [1, 3, 8])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_bytes_sent_are_those_of_an_all_reduce_of_the_gradients(name, ranks, imported, tokens, tmp_path):
    """Over all ranks, 2 (n - 1) X for X = 4 bytes a parameter; the token count and the loss are 4 bytes each."""
    settings = Settings(steps=2)
    ours = nd_run(imported(name, settings.batch, settings.seq), tokens[0], settings, tmp_path, f"dp{ranks}")
    parameters = sum(w.numel() for w in ours.weights.values())
    gradients, scalars = 2 * (ranks - 1) * 4 * parameters, 2 * (ranks - 1) * 4 * 2
    expected = {"dp": {"all_reduce": gradients}, "scalar": {"all_reduce": scalars}} if ranks > 1 else {}
    assert ours.sent == [expected] * 2


@pytest.mark.parametrize("name", MODELS)
def test_saved_folder_loads_in_transformers(name, exported, imported, tokens, tmp_path):
    """transformers' logits from the saved folder equal those of a model that was given the saved weights by hand."""
    settings = Settings(steps=2)
    ours = nd_run(imported(name, settings.batch, settings.seq), tokens[0], settings, tmp_path, "dp2")
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "saved").eval()
    by_hand = copy.deepcopy(AutoModelForCausalLM.from_pretrained(exported(name) / "hf")).eval()
    missing = by_hand.load_state_dict(ours.weights, strict=False)
    assert not missing.unexpected_keys
    by_hand.tie_weights()
    ids = torch.from_numpy(tokens[1][:34].astype("int64")).reshape(2, 17)
    with torch.no_grad():
        assert relative(saved(ids).logits, by_hand(ids).logits) <= 1e-5
