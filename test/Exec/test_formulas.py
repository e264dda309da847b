"""The calculator of bytes against published example values."""

import pytest
from formulas import Plan, Step, flops_per_token, gpt2, llama, sent

GPT2 = gpt2(12, 768, 12, 3072, 50257, 1024)
LLAMA_8B = llama(32, 4096, 32, 8, 128, 14336, 128256)
TINY = llama(2, 64, 4, 2, 16, 176, 512)


def per_rank(model, mesh, group, kind, **choices):
    plan = Plan.mesh(mesh, **choices)
    total = sent(model, plan)[group][kind]
    assert total % plan.ranks == 0
    return total // plan.ranks


def test_parameters():
    assert (GPT2.count(), LLAMA_8B.count(), TINY.count()) == (124_439_808, 8_030_261_248, 158_016)


def test_model_flops():
    assert flops_per_token(LLAMA_8B, 8192) == 57_914_449_920
    assert flops_per_token(GPT2, 1024) == 855_166_464


@pytest.mark.parametrize(
    ("mesh", "choices", "gathers", "scatters"),
    [
        ("fsdp8", {}, 26_267_229_184, 28_105_914_368),
        ("fsdp8", {"keep_gathered": True}, 14_052_957_184, 28_105_914_368),
        ("fsdp8", {"zero": 2, "microbatches": 3}, 14_052_957_184, 3 * 28_105_914_368),
        ("fsdp8", {"zero": 1, "microbatches": 3}, 14_052_957_184, 28_105_914_368),
        ("fsdp2,cp4", {}, 26_267_229_184, 28_105_914_368),
        ("dp2,fsdp4", {}, 22_514_767_872, 24_090_783_744),
    ],
)
def test_fsdp(mesh, choices, gathers, scatters):
    choices |= {"bytes": 2, "batch": 8, "seq": 64}
    group = "fsdp+cp" if "cp" in mesh else "fsdp"
    assert per_rank(LLAMA_8B, mesh, group, "all_gather", **choices) == gathers
    assert per_rank(LLAMA_8B, mesh, group, "reduce_scatter", **choices) == scatters


def test_hybrid_sharding():
    assert per_rank(LLAMA_8B, "dp2,fsdp4", "dp", "all_reduce", bytes=2) == 8_030_261_248


def test_data_parallel():
    assert per_rank(LLAMA_8B, "dp8", "dp", "all_reduce") == 56_211_828_736


def test_gpt2_needs_no_padding():
    """50257 rows do not divide by 8; 768 columns do."""
    # 366,614,976 with biases gathered for a backward that does not read them.
    biases = 12 * (3 * 768 + 768 + 3072 + 768 + 2 * 768)
    assert per_rank(GPT2, "fsdp8", "fsdp", "all_gather", bytes=2) == 366_614_976 - biases * 2 * 7 // 8
    assert per_rank(GPT2, "fsdp8", "fsdp", "reduce_scatter", bytes=2) == 435_539_328


def test_microbatches():
    choices = {"microbatches": 4}
    assert per_rank(TINY, "dp2,fsdp2", "fsdp", "all_gather", **choices) == 2_003_456
    assert per_rank(TINY, "dp2,fsdp2", "fsdp", "reduce_scatter", **choices) == 1_264_128
    assert per_rank(TINY, "dp2,fsdp2", "dp", "all_reduce", **choices) == 316_032


def test_norms_under_sequence_parallel():
    """Beside activations: the cross-entropy's two all-reduces, and the norms' gradients on their shards."""
    loss = 2 * 12 * Plan.mesh("fsdp2,tp2").tokens // 2
    assert per_rank(TINY, "fsdp2,tp2", "tp", "all_reduce") - loss == 640


