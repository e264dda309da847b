"""--fsdp-unit: which parameters are gathered together changes when and how often they are, and nothing else."""

import json

import pytest
from formulas import Plan, gpt2, llama, sent
from support import run
from training import Settings, assert_equal, nd_run

MODELS = {"gpt2": gpt2(2, 64, 4, 256, 256, 64), "llama": llama(2, 64, 4, 2, 16, 160, 256)}
HOW = Settings(optimizer="sgd", lr=0.3, steps=3, batch=8, seq=16)
LAYERS = ["model.layers.0", "model.layers.1"]
CASES = [
    # Everything is gathered once, and stays until backward ends.
    ("llama", "whole", "dp2,fsdp2", {"whole": True}, {"model"}),
    ("gpt2", "whole", "fsdp2,tp2", {"whole": True}, {"model"}),
    # Forward reads the head last, whose unit no longer has the norm: that is gathered again.
    (
        *("llama", "lm_head", "fsdp2,tp2", {"aside": ("norm",)}),
        {"embedding", *LAYERS, "head", "lm_head", *(f"{unit}, again" for unit in (*LAYERS, "head"))},
    ),
    # More units of the same parameters: more gathers of as many bytes.
    (
        *("llama", "*.{self_attn,mlp}", "dp2,fsdp2", {}),
        {"embedding", "head"}
        | {
            f"{layer}{part}{again}"
            for layer in LAYERS
            for part in ("", ".self_attn", ".mlp")
            for again in ("", ", again")
        },
    ),
    # The outermost match: all layers are one unit.
    ("llama", "*layers*", "fsdp4", {}, {"embedding", "model.layers", "model.layers, again", "head"}),
]


@pytest.mark.parametrize(
    ("name", "unit", "mesh", "choices", "units"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_unit_changes_only_what_is_gathered(name, unit, mesh, choices, units, imported, one_rank, tokens, tmp_path):
    model, option = imported(name, HOW.batch, HOW.seq), f"--fsdp-unit={unit}"
    expected = sent(MODELS[name], Plan.mesh(mesh, batch=HOW.batch, seq=HOW.seq, **choices))
    report = json.loads(run("nd-opt", "--report=json", f"--shard={mesh}", option, *HOW.options(), model))
    assert report["sent"] == expected
    assert {c["unit"] for c in report["collectives"] if "unit" in c} == units
    ours = nd_run(model, tokens[0], HOW, tmp_path, mesh, options=[option])
    assert ours.sent == [expected] * HOW.steps
    assert_equal(name, ours, one_rank(name, HOW), compare_weights=True)
    run("nd-opt", "--nd-host-pipeline", "--rt-verify-gathers", tmp_path / "step.mlir", "-o", tmp_path / "program.mlir")
