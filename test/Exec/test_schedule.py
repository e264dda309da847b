"""Gathers of parameters start a unit early and are given back behind it; reductions of gradients run beside backward.

The report says when, and `rt-verify-gathers` at the end of the pipeline checks the programs.
"""

import json
import pathlib
import subprocess
import sys

import pytest
from support import run

GRAPH = pathlib.Path(__file__).resolve().parents[2] / "benchmark" / "llama_graph.py"
BATCH, SEQ = 24, 16
MODELS = ["gpt2-deep", "llama-deep"]


def report_of(model, *options):
    return json.loads(run("nd-opt", "--report=json", *options, model))


def gathers_of(report):
    """(unit, units ahead, bytes) in the order in which they start; a unit has one for each type and group."""
    return [(c["unit"], c["units_ahead"], c["payload_bytes"]) for c in report["collectives"] if "unit" in c]


@pytest.mark.parametrize(
    "options", [(), ("--keep-gathered",), ("--dtype=bf16",), ("--optimizer=sgd", "--clip=0"), ("--prefetch-units=2",)]
)
@pytest.mark.parametrize("mesh", ["fsdp2", "dp2,fsdp4", "fsdp2,cp2,tp2"])
@pytest.mark.parametrize("name", MODELS)
def test_gathers_are_a_unit_ahead(name, mesh, options, imported, tmp_path):
    model = imported(name, BATCH, SEQ)
    report = report_of(model, f"--shard={mesh}", *options)
    gathers = gathers_of(report)
    most = 2 if "--prefetch-units=2" in options else 1
    names = list(dict.fromkeys(unit for unit, _, _ in gathers))
    again = [unit for unit in names if unit.endswith(", again")]
    # Nothing runs before what the first kernel reads: the embedding (of GPT-2 the head's table) and the first block's norm.
    first = {"embedding", next(unit for unit in names if unit.endswith(".0"))} | (
        {"head"} if name == "gpt2-deep" else set()
    )
    for unit, ahead, _ in gathers:
        assert ahead <= most
        assert ahead >= 1 or unit in first, unit
    assert bool(again) == ("--keep-gathered" not in options)
    run("nd-opt", f"--shard={mesh}", *options, model, "-o", tmp_path / "step.mlir")
    run("nd-opt", "--nd-host-pipeline", tmp_path / "step.mlir", "-o", tmp_path / "program.mlir")
    if again:
        # The current unit and those ahead, beside the last unit, which backward needs at once, and a tied table.
        sizes = {unit: sum(b for u, _, b in gathers if u == unit) for unit in names}
        kept = [unit for unit in names if unit not in again and unit + ", again" not in names]
        blocks = max(size for unit, size in sizes.items() if unit not in kept)
        assert report["memory"]["most_by_class"]["gathers"] <= (1 + most) * blocks + sum(sizes[unit] for unit in kept)


@pytest.fixture(scope="module")
def llama_8b(tmp_path_factory):
    """The graph of a Llama 8B with fewer layers: four are as many as an order of them needs."""
    path = tmp_path_factory.mktemp("8b") / "model.mlir"
    subprocess.run(
        [sys.executable, GRAPH, "--model=8b", "--layers=4", "--batch=16", "--seq=8192", "-o", path], check=True
    )
    return path


def test_gathers_and_scatters_hide(llama_8b):
    report = report_of(llama_8b, "--shard=fsdp8", "--dtype=bf16", "--system=h100x8")
    collectives = [c for c in report["collectives"] if not c["scalar"]]
    gathers = [c for c in collectives if "unit" in c]
    exposed = [c for c in gathers if c["exposed_seconds"] > 0]
    assert {c["unit"] for c in exposed} <= {"embedding", "model.layers.0"}
    scatters = [c for c in collectives if c["kind"] == "reduce_scatter"]
    hidden = [c for c in scatters if c["exposed_seconds"] == 0]
    assert sum(c["payload_bytes"] for c in hidden) > 0.6 * sum(c["payload_bytes"] for c in scatters)
