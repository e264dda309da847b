"""Every mutant of the compiler moves a number and is caught: by the verifier, or since the number is not that of one rank.

docs/mutants.md lists them and who catches each; the test compares. test_meshes.py is what catches in CI what the verifier cannot
see.
"""

import dataclasses
import functools
import json
import math
import pathlib
import re
import subprocess

import pytest
from mutants import MUTANTS, Step
from rank_mutants import RANK_MUTANTS, RankProgram
from safetensors.torch import load_file
from support import run
from training import BOUND, Settings

HOW = Settings(optimizer="sgd", lr=0.3, steps=2, batch=4, seq=13)
DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "mutants.md"


@pytest.fixture(scope="module")
def program(imported):
    """(model, mesh, options) -> the text of a rank's program."""

    @functools.cache
    def build(name, mesh, options):
        model = imported(name, HOW.batch, HOW.seq)
        return run("nd-opt", f"--shard={mesh}", *HOW.options(), *options, "--keep-gradients", model)

    return build


@dataclasses.dataclass
class Trained:
    losses: list[float]
    norms: list[float]
    tensors: dict


def train(text, tokens, folder, *options):
    """Two steps of a program; None where it does not compile or run."""
    folder.mkdir()
    (folder / "step.mlir").write_text(text)
    commands = [
        ("nd-compile", *options, folder / "step.mlir", "-o", folder / "prog"),
        (
            "nd-run",
            folder / "prog",
            "--data",
            tokens,
            "--data-dtype=uint16",
            "--no-shuffle",
            "--threads=1",
            "--steps",
            HOW.steps,
        )
        + ("--metrics", folder / "metrics.jsonl", "--save", folder / "saved", "--dump-gradients", folder / "gradients"),
    ]
    for command in commands:
        if subprocess.run([str(c) for c in command], capture_output=True, timeout=120).returncode:
            return None
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    tensors = {f"gradient {n}": t for n, t in load_file(folder / "gradients" / "gradients.safetensors").items()}
    for file in sorted((folder / "saved").glob("*.safetensors")):
        tensors |= {f"weight {n}": t for n, t in load_file(file).items()}
    return Trained([r["loss"] for r in rows], [r["grad_norm"] for r in rows], tensors)


def largest_difference(ours, reference):
    """Relative, over losses, norms, and all gradients or weights together."""
    pairs = zip(ours.losses + ours.norms, reference.losses + reference.norms, strict=True)
    differences = [abs(a - b) / abs(b) for a, b in pairs]
    for kind in ("gradient", "weight"):
        names = [n for n in reference.tensors if n.startswith(kind)]
        square = [sum(t.double().norm().item() ** 2 for t in ts) for ts in (
            [ours.tensors[n].double() - reference.tensors[n].double() for n in names],
            [reference.tensors[n] for n in names],
        )]  # fmt: skip
        differences.append(math.sqrt(square[0] / square[1]))
    return max(d if math.isfinite(d) else math.inf for d in differences)


@pytest.fixture(scope="module")
def reference(program, tokens, tmp_path_factory):
    """The model on one rank, with the options that say which data a step takes."""

    @functools.cache
    def build(name, options):
        options = tuple(option for option in options if option.startswith("--microbatches"))
        return train(program(name, "dp1", options), tokens[0], tmp_path_factory.mktemp("one") / "run")

    return build


def check(text, folder, *options):
    """What nd-opt says to a program, or nothing."""
    file = folder / "mutant.mlir"
    file.write_text(text)
    command = ["nd-opt", *options, file, "-o", "/dev/null"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=60)
    assert (done.returncode != 0) == ("error:" in done.stderr), done.stderr
    return done.stderr


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name.replace(" ", "-"))
def test_is_caught(mutant, program, reference, tokens, tmp_path):
    text = program(mutant.model, mutant.mesh, mutant.options)
    step = Step(text)
    mutant.edit(step)
    mutated = step.text()
    ours = train(mutated, tokens[0], tmp_path / "run")
    if mutant.moves:
        assert ours is not None, "does not run"
        assert largest_difference(ours, reference(mutant.model, mutant.options)) > BOUND, "moves no number"
    error = check(mutated, tmp_path, "-nd-verify-sharding")
    if mutant.caught:
        assert re.search(mutant.caught, error), f"the verifier says: {error or 'nothing'}"
    else:
        assert not error, f"the verifier catches it too; say so in the list: {error}"


