"""Every mesh trains as one rank does: losses, norms, gradients and weights, of a tied GPT-2 and a Llama with grouped heads.

One rank equals PyTorch (test_training.py). By default a subset of meshes that covers every pair of axes; ND_FULL=1
(scripts/test.sh --full) runs all of {1, 2, 4}^4 up to 16 ranks, the meshes with cp also without fsdp, and sizes 3, 5 and 6.
"""

import itertools
import os

import pytest
from training import Settings, assert_equal, nd_run

MODELS = ["gpt2", "llama"]
# Key heads that ranks along tp share otherwise than in equal parts (but for llama on tp3): with biases, norms of each head,
# one weight for queries, keys and values, and one head for all.
SHARED = [
    ("llama", "cp3,tp5"),
    ("llama", "fsdp2,tp3"),
    ("llama", "dp2,tp3"),
    ("llama-6-2", "tp3"),
    ("llama-6-2", "fsdp2,tp3"),
    ("llama-6-2", "fsdp1,cp2,tp3"),
    ("llama-6-2", "fsdp5,tp3"),
    ("llama-6-3", "fsdp2,tp2"),
    ("llama-4-1", "fsdp2,tp3"),
    ("llama-4-1", "cp2,tp2"),
    ("qwen2-6-2", "fsdp3,tp3"),
    ("qwen3-6-2", "dp2,tp3"),
    ("qwen3-6-2", "tp6"),
    ("phi3-6-2", "fsdp2,tp3"),
]
STEPS = 10

SUBSET = [
    *("fsdp2", "tp2", "fsdp1,cp2", "cp2", "tp4", "fsdp4", "cp4", "dp2,fsdp2", "dp2,tp2", "dp2,cp2", "fsdp2,tp2"),
    *(
        "fsdp2,cp2",
        "cp2,tp2",
        "dp2,fsdp2,cp2,tp2",
        "fsdp2,cp2,tp4",
        "dp3,tp3",
        "fsdp5,cp3",
        "tp5",
        "fsdp1,cp3,tp2",
        "tp6",
    ),
]


def every_mesh():
    """Names of all meshes of {1, 2, 4}^4 with up to 16 ranks, fsdp named; those with cp also without it; then other sizes."""
    names = []
    for dp, fsdp, cp, tp in itertools.product((1, 2, 4), repeat=4):
        if dp * fsdp * cp * tp > 16:
            continue
        names.append(f"dp{dp},fsdp{fsdp},cp{cp},tp{tp}")
        if cp > 1 and fsdp == 1:
            names.append(f"dp{dp},cp{cp},tp{tp}")
    return names + [
        "dp3",
        "fsdp3",
        "cp3",
        "tp3",
        "fsdp5",
        "tp5",
        "cp5",
        "tp6",
        "fsdp6",
        "dp3,tp3",
        "fsdp3,tp2",
        "fsdp2,cp3",
        "cp3,tp5",
    ]


MESHES = every_mesh() if os.environ.get("ND_FULL") else SUBSET


def settings(optimizer, mesh):
    """A batch that the data axes divide; a sequence that neither cp nor tp divides."""
    sizes = {axis: int(size) for axis, size in (split(item) for item in mesh.split(","))}
    data = sizes.get("dp", 1) * sizes.get("fsdp", 1)
    batch = 16 if 16 % data == 0 else 4 * data
    common = {"steps": STEPS, "batch": batch, "seq": 13}
    return Settings(**common) if optimizer == "adamw" else Settings(optimizer="sgd", lr=0.3, **common)


def split(item):
    name = item.rstrip("0123456789")
    return name, item[len(name) :]


@pytest.mark.parametrize(("name", "mesh"), [(name, mesh) for name in MODELS for mesh in MESHES] + SHARED)
def test_trains_as_one_rank(name, mesh, imported, one_rank, tokens, tmp_path):
    for optimizer in ("adamw", "sgd"):
        how = settings(optimizer, mesh)
        ours = nd_run(imported(name, how.batch, how.seq), tokens[0], how, tmp_path / optimizer, mesh)
        # AdamW divides by the gradient's own size, which makes noise of zero gradients count: losses and norms judge it.
        assert_equal(name, ours, one_rank(name, how), compare_weights=optimizer == "sgd")


@pytest.mark.parametrize(
    ("mesh", "nodes"), [("dp4", 2), ("fsdp4", 2), ("tp4", 2), ("dp2,fsdp2,cp2,tp2", 4)], ids=lambda value: str(value)
)
def test_nodes_change_nothing(mesh, nodes, imported, one_rank, tokens, tmp_path):
    """Collectives that go over nodes add in another order: always the same one."""
    how = settings("sgd", mesh)
    model, options = imported("llama", how.batch, how.seq), [f"--nodes={nodes}"]
    ours, again = (nd_run(model, tokens[0], how, tmp_path / turn, mesh, options=options) for turn in ("1", "2"))
    assert_equal("llama", ours, one_rank("llama", how), compare_weights=True)
    assert (ours.losses, ours.norms) == (again.losses, again.norms)
    for name, weight in ours.weights.items():
        assert weight.equal(again.weights[name]), name


@pytest.mark.parametrize("mesh", ["cp4", "cp2,tp2"])
def test_repeated_key_heads_change_nothing(mesh, imported, one_rank, tokens, tmp_path):
    """Ulysses where a rank of tp has fewer key heads than cp: each is exchanged several times."""
    how = settings("sgd", mesh)
    ours = nd_run(imported("llama", how.batch, how.seq), tokens[0], how, tmp_path, mesh, options=["--cp=ulysses"])
    assert_equal("llama", ours, one_rank("llama", how), compare_weights=True)


def test_annotated_parameters_change_nothing(imported, one_rank, tokens, tmp_path):
    """Parameters that the user wants whole, or cut elsewhere, among others that are padded for storage: 3 divides no size."""
    how = settings("sgd", "fsdp3")
    options = ["--annotate=*norm.weight=[_]", "--annotate=*up_proj.weight=[_,tp]", "--annotate=lm_head.weight=[tp,_]"]
    ours = nd_run(imported("llama", how.batch, how.seq), tokens[0], how, tmp_path, "fsdp3,tp2", options=options)
    assert_equal("llama", ours, one_rank("llama", how), compare_weights=True)


def test_annotated_inputs_change_nothing(imported, one_rank, tokens, tmp_path):
    """Who shards an input does not change the order in which cp stores it, nor what its padding holds."""
    how = settings("sgd", "cp2")
    options = ["--annotate=input_ids=[cp,_]", "--annotate=labels=[_,_]"]
    ours = nd_run(imported("llama", how.batch, how.seq), tokens[0], how, tmp_path, "cp2", options=options)
    assert_equal("llama", ours, one_rank("llama", how), compare_weights=True)


@pytest.mark.parametrize("sequence_parallel", ["on", "off"])
def test_clipping_counts_no_replica(sequence_parallel, imported, one_rank, tokens, tmp_path):
    """kv heads on two ranks each, norms on all: a replica that counts moves the norm far more than this."""
    how = Settings(steps=5, batch=16, seq=13, clip=0.01)
    options = [f"--sequence-parallel={sequence_parallel}"]
    ours = nd_run(imported("llama", how.batch, how.seq), tokens[0], how, tmp_path, "dp2,tp4", options=options)
    for got, want in zip(ours.norms, one_rank("llama", how).norms, strict=True):
        assert abs(got - want) <= 1e-6 * want
