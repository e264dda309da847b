"""Options of the step beside each other, on meshes: every pair of values meets in some case, on ranks that compute what one does.

f32 is compared with one rank, bf16 with PyTorch's autocast. Labels have holes; of three microbatches one leaves a data rank
without any valid label, and another a rank of cp.
"""

import functools

import pytest
import torch
from covering import covering, every_pair, pairs
from support import Program
from training import Outcome, Settings, assert_equal, assert_near
from transformers import AutoModelForCausalLM

# The value of a factor is what nd-opt is told, where it is an option.
FACTORS = {
    "mesh": ["dp2,fsdp2", "fsdp3", "dp2,tp2", "fsdp2,tp4", "cp2,tp2", "fsdp2,cp2", "dp2,cp4", "dp2,fsdp2,cp2,tp2"],
    "zero": ["--zero=3", "--zero=2", "--zero=1", None],
    "gathered": ["again", "--keep-gathered", None],
    "cp": ["--cp=ring", "--cp=gather", "--cp=ulysses", None],
    "sequence_parallel": ["--sequence-parallel=on", "--sequence-parallel=off", None],
    "model": ["gpt2", "qwen2"],
    "window": ["everywhere", "second layer"],
    "sizes": ["even", "odd"],
    "microbatches": ["--microbatches=1", "--microbatches=3"],
    "dtype": ["--dtype=f32", "--dtype=bf16"],
    "loss_chunk": ["--loss-chunk=auto", "--loss-chunk=off", "--loss-chunk=5"],
}
AXIS = {"zero": "fsdp", "gathered": "fsdp", "cp": "cp", "sequence_parallel": "tp"}
# Pairs that exclude each other, and why.
EXCLUDED = {
    frozenset({("zero", zero), ("gathered", "--keep-gathered")}): "nothing is gathered in forward that could be kept"
    for zero in ("--zero=2", "--zero=1")
}
EXCLUDED[frozenset({("model", "gpt2"), ("window", "second layer")})] = "GPT-2 has no windows"
EXCLUDED |= {
    frozenset({("mesh", mesh), (factor, value)}): f"the mesh has no {axis}"
    for factor, axis in AXIS.items()
    for mesh in FACTORS["mesh"]
    for value in FACTORS[factor]
    if value is not None and axis not in mesh
}
SETTINGS = Settings(optimizer="sgd", lr=0.3, momentum=0.9, steps=3, batch=12)


def allowed(case):
    """A factor has no value exactly where the mesh lacks its axis."""
    if any(
        name in case and "mesh" in case and (case[name] is None) == (axis in case["mesh"])
        for name, axis in AXIS.items()
    ):
        return False
    return not pairs(case) & EXCLUDED.keys()


CASES = covering(FACTORS, allowed)


def label(case):
    return " ".join(value.removeprefix("--") for value in case.values() if value)


def test_every_pair_of_values_meets():
    met = set().union(*map(pairs, CASES))
    assert set(every_pair(FACTORS)) - met == EXCLUDED.keys()
    assert len(CASES) <= 30


def model_of(case):
    """Ulysses exchanges heads, so that cp and tp together have to divide them; all else may be odd."""
    name = case["model"] + ("-window" if case["window"] == "second layer" else "")
    name += "-odd" if case["sizes"] == "odd" else ""
    return name + ("-4-heads" if case["cp"] == "--cp=ulysses" else "")


def length_of(case):
    return 16 if case["sizes"] == "even" else 13


def count_of(case):
    return int(case["microbatches"][-1])