@pytest.fixture(scope="module")
def lowered(program, tmp_path_factory):
    """(model, mesh, options) -> the text of what a rank executes."""

    @functools.cache
    def build(name, mesh, options):
        step = tmp_path_factory.mktemp("lowered") / "step.mlir"
        step.write_text(program(name, mesh, options))
        return run("nd-opt", "--nd-host-pipeline", step)

    return build


NESTED = ("rt-verify-memory", "rt-verify-gathers")


@pytest.mark.parametrize("mutant", RANK_MUTANTS, ids=lambda m: m.name.replace(" ", "-"))
def test_rank_mutant_is_caught(mutant, program, lowered, reference, tokens, tmp_path):
    text = (program if mutant.step else lowered)(mutant.model, mutant.mesh, mutant.options)
    edited = (Step if mutant.step else RankProgram)(text)
    mutant.edit(edited)
    mutated = edited.text()
    ours = train(mutated, tokens[0], tmp_path / "run", *(() if mutant.step else ("--unverified",)))
    if mutant.moves:
        assert ours is not None, "does not run"
        assert largest_difference(ours, reference(mutant.model, mutant.options)) > BOUND, "moves no number"
    verifiers = "--nd-host-pipeline" if mutant.step else "--nd-verify-rank-program"
    error = check(mutated, tmp_path, verifiers)
    if not mutant.by:
        assert not error, f"a verifier catches it too; say so in the list: {error}"
        return
    assert error and train(mutated, tokens[0], tmp_path / "verified") is None
    if mutant.by.startswith("rt-") and not mutant.step:
        one = f"rt.program({mutant.by})" if mutant.by in NESTED else mutant.by
        error = check(mutated, tmp_path, f"--pass-pipeline=builtin.module({one})")
    assert re.search(mutant.caught, error), f"{mutant.by} says: {error or 'nothing'}"


@pytest.mark.parametrize(
    ("model", "mesh", "options"), sorted({(m.model, m.mesh, m.options) for m in RANK_MUTANTS}), ids=lambda v: str(v)
)
def test_unmutated_rank_programs_compute_what_one_rank_does(model, mesh, options, lowered, reference, tokens, tmp_path):
    text = lowered(model, mesh, options)
    assert not check(text, tmp_path, "--nd-verify-rank-program")
    assert largest_difference(train(text, tokens[0], tmp_path / "run"), reference(model, options)) <= BOUND


@pytest.mark.parametrize(
    ("model", "mesh", "options"), sorted({(m.model, m.mesh, m.options) for m in MUTANTS}), ids=lambda v: str(v)
)
def test_unmutated_programs_compute_what_one_rank_does(model, mesh, options, program, reference, tokens, tmp_path):
    text = program(model, mesh, options)
    assert not check(text, tmp_path, "-nd-verify-sharding")
    assert largest_difference(train(text, tokens[0], tmp_path / "run"), reference(model, options)) <= BOUND


def test_document_lists_them():
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in DOCUMENT.read_text().splitlines()
        if line.startswith("|")
    ]
    header = [("mutant", "groups", "caught by"), ("---", "---", "---")]
    steps = [(m.name, m.pitfalls, "verifier" if m.caught else "`test_meshes.py`") for m in MUTANTS]
    programs = [(m.name, m.pitfalls, f"`{m.by or 'test_meshes.py'}`") for m in RANK_MUTANTS]
    assert rows == header + steps + header + programs