@pytest.mark.parametrize(("tp", "activations"), [(2, 8_724_152_320), (4, 13_086_228_480), (8, 15_267_266_560)])
def test_tensor_parallel(tp, activations):
    """8192 tokens; the same bytes with and without sequence-parallel regions, in other collectives."""
    choices = {"bytes": 2, "batch": 1, "seq": 8192}
    loss = 2 * (tp - 1) * 12 * 8192 // tp
    whole = per_rank(LLAMA_8B, f"tp{tp}", "tp", "all_reduce", sequence_parallel=False, **choices)
    assert whole - loss == activations
    moved = [per_rank(LLAMA_8B, f"tp{tp}", "tp", kind, **choices) for kind in ("all_gather", "reduce_scatter")]
    assert sum(moved) == activations
    if tp == 8:
        assert loss == 172_032


@pytest.mark.parametrize(("cp", "hop"), [(2, 268_435_456), (4, 402_653_184), (8, 469_762_048)])
def test_ring_and_gather(cp, hop):
    """Per layer: keys and values around in forward and in backward in bf16, their gradients in f32."""
    choices = {"bytes": 2, "batch": 1, "seq": 131072}
    assert per_rank(LLAMA_8B, f"cp{cp}", "cp", "permute", **choices) == 32 * (2 * hop + 2 * hop)
    choices["cp_mode"] = "gather"
    assert per_rank(LLAMA_8B, f"cp{cp}", "cp", "all_gather", **choices) == 32 * 2 * hop
    assert per_rank(LLAMA_8B, f"cp{cp}", "cp", "reduce_scatter", **choices) == 32 * 2 * hop


@pytest.mark.parametrize(("cp", "forward"), [(2, 671_088_640), (4, 503_316_480), (8, 293_601_280)])
def test_ulysses(cp, forward):
    """Backward is as forward, with gradients of keys and values in f32."""
    choices = {"bytes": 2, "batch": 1, "seq": 131072, "cp_mode": "ulysses"}
    keys = 2 * (131072 // cp) * 8 * 128 * (cp - 1) // cp  # elements sent
    assert per_rank(LLAMA_8B, f"cp{cp}", "cp", "all_to_all", **choices) == 32 * (2 * forward + 2 * keys)


def test_scalars():
    """Tokens and loss over 8 ranks, the norm over the 16 that hold other gradients: 4 bytes each, 32 ranks."""
    assert sent(TINY, Plan.mesh("dp2,fsdp2,cp2,tp4"))["scalar"] == {"all_reduce": 4 * 2 * 7 * 8 + 2 * 2 * 15 * 4}


def test_key_heads():
    """Fewer key heads than tp are stored on t/k ranks; heads that do not divide are padded, with what they use."""
    few = Step(llama(2, 64, 8, 2, 8, 176, 512), Plan.mesh("tp8"))
    assert (few.kv_slots, few.copies) == (1, 4)
    irregular = Step(llama(2, 60, 6, 2, 10, 176, 512), Plan.mesh("tp4"))
    assert (irregular.kv_slots, irregular.copies, irregular.are_shared) == (2, 1, True)
    padded = Step(llama(2, 64, 4, 2, 16, 176, 512), Plan.mesh("tp3"))
    assert (padded.kv_slots, padded.copies, padded.are_shared) == (1, 1, False)


def test_shared_key_heads():
    """2 heads of 16 x 96 of which 3 ranks have 2 slots: summed whole, on fsdp's shards of the slots, or of the width."""
    model = llama(2, 96, 6, 2, 16, 160, 256)
    key = next(p for p in model.block if p.name == "k_proj")
    whole = 2 * 16 * 96
    assert Step(model, Plan.mesh("tp3")).shared_elements(key) == whole
    assert Step(model, Plan.mesh("fsdp2,tp3")).shared_elements(key) == whole
    assert Step(model, Plan.mesh("fsdp3,tp3")).shared_elements(key) == whole  # 32 rows are not cut, the width is
    assert Step(model, Plan.mesh("fsdp5,tp3")).shared_elements(key) == 35 * 96  # 32 rows padded to 35
    three = llama(2, 96, 6, 3, 16, 160, 256)
    key = next(p for p in three.block if p.name == "k_proj")
    assert Step(three, Plan.mesh("tp2")).shared_elements(key) == 3 * 16 * 96
    assert Step(three, Plan.mesh("fsdp2,tp2")).shared_elements(key) == 4 * 16 * 96
