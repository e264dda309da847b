"""Gradient accumulation: a step of several microbatches is a step on all of their samples at once."""

import math

import pytest
import torch
from support import Program, relative
from training import Settings, nd_run, torch_run, zero_slices
from transformers import AutoModelForCausalLM

MODELS = ["gpt2", "llama"]
SEQ = 17


def batches(steps, count, batch, vocabulary):
    """Tokens and labels of every step. Microbatch 1 has no valid label, nor have the second rank's samples of microbatch 2;
    the others have different numbers of them."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        ids = torch.randint(0, vocabulary, (count, batch, SEQ), generator=generator)
        labels = torch.randint(0, vocabulary, (count, batch, SEQ), generator=generator)
        labels[torch.rand(labels.shape, generator=generator) < 0.3] = -100
        labels[0, :, SEQ // 2 :] = -100
        labels[1] = -100
        labels[2, batch // 2 :] = -100
        yield ids, labels


@pytest.mark.parametrize("shard", [None, "dp1", "dp2"])
@pytest.mark.parametrize("name", MODELS)
def test_every_token_weighs_the_same(name, shard, exported, imported, tmp_path):
    """10 steps of AdamW beside PyTorch on one big batch; a third of the microbatches and one rank's part are all ignored."""
    steps, count, batch, settings = 10, 3, 4, Settings()
    model = AutoModelForCausalLM.from_pretrained(exported(name) / "hf", dtype=torch.float32).train()
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=settings.lr)
    options = [f"--shard={shard}"] if shard else []
    text = imported(name, batch, SEQ).read_text()
    program = Program(tmp_path, text, f"--microbatches={count}", *settings.options(), *options)
    state = {n: p.detach() for n, p in model.named_parameters()}
    positions = torch.arange(SEQ).expand(count, batch, SEQ)
    for step, (ids, labels) in enumerate(batches(steps, count, batch, model.config.vocab_size), start=1):
        scalars = {"lr": settings.lr, "bias1": 1 - 0.9**step, "sqrt_bias2": math.sqrt(1 - 0.999**step)}
        given = {"input_ids": ids, "labels": labels, "position_ids": positions, **state}
        given |= {n: torch.tensor(v, dtype=torch.float32) for n, v in scalars.items()}
        arguments = {t["name"] for t in program.manifest["tensors"]}
        out = program.call({n: v for n, v in given.items() if n.split(":")[-1] in arguments})
        state = {n: v for n, v in out.items() if n not in ("loss", "grad_norm", "tokens", "applied")}

        flat = ids.flatten(0, 1)
        logits = model(input_ids=flat, position_ids=positions.flatten(0, 1), use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(list(model.parameters()), settings.clip)
        optimizer.step()

        assert out["tokens"].item() == (labels != -100).sum().item()
        assert out["loss"].item() == pytest.approx(loss.item(), rel=1e-5), f"step {step}"
        assert out["grad_norm"].item() == pytest.approx(norm.item(), rel=1e-5), f"step {step}"
    for parameter, value in model.named_parameters():
        if parameter in state:
            assert relative(state[parameter], value.detach()) <= 1e-3, parameter


@pytest.mark.parametrize("shard", ["dp1", "dp2"])
@pytest.mark.parametrize("name", MODELS)
def test_equals_one_batch_of_all_samples(name, shard, exported, imported, tokens, tmp_path):
    """From a token file: 3 microbatches of 4 against one of 12, and against PyTorch."""
    whole = Settings(steps=5, batch=12, optimizer="sgd", lr=0.5, momentum=0.9)
    ours = nd_run(imported(name, 4, SEQ), tokens[0], whole, tmp_path / "loop", shard, options=["--microbatches=3"])
    once = nd_run(imported(name, 12, SEQ), tokens[0], whole, tmp_path / "once", shard)
    single = torch_run(exported(name) / "hf", tokens[1], whole)
    for reference in (once, single):
        assert ours.losses == pytest.approx(reference.losses, rel=1e-5)
        assert ours.norms == pytest.approx(reference.norms, rel=1e-5)
        assert ours.gradients.keys() == reference.gradients.keys()
        for parameter, expected in reference.gradients.items():
            got, expected = ours.gradients[parameter].clone(), expected.clone()
            if zero := zero_slices(parameter, name):
                zero(got).zero_()
                zero(expected).zero_()
            assert relative(got, expected) <= 1e-5, parameter
        for parameter, got in ours.weights.items():
            assert relative(got, reference.weights[parameter]) <= 1e-5, parameter
    assert ours.sent == once.sent, "gradients are reduced once a step"


def test_memory_and_code_do_not_grow_with_the_number_of_microbatches(imported, tmp_path):
    """One microbatch's activations, whatever their number; the accumulators are what a loop adds."""
    text = imported("gpt2", 8, SEQ).read_text()
    arena, code, inputs = {}, {}, {}
    for count in (1, 2, 16):
        program = Program(tmp_path / str(count), text, "--train", f"--microbatches={count}")
        arena[count] = program.manifest["memory"]["arena_bytes"]
        code[count] = (program.folder / "prog" / program.manifest["programs"][0]["file"]).stat().st_size
        inputs[count] = sum(math.prod(t["shape"]) * 8 for t in program.manifest["tensors"] if t["kind"] == "input")
        weights = sum(math.prod(t["shape"]) * 4 for t in program.manifest["tensors"] if t["kind"] == "weight")
    slack = 64 * 1024  # rows start at cache lines, and buffers of other sizes are packed otherwise
    assert arena[16] - arena[2] <= inputs[16] - inputs[2] + 1024
    assert arena[2] - arena[1] <= inputs[2] - inputs[1] + weights + slack
    assert abs(code[16] - code[2]) <= 4096
