"""The bytes of a step three times: by the closed forms, by the report of the compiled program, by the counters of its run."""

import json

import pytest
from formulas import Plan, cohere, falcon, gpt2, gpt_neox, llama, sent, sent_between_nodes
from support import run

MODELS = {
    "gpt2": gpt2(2, 64, 4, 256, 256, 64),
    "llama": llama(2, 64, 4, 2, 16, 160, 256),
    "llama-tied": llama(2, 64, 4, 2, 16, 160, 256, tied=True),
}
BATCH, SEQ, STEPS = 24, 16, 2
# A line: the mesh, the options of nd-opt, and what they are called in the closed forms.
OFF = ["--sequence-parallel=off"], {"sequence_parallel": False}
CASES = [
    *(
        (mesh, [], {})
        for mesh in ("dp1", "dp2", "dp3", "dp8", "fsdp2", "dp2,fsdp2", "tp2", "tp4", "dp2,tp4", "fsdp2,tp2")
    ),
    ("dp4", ["--clip=0", "--optimizer=sgd"], {}),
    ("dp2,fsdp4", ["--keep-gathered"], {"keep_gathered": True}),
    ("dp3,fsdp2", ["--zero=2"], {"zero": 2}),
    ("fsdp4", ["--zero=1"], {"zero": 1}),
    ("tp2", *OFF),
    ("tp4", *OFF),
    ("cp2", ["--cp=ring"], {}),
    ("cp4", ["--cp=ring"], {}),
    ("cp3", ["--cp=ring"], {}),
    ("cp2", ["--cp=gather"], {"cp_mode": "gather"}),
    ("cp2", ["--cp=ulysses"], {"cp_mode": "ulysses"}),
    ("cp4", ["--cp=ulysses"], {"cp_mode": "ulysses"}),
    ("cp2,tp2", ["--cp=ulysses"], {"cp_mode": "ulysses"}),
    ("cp2", ["--cp=ulysses"], {"cp_mode": "ulysses", "seq": 13}),  # padded to 14
    ("cp2", ["--cp=ring"], {"seq": 13}),  # to 16
    ("dp2,cp2", ["--cp=ring"], {}),
    ("fsdp1,cp2", ["--cp=ring"], {}),
    ("fsdp2,cp2", ["--cp=gather", "--zero=1"], {"cp_mode": "gather", "zero": 1}),
    ("fsdp2,cp2,tp4", ["--cp=ring"], {}),
    ("dp2,fsdp2,cp2,tp2", ["--cp=ring"], {}),
    ("dp2,fsdp2", ["--microbatches=4"], {"microbatches": 4}),
    ("fsdp2", ["--zero=1", "--microbatches=2"], {"zero": 1, "microbatches": 2}),
    ("dp2,cp2", ["--cp=ring", "--microbatches=2"], {"microbatches": 2}),
    ("fsdp2,tp2", ["--microbatches=2"], {"microbatches": 2}),
    ("dp4", ["--nodes=2"], {"nodes": 2}),
    ("dp6", ["--nodes=3"], {"nodes": 3}),
    ("dp2,fsdp2", ["--nodes=2"], {"nodes": 2}),  # replicas on nodes of their own
    ("fsdp4", ["--nodes=2"], {"nodes": 2}),
    ("fsdp8", ["--nodes=4", "--zero=1"], {"nodes": 4, "zero": 1}),
    ("dp3", ["--nodes=3"], {"nodes": 3}),
    ("fsdp2,tp4", ["--nodes=4"], {"nodes": 4}),  # the boundary goes through tp
    ("fsdp1,cp4", ["--nodes=2", "--cp=ring"], {"nodes": 2}),
    ("cp4", ["--nodes=2", "--cp=gather"], {"nodes": 2, "cp_mode": "gather"}),
    ("cp2", ["--nodes=2", "--cp=ulysses"], {"nodes": 2, "cp_mode": "ulysses"}),
    ("dp2,fsdp2,cp2,tp2", ["--nodes=4", "--cp=ring"], {"nodes": 4}),
    ("dp2,fsdp4", ["--nodes=4", "--microbatches=2"], {"nodes": 4, "microbatches": 2}),
    *(
        (mesh, ["--dtype=bf16", *options], {"bytes": 2} | choices)
        for mesh, options, choices in [
            ("fsdp2", [], {}),
            ("tp2", [], {}),
            ("tp2", *OFF),
            ("dp2,fsdp2,tp2", ["--microbatches=2"], {"microbatches": 2}),
            ("fsdp2,cp2,tp2", ["--cp=ring"], {}),
            ("cp2,tp2", ["--cp=gather"], {"cp_mode": "gather"}),
            ("fsdp2,cp2", ["--cp=ulysses"], {"cp_mode": "ulysses"}),
            # Master copies are stored in shards, and gathered rounded, once a step.
            ("fsdp5", ["--zero=2"], {"zero": 2, "batch": 40}),
            ("dp2,fsdp2", ["--zero=1", "--microbatches=4"], {"zero": 1, "microbatches": 4}),
            ("fsdp2,tp2", ["--zero=2", "--microbatches=2"], {"zero": 2, "microbatches": 2}),
            ("fsdp1,cp2", ["--cp=ring", "--zero=1"], {"zero": 1}),
        ]
    ),
]
# Key heads that ranks along tp share; otherwise than in equal parts but for llama on tp3 and tp4, and where there is one.
SHARED = {
    "llama": MODELS["llama"],
    "llama-6-2": llama(2, 96, 6, 2, 16, 160, 256),
    "llama-6-3": llama(2, 96, 6, 3, 16, 160, 256),
    "llama-4-1": llama(2, 64, 4, 1, 16, 160, 256),
    "qwen3-6-2": llama(2, 96, 6, 2, 16, 160, 256, head_norms=True),
    "falcon-4-1": falcon(2, 48, 4, 192, 251),
}
SHARED_CASES = [
    ("llama", "tp3", [], {}),
    ("llama", "tp5", [], {}),
    ("llama", "dp2,tp6", ["--sequence-parallel=off"], {"sequence_parallel": False}),
    ("llama", "cp3,tp5", ["--cp=ring"], {}),
    ("llama-6-2", "tp3", [], {}),
    ("llama-6-2", "dp2,tp3", [], {}),
    ("llama-6-2", "fsdp2,tp3", [], {}),
    ("llama-6-2", "fsdp3,tp3", ["--zero=1"], {"zero": 1}),
    ("llama-6-2", "fsdp5,tp3", [], {"batch": 40}),
    ("llama-6-2", "fsdp1,cp2,tp3", ["--cp=gather"], {"cp_mode": "gather"}),
    ("llama-6-2", "dp2,fsdp2,tp3", ["--microbatches=2"], {"microbatches": 2}),
    ("llama-6-3", "tp2", [], {}),
    ("llama-6-3", "fsdp2,tp2", [], {}),
    ("llama-4-1", "tp2", [], {}),
    ("llama-4-1", "tp3", [], {}),
    ("llama-4-1", "fsdp2,tp3", [], {}),
    ("llama-4-1", "tp4", *OFF),
    ("llama-4-1", "fsdp2,tp2", ["--dtype=bf16"], {"bytes": 2}),
    ("llama-4-1", "cp2,tp2", ["--cp=gather", "--microbatches=2"], {"cp_mode": "gather", "microbatches": 2}),
    ("llama", "dp2,tp4", ["--dtype=bf16"], {"bytes": 2}),
    ("llama", "cp2,tp4", ["--cp=gather"], {"cp_mode": "gather"}),
    ("llama", "fsdp2,cp2,tp4", ["--cp=gather", "--dtype=bf16"], {"cp_mode": "gather", "bytes": 2}),
    ("qwen3-6-2", "fsdp2,tp3", [], {}),
    ("falcon-4-1", "tp2", *OFF),
    ("falcon-4-1", "dp2,fsdp2,tp2", ["--dtype=bf16"], {"bytes": 2}),
]


