"""One training run by nd and the same by PyTorch: the same weights, the same batches, live."""

import dataclasses
import json
import math
import pathlib
import re

import torch
from safetensors.torch import load_file
from support import run
from transformers import AutoModelForCausalLM

BOUND = 1e-5


@dataclasses.dataclass(frozen=True)
class Settings:
    """What both sides do. `lr` constant; decay of parameters with two or more dimensions, as nd's default."""

    optimizer: str = "adamw"
    lr: float = 1e-3
    momentum: float = 0.0
    clip: float = 1.0
    weight_decay: float = 0.01
    steps: int = 20
    batch: int = 24
    seq: int = 17

    def options(self):
        return [
            f"--optimizer={self.optimizer}",
            f"--lr={self.lr}",
            f"--momentum={self.momentum}",
            f"--clip={self.clip}",
            f"--weight-decay={self.weight_decay}",
        ]


@dataclasses.dataclass
class Outcome:
    losses: list[float]
    norms: list[float]
    gradients: dict[str, torch.Tensor]  # of step 1, before clipping
    weights: dict[str, torch.Tensor]  # after the last step
    sent: list[dict] = dataclasses.field(default_factory=list)  # nd: bytes by group and collective, each step


def torch_run(folder: pathlib.Path, ids, settings: Settings, dtype=torch.float32, autocast=None) -> Outcome:
    """Trains the model of `folder` with PyTorch in `dtype`, its forward under autocast to another type if one is given."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).train()
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    rest = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": rest, "weight_decay": 0.0}]
    if settings.optimizer == "adamw":
        optimizer = torch.optim.AdamW(groups, lr=settings.lr)
    else:
        optimizer = torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum)
    out = Outcome([], [], {}, {})
    data = torch.from_numpy(ids.astype("int64"))
    for step in range(settings.steps):
        first = step * settings.batch
        samples = [data[(first + i) * settings.seq : (first + i + 1) * settings.seq + 1] for i in range(settings.batch)]
        batch = torch.stack(samples)
        positions = torch.arange(settings.seq).expand(settings.batch, settings.seq)
        with torch.autocast("cpu", autocast, enabled=autocast is not None):
            logits = model(input_ids=batch[:, :-1], position_ids=positions, use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            out.gradients = {n: p.grad.clone() for n, p in model.named_parameters()}
        parameters = list(model.parameters())
        norm = torch.nn.utils.clip_grad_norm_(parameters, settings.clip if settings.clip else float("inf"))
        optimizer.step()
        out.losses.append(loss.item())
        out.norms.append(norm.item())
    out.weights = {n: p.detach().clone() for n, p in model.named_parameters()}
    return out


def nd_run(model: pathlib.Path, tokens: pathlib.Path, settings, folder: pathlib.Path, shard, threads=1, options=()):
    """Trains the imported model (an MLIR file) with nd; leaves the saved folder in `folder`/saved."""
    folder.mkdir(parents=True, exist_ok=True)
    step = folder / "step.mlir"
    run("nd-opt", f"--shard={shard}", *settings.options(), *options, "--keep-gradients", model, "-o", step)
    run("nd-compile", step, "--target=host", "-o", folder / "prog")
    run(
        *("nd-run", folder / "prog", "--data", tokens, "--data-dtype=uint16", "--no-shuffle", f"--threads={threads}"),
        *("--steps", settings.steps, "--metrics", folder / "metrics.jsonl", "--save", folder / "saved"),
        *("--dump-gradients", folder / "gradients"),
    )
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [r["step"] for r in rows] == list(range(1, settings.steps + 1))
    weights = {}
    for file in sorted((folder / "saved").glob("*.safetensors")):
        weights |= load_file(file)
    gradients = load_file(folder / "gradients" / "gradients.safetensors")
    losses, norms, sent = ([row[key] for row in rows] for key in ("loss", "grad_norm", "sent"))
    return Outcome(losses, norms, gradients, weights, sent)


def zero_slices(name, model_type):
    """Slices of a gradient that are zero in exact arithmetic: a bias added to all keys moves no probability."""
    if model_type.startswith("gpt2") and re.search(r"attn\.c_attn\.bias$", name):
        return lambda g: g[g.shape[0] // 3 : 2 * g.shape[0] // 3]
    return None


def assert_equal(name, ours, reference, compare_weights):
    """What a mesh computes is what one rank does: relative differences within BOUND, tensors by norm, slices that are zero in
    exact arithmetic by the global norm."""
    for what in ("losses", "norms"):
        for step, (a, b) in enumerate(zip(getattr(ours, what), getattr(reference, what), strict=True), 1):
            assert abs(a - b) <= BOUND * abs(b), f"{what} of step {step}: {a} on the mesh, {b} on one rank"
    kinds = ["gradients"] + (["weights"] if compare_weights else [])
    for kind in kinds:
        tensors, expected = getattr(ours, kind), getattr(reference, kind)
        assert tensors.keys() == expected.keys()
        total = math.sqrt(sum(t.double().norm().item() ** 2 for t in expected.values()))
        for parameter, want in expected.items():
            got, want = tensors[parameter].double().clone(), want.double().clone()
            zero = zero_slices(parameter, name)
            if zero is not None:
                difference = (zero(got) - zero(want)).norm().item()
                assert difference <= BOUND * total, (
                    f"{kind} of {parameter}: a slice that is zero differs by {difference}"
                )
                zero(got).zero_()
                zero(want).zero_()
            difference = (got - want).norm().item()
            assert difference <= BOUND * want.norm().item(), (
                f"{kind} of {parameter}: {difference / want.norm().item():.2e}"
            )


def cosine(a, b):
    return torch.nn.functional.cosine_similarity(a.double().flatten(), b.double().flatten(), dim=0).item()


def assert_near(name, ours, reference, exact=None):
    """bf16 beside PyTorch's autocast: losses within 1e-2, every gradient's cosine at least 0.999. For a gradient that is
    left of terms that cancel, those in f64 judge, if given: nd is at most twice as far from them as autocast is."""
    for step, (got, expected) in enumerate(zip(ours.losses, reference.losses, strict=True), 1):
        assert abs(got - expected) <= 1e-2 * expected, f"loss of step {step}: {got}, autocast {expected}"
    assert ours.gradients.keys() == reference.gradients.keys()
    for parameter, expected in reference.gradients.items():
        got, expected = ours.gradients[parameter].clone(), expected.clone()
        assert got.dtype == torch.float32
        if (zero := zero_slices(parameter, name)) is not None:
            zero(got).zero_()
            zero(expected).zero_()
        near = cosine(got, expected) >= 0.999
        if not near and exact is not None:
            near = 1 - cosine(got, exact[parameter]) <= 2 * (1 - cosine(expected, exact[parameter]))
        assert near, f"gradient of {parameter}: cosine {cosine(got, expected)}"
