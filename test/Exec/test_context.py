"""A sequence on several ranks in whole models whose attentions see by padding, documents, positions, windows and general masks.

Every mode of cp computes what one rank does, and that is what PyTorch does.
"""

import functools
import subprocess

import nd_export
import pytest
import torch
from nd_export import testing
from support import Program, assert_close, run
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

BATCH, VOCABULARY, WIDTH, HEADS = 4, 61, 32, 4
STEP = ("--optimizer=sgd", "--lr=0.5", "--clip=0", "--weight-decay=0", "--keep-gradients")


def tril(ids):
    return torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()


def causal(positions):
    return positions[:, None, :, None] >= positions[:, None, None, :]


def near(positions, window):
    return positions[:, None, :, None] < positions[:, None, None, :] + window


def same(documents):
    return documents[:, None, :, None] == documents[:, None, None, :]


# What a query may see: of tokens, positions, and an input of the case's own.
MASKS = {
    "key padding": lambda ids, positions, visible: tril(ids) & visible[:, None, None, :],
    "documents, positions and a window": lambda ids, positions, d: causal(positions) & near(positions, 4) & same(d),
    "a prefix seen by all": lambda ids, positions, prefix: causal(positions) | prefix[:, None, None, :],
    "a mask of its own": lambda ids, positions, mask: mask,
}


def own_input(kind, length):
    """The case's own input, and positions."""
    generator = torch.Generator().manual_seed(0)
    positions = torch.arange(length).expand(BATCH, length).contiguous()
    if kind == "key padding":
        return torch.arange(length) < torch.tensor([[length], [length - 4], [3], [1]]), positions
    if kind == "a prefix seen by all":
        return torch.arange(length) < torch.tensor([[0], [2], [7], [length]]), positions
    if kind == "a mask of its own":
        own = torch.rand(BATCH, 1, length, length, generator=generator) < 0.3
        return own | torch.eye(length, dtype=torch.bool), positions
    starts = torch.rand(BATCH, length, generator=generator) < 0.25
    documents = starts.long().cumsum(1)
    first = torch.where(starts, torch.arange(length), 0).cummax(1).values
    return documents, positions - first


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.norm, self.up, self.down = (
            torch.nn.LayerNorm(WIDTH),
            torch.nn.Linear(WIDTH, 48),
            torch.nn.Linear(48, WIDTH),
        )

    def forward(self, x, mask):
        q, k, v = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, 2))
        x = x + self.out(scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None).transpose(1, 2).flatten(2))
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


class Model(torch.nn.Module):
    """Two blocks, one with the mask, one that is causal; positions from their input, or counted inside."""

    def __init__(self, kind, counted):
        super().__init__()
        self.mask, self.counted = MASKS[kind], counted
        self.words, self.places = torch.nn.Embedding(VOCABULARY, WIDTH), torch.nn.Embedding(32, WIDTH)
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, input_ids, own, position_ids):
        places = torch.arange(input_ids.shape[1]) if self.counted else position_ids
        x = self.words(input_ids) + self.places(places)
        x = self.blocks[0](x, self.mask(input_ids, position_ids, own))
        return self.head(self.blocks[1](x, None))


@functools.cache
def build(kind, counted=False):
    torch.manual_seed(0)
    return testing.perturb(Model(kind, counted), 0)


def data(kind, length):
    generator = torch.Generator().manual_seed(1)
    ids, labels = (torch.randint(0, VOCABULARY, (BATCH, length), generator=generator) for _ in range(2))
    labels[:, ::5] = -100
    own, positions = own_input(kind, length)
    return {"input_ids": ids, "own": own, "position_ids": positions, "labels": labels}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """(kind, length, counted positions) -> the model's MLIR."""

    @functools.cache
    def make(kind, length, counted):
        folder = tmp_path_factory.mktemp("context")
        inputs = {name: value for name, value in data(kind, length).items() if name != "labels"}
        shapes = {name: {0: "batch", 1: "seq"} for name in inputs}
        if kind == "a mask of its own":
            shapes["own"] = {0: "batch", 2: "seq", 3: "seq"}
        nd_export.export(build(kind, counted), inputs, folder, outputs=["logits"], dynamic_shapes=shapes)
        run("nd-import", folder / "model.onnx", f"--batch={BATCH}", f"--seq={length}", "-o", folder / "model.mlir")
        return (folder / "model.mlir").read_text()

    return make


@functools.cache
def reference(kind, length, counted, dtype):
    """Loss and gradients of PyTorch."""
    model = build(kind, counted).to(dtype)
    given = data(kind, length)
    labels = given.pop("labels")
    loss = cross_entropy(model(**given).flatten(0, 1), labels.flatten())
    names, parameters = zip(*model.named_parameters(), strict=True)
    results = {"loss": loss.detach()}
    results |= dict(zip((f"gradient:{n}" for n in names), torch.autograd.grad(loss, parameters), strict=True))
    build(kind, counted).to(torch.float32)
    return results


def compare(kind, length, mesh, options, folder, graph, counted=False):
    program = Program(folder, graph(kind, length, counted), *STEP, f"--shard={mesh}", *options)
    inputs = {t["name"] for t in program.manifest["tensors"] if t["kind"] == "input"}
    given = {name: value for name, value in data(kind, length).items() if name in inputs}
    weights = {name: value.detach() for name, value in build(kind, counted).named_parameters()}
    got = program.call(given | weights | {"lr": torch.tensor(0.5)}, "--threads=1")
    exact = reference(kind, length, counted, torch.float64)
    for name, single in reference(kind, length, counted, torch.float32).items():
        assert_close(f"{kind}: {name}", got[name], single, exact[name])
    return (folder / "step.mlir").read_text()


@pytest.mark.parametrize("mode", ["ring", "gather", "ulysses"])
@pytest.mark.parametrize("kind", [kind for kind in MASKS if kind != "a mask of its own"])
def test_masks_follow_the_sequence(kind, mode, graph, tmp_path):
    """13 tokens, padded to 16, in zig-zag for ring and gather: what inputs [batch, sequence] say is permuted with them."""
    step = compare(kind, 13, "dp2,cp2", [f"--cp={mode}"], tmp_path, graph)
    assert ("order = array<i64: 0, 3, 1, 2>" in step) == (mode != "ulysses")
    assert ("nd.permute" in step) == (mode == "ring")


@pytest.mark.parametrize("mode", ["ring", "gather", "ulysses", "auto"])
def test_a_mask_of_its_own_keeps_the_order(mode, graph, tmp_path):
    """Nothing permutes an input [batch, 1, sequence, sequence]."""
    step = compare("a mask of its own", 16, "cp2", [f"--cp={mode}"], tmp_path, graph)
    assert "order = array<i64: 0, 3, 1, 2>" not in step


@pytest.mark.parametrize("mode", ["ring", "gather"])
def test_counted_positions_keep_the_order(mode, graph, tmp_path):
    """A table of positions cut to the sequence's length."""
    step = compare("key padding", 16, "cp2", [f"--cp={mode}"], tmp_path, graph, counted=True)
    assert "order = array<i64: 0, 3, 1, 2>" not in step


def test_what_cannot_be_padded_is_named(graph, tmp_path):
    (tmp_path / "model.mlir").write_text(graph("a mask of its own", 13, False))
    command = ("nd-opt", "--shard=cp2", tmp_path / "model.mlir", "-o", tmp_path / "step.mlir")
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "has a mask that no input of batch and sequence gives" in done.stderr and "--seq=16" in done.stderr