# Attention and MLP side by side: their partial sums are reduced together.
PARALLEL = {
    "cohere": cohere(2, 64, 4, 2, 16, 160, 256),
    "gpt_neox": gpt_neox(2, 64, 4, 160, 256),
}
PARALLEL_CASES = [
    ("tp2", [], {}),
    ("tp4", *OFF),
    ("dp2,fsdp2,tp2", ["--microbatches=2"], {"microbatches": 2}),
    ("fsdp2,cp2,tp2", ["--cp=ring", "--dtype=bf16"], {"bytes": 2}),
    ("tp2", ["--sequence-parallel=off", "--dtype=bf16"], {"sequence_parallel": False, "bytes": 2}),
]


def label(value):
    return " ".join(value) if isinstance(value, list) else None


@pytest.mark.parametrize(("mesh", "options", "choices"), CASES, ids=label)
@pytest.mark.parametrize("name", MODELS)
def test_formula_report_and_counters_agree(name, mesh, options, choices, imported, tokens, tmp_path):
    assert_agree(name, MODELS[name], mesh, options, choices, imported, tokens, tmp_path)


@pytest.mark.parametrize(("name", "mesh", "options", "choices"), SHARED_CASES, ids=label)
def test_shared_key_heads(name, mesh, options, choices, imported, tokens, tmp_path):
    assert_agree(name, SHARED[name], mesh, options, choices, imported, tokens, tmp_path)


@pytest.mark.parametrize(("mesh", "options", "choices"), PARALLEL_CASES, ids=label)
@pytest.mark.parametrize("name", PARALLEL)
def test_attention_beside_the_mlp(name, mesh, options, choices, imported, tokens, tmp_path):
    assert_agree(name, PARALLEL[name], mesh, options, choices, imported, tokens, tmp_path)


def assert_agree(name, model, mesh, options, choices, imported, tokens, tmp_path):
    plan = Plan.mesh(mesh, **({"batch": BATCH, "seq": SEQ} | choices))
    expected, between = sent(model, plan), sent_between_nodes(model, plan)
    step, program, metrics = (tmp_path / part for part in ("step.mlir", "prog", "metrics.jsonl"))
    run("nd-opt", f"--shard={mesh}", *options, imported(name, plan.batch, plan.seq), "-o", step)
    report = json.loads(run("nd-opt", "--report=json", step))
    assert report["sent"] == expected
    assert report["sent_between_nodes"] == between

    run("nd-compile", step, "--target=host", "-o", program)
    data = ("--data", tokens[0], "--data-dtype=uint16", "--threads=1")
    run("nd-run", program, *data, "--steps", STEPS, "--metrics", metrics)
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [row["sent"] for row in rows] == [expected] * STEPS
    assert [row["sent_between_nodes"] for row in rows] == [between] * STEPS
    memory = report["memory"]
    assert [row["arena_bytes"] for row in rows] == [memory["arena_bytes"]] * STEPS
    assert sum(memory["live_at_peak"].values()) == memory["peak_live_bytes"] <= memory["arena_bytes"]
    manifest = json.loads((program / "manifest.json").read_text())
    assert manifest["memory"]["peak_live_bytes"] == memory["peak_live_bytes"]
    assert manifest["memory"]["arena_bytes"] == memory["arena_bytes"]
    assert manifest["memory"]["staging_bytes"] == memory["live_at_peak"]["staging"]