def batches(length, count, vocabulary):
    """input_ids and labels of every step, [M, B, S]."""
    generator = torch.Generator().manual_seed(0)
    shape = count, SETTINGS.batch, length
    for _ in range(SETTINGS.steps):
        ids, labels = (torch.randint(0, vocabulary, shape, generator=generator) for _ in range(2))
        labels[torch.rand(shape, generator=generator) < 0.3] = -100
        if count > 1:
            labels[1, : SETTINGS.batch // 2] = -100  # the first data rank
            labels[2, :, 4:] = -100  # the second rank of cp, in zig-zag or not
        yield ids, labels


def loss_of(model, ids, labels):
    logits = model(input_ids=ids.flatten(0, 1), use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def train(program, parameters, vocabulary, length, count):
    """Steps of a program, each fed what the one before returned."""
    out, state = Outcome([], [], {}, {}), parameters
    tensors = program.manifest["tensors"]
    inputs = {tensor["name"] for tensor in tensors if tensor["kind"] in ("input", "scalar")}
    for ids, labels in batches(length, count, vocabulary):
        given = {"input_ids": ids, "labels": labels, "position_ids": torch.arange(length).expand(ids.shape)}
        given = {name: value if count > 1 else value.squeeze(0) for name, value in given.items() if name in inputs}
        results = program.call(given | {"lr": torch.tensor(SETTINGS.lr)} | state, "--threads=1")
        assert results["tokens"].item() == (labels != -100).sum().item()
        gradients = {n.removeprefix("gradient:"): v for n, v in results.items() if n.startswith("gradient:")}
        state = {n: v for n, v in results.items() if n.removeprefix("momentum:") in gradients}
        out.losses.append(results["loss"].item())
        out.norms.append(results["grad_norm"].item())
        out.gradients = out.gradients or gradients
    out.weights = {name: state[name] for name in gradients}
    return out


@pytest.fixture(scope="module")
def parameters(exported):
    """Name of a model -> its parameters, and the size of its vocabulary."""

    @functools.cache
    def build(name):
        model = AutoModelForCausalLM.from_pretrained(exported(name) / "hf", dtype=torch.float32)
        return {n: p.detach() for n, p in model.named_parameters()}, model.config.vocab_size

    return build


@pytest.fixture(scope="module")
def step_of(imported, parameters, tmp_path_factory):
    """(model, length, microbatches, options) -> the outcome of nd."""

    def build(name, length, count, *options):
        text = imported(name, SETTINGS.batch, length).read_text()
        folder = tmp_path_factory.mktemp("step")
        program = Program(folder, text, *SETTINGS.options(), f"--microbatches={count}", "--keep-gradients", *options)
        return train(program, *parameters(name), length, count)

    return build


@pytest.fixture(scope="module")
def one_rank_of(step_of):
    return functools.cache(step_of)


@pytest.fixture(scope="module")
def autocast_of(exported):
    """(model, length, microbatches) -> the outcome of PyTorch under autocast to bf16, and the gradients of step 1 in f64."""

    def gradients(model, loss):
        loss.backward()
        return {n: p.grad.clone() for n, p in model.named_parameters()}

    @functools.cache
    def build(name, length, count):
        model = AutoModelForCausalLM.from_pretrained(exported(name) / "hf", dtype=torch.float32).train()
        double = AutoModelForCausalLM.from_pretrained(exported(name) / "hf", dtype=torch.float64).train()
        exact = None
        decay = [SETTINGS.weight_decay if p.ndim >= 2 else 0.0 for p in model.parameters()]
        groups = [{"params": [p], "weight_decay": d} for p, d in zip(model.parameters(), decay, strict=True)]
        optimizer = torch.optim.SGD(groups, lr=SETTINGS.lr, momentum=SETTINGS.momentum)
        out = Outcome([], [], {}, {})
        for ids, labels in batches(length, count, model.config.vocab_size):
            exact = exact or gradients(double, loss_of(double, ids, labels))
            with torch.autocast("cpu", torch.bfloat16):
                loss = loss_of(model, ids, labels)
            optimizer.zero_grad()
            found = gradients(model, loss)
            out.gradients = out.gradients or found
            torch.nn.utils.clip_grad_norm_(list(model.parameters()), SETTINGS.clip)
            optimizer.step()
            out.losses.append(loss.item())
        return out, exact

    return build


@pytest.mark.parametrize("case", CASES, ids=label)
def test_changes_nothing(case, step_of, one_rank_of, autocast_of):
    what = model_of(case), length_of(case), count_of(case)
    options = [value for name, value in case.items() if value and value.startswith("--") and name != "microbatches"]
    ours = step_of(*what, f"--shard={case['mesh']}", *options)
    if case["dtype"] == "--dtype=bf16":
        assert_near(what[0], ours, *autocast_of(*what))
    else:
        assert_equal(what[0], ours, one_rank_of(*what), compare_weights=True)
