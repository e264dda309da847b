"""What a compiled program is: one executable for equal ranks, without LLVM or Python, over a planned arena."""

import json
import subprocess

import pytest
import torch
from safetensors.torch import load_file, save_file
from support import run


@pytest.fixture(scope="module")
def model(imported):
    return imported("llama-odd", 4, 13)


@pytest.fixture(scope="module")
def program(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    run("nd-opt", "--shard=dp4", "--lr=1e-3", model, "-o", folder / "step.mlir")
    run("nd-compile", folder / "step.mlir", "-o", folder / "prog", "--dump-stages", folder / "stages")
    return folder / "prog"


def metrics(program, tokens, folder, *options):
    """Loss and gradient norm of each step."""
    path = folder / "metrics.jsonl"
    path.unlink(missing_ok=True)
    run("nd-run", program, "--data", tokens[0], "--data-dtype=uint16", "--steps=6", "--metrics", path, *options)
    return [(row["loss"], row["grad_norm"]) for row in map(json.loads, path.read_text().splitlines())]


def test_equal_ranks_share_one_executable(program):
    manifest = json.loads((program / "manifest.json").read_text())
    assert manifest["ranks"] == 4 and len(manifest["programs"]) == 1
    assert sorted(p.name for p in program.iterdir()) == ["manifest.json", manifest["programs"][0]["file"]]


def test_an_executable_has_neither_llvm_nor_python(program):
    libraries = subprocess.run(["ldd", program / "rank0"], capture_output=True, text=True, check=True).stdout
    assert "libdnnl" in libraries
    assert "LLVM" not in libraries and "MLIR" not in libraries and "python" not in libraries


def test_the_arena_is_at_most_a_twentieth_larger_than_what_lives_in_it(program):
    memory = json.loads((program / "manifest.json").read_text())["memory"]
    assert memory["peak_live_bytes"] <= memory["arena_bytes"] <= 1.05 * memory["peak_live_bytes"]


def test_no_tensor_is_sequence_by_sequence(program):
    """Attention works in blocks: no buffer of the program has two dimensions of the sequence's length."""
    planned = sorted((program.parent / "stages").glob("*.mlir"))[-1].read_text()
    assert "rt.attention" in planned and "13x13" not in planned


def test_two_runs_are_equal_bit_for_bit(program, tokens, tmp_path):
    assert metrics(program, tokens, tmp_path) == metrics(program, tokens, tmp_path)


def test_the_number_of_threads_does_not_change_results(model, tokens, tmp_path):
    run("nd-opt", "--train", "--lr=1e-3", model, "-o", tmp_path / "step.mlir")
    run("nd-compile", tmp_path / "step.mlir", "-o", tmp_path / "prog")
    one, three = (metrics(tmp_path / "prog", tokens, tmp_path, f"--threads={n}") for n in (1, 3))
    for (loss, norm), (other_loss, other_norm) in zip(one, three, strict=True):
        assert abs(loss - other_loss) <= 1e-6 * loss and abs(norm - other_norm) <= 1e-6 * norm


def test_a_step_without_valid_tokens_changes_nothing(program, exported, tmp_path):
    """Labels all -100: the loss is 0, not NaN, nothing is updated."""
    weights = load_file(exported("llama-odd") / "hf" / "model.safetensors")
    ids = torch.arange(52).reshape(4, 13)
    inputs = {
        "input_ids": ids,
        "position_ids": torch.arange(13).expand(4, 13).contiguous(),
        "labels": torch.full((4, 13), -100),
    }
    save_file(weights | inputs, tmp_path / "in.safetensors")
    run("nd-run", program, "--call", tmp_path / "in.safetensors", "-o", tmp_path / "out.safetensors")
    results = load_file(tmp_path / "out.safetensors")
    assert results["loss"].item() == 0 and results["grad_norm"].item() == 0
    assert results["tokens"].item() == 0 and not results["applied"].item()
    for name, value in weights.items():
        assert torch.equal(results[name], value), name
    assert not any(v.any() for n, v in results.items() if n.startswith("exp_avg"))
