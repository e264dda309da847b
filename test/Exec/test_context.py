"""A sequence on several ranks in whole models whose attentions see by padding, documents, positions, windows and general masks.

Every mode of cp computes what one rank does, and that is what PyTorch does.
"""

import copy
import functools

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
    "padding alone": lambda ids, positions, visible: visible[:, None, None, :],
    "a mask of its own": lambda ids, positions, mask: mask,
    "a number for each token": lambda ids, positions, numbers: None,
}


def own_input(kind, length):
    """The case's own input, and positions."""
    generator = torch.Generator().manual_seed(0)
    positions = torch.arange(length).expand(BATCH, length).contiguous()
    if kind in ("key padding", "padding alone"):
        return torch.arange(length) < torch.tensor([[length], [length - 4], [3], [1]]), positions
    if kind == "a prefix seen by all":
        return torch.arange(length) < torch.tensor([[0], [2], [7], [length]]), positions
    if kind == "a number for each token":
        return torch.rand(BATCH, length, generator=generator), positions
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
    """Two blocks, one with the mask, one that is causal; both with the mask where that is padding alone, as in an encoder.

    places: "given", an input [batch, sequence]; "one row", an input [1, sequence]; "counted" inside; or no tokens' places, but
    those of a "table" as long as the sequence."""

    def __init__(self, kind, places, length):
        super().__init__()
        self.mask, self.places, self.encodes = MASKS[kind], places, kind == "padding alone"
        self.words, self.table = torch.nn.Embedding(VOCABULARY, WIDTH), torch.nn.Embedding(length, WIDTH)
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, input_ids, own, position_ids):
        counted = torch.arange(input_ids.shape[1])
        where = (
            self.table.weight
            if self.places == "table"
            else self.table(counted if self.places == "counted" else position_ids)
        )
        x = self.words(input_ids) + where
        if own.is_floating_point():
            x = x * own.unsqueeze(2)
        mask = self.mask(input_ids, position_ids, own)
        return self.head(self.blocks[1](self.blocks[0](x, mask), mask if self.encodes else None))


@functools.cache
def build(kind, places, length):
    torch.manual_seed(0)
    return testing.perturb(Model(kind, places, length if places == "table" else 32), 0)


def data(kind, places, length):
    generator = torch.Generator().manual_seed(1)
    ids, labels = (torch.randint(0, VOCABULARY, (BATCH, length), generator=generator) for _ in range(2))
    labels[:, ::5] = -100
    own, positions = own_input(kind, length)
    if places == "one row":
        positions = positions[:1].contiguous()
    return {"input_ids": ids, "own": own, "position_ids": positions, "labels": labels}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """(kind, places, length) -> the model's MLIR."""

    @functools.cache
    def make(kind, places, length):
        folder = tmp_path_factory.mktemp("context")
        inputs = {name: value for name, value in data(kind, places, length).items() if name != "labels"}
        shapes = {name: {0: "batch", 1: "seq"} for name in inputs}
        if kind == "a mask of its own":
            shapes["own"] = {0: "batch", 2: "seq", 3: "seq"}
        if places == "one row":
            shapes["position_ids"] = {1: "seq"}
        if places == "table":
            shapes = {name: {0: "batch"} for name in inputs}
        nd_export.export(
            build(kind, places, length), inputs, folder, outputs={"logits": "logits"}, dynamic_shapes=shapes
        )
        run("nd-import", folder / "model.onnx", f"--batch={BATCH}", f"--seq={length}", "-o", folder / "model.mlir")
        return (folder / "model.mlir").read_text()

    return make


@functools.cache
def reference(kind, places, length, dtype):
    """Logits, loss and gradients of PyTorch."""
    model = copy.deepcopy(build(kind, places, length)).to(dtype)
    given = data(kind, places, length)
    labels = given.pop("labels")
    if given["own"].is_floating_point():
        given["own"] = given["own"].to(dtype)
    logits = model(**given)
    loss = cross_entropy(logits.flatten(0, 1), labels.flatten())
    names, parameters = zip(*model.named_parameters(), strict=True)
    gradients = torch.autograd.grad(loss, parameters)
    return {"logits:logits": logits.detach(), "loss": loss.detach()} | {
        f"gradient:{n}": g for n, g in zip(names, gradients, strict=True)
    }


def compare(kind, length, mesh, options, folder, graph, places="given"):
    """Trains a step, or runs forward; returns the rank's program."""
    program = Program(folder, graph(kind, places, length), *options, f"--shard={mesh}")
    inputs = {t["name"] for t in program.manifest["tensors"] if t["kind"] == "input"}
    given = {name: value for name, value in data(kind, places, length).items() if name in inputs}
    weights = {name: value.detach() for name, value in build(kind, places, length).named_parameters()}
    lr = {} if "--forward-only" in options else {"lr": torch.tensor(0.5)}
    got = program.call(given | weights | lr, "--threads=1")
    single, exact = (reference(kind, places, length, dtype) for dtype in (torch.float32, torch.float64))
    for name in single:
        if (name == "logits:logits") == ("--forward-only" in options):
            assert_close(f"{kind}: {name}", got[name], single[name], exact[name])
    return (folder / "step.mlir").read_text()


ZIGZAG = "order = array<i64: 0, 3, 1, 2>"
GIVEN = [kind for kind in MASKS if kind not in ("padding alone", "a mask of its own")]


@pytest.mark.parametrize("mode", ["ring", "gather", "ulysses"])
@pytest.mark.parametrize("kind", GIVEN)
def test_what_inputs_give_follows_the_sequence(kind, mode, graph, tmp_path):
    """13 tokens, padded to 16, in zig-zag for ring and gather: what inputs [batch, sequence] say is permuted with them.

    Ulysses keeps their order, and pads to 14."""
    step = compare(kind, 13, "dp2,cp2", [*STEP, f"--cp={mode}"], tmp_path, graph)
    assert (ZIGZAG in step) == (mode != "ulysses")
    assert ("%arg0: tensor<2x7xi64>" in step) == (mode == "ulysses")
    assert ("nd.permute" in step) == (mode == "ring")


@pytest.mark.parametrize(("length", "mesh", "own"), [(13, "cp2", 7), (13, "cp2,tp2", 8), (9, "cp4", 3)])
@pytest.mark.parametrize("mode", ["ring", "gather", "ulysses"])
def test_an_encoder_keeps_the_order(mode, length, mesh, own, graph, tmp_path):
    """Every query sees all keys, so ranks have equal work in any order; the last of four has nothing but padding."""
    step = compare("padding alone", length, mesh, [*STEP, f"--cp={mode}"], tmp_path, graph)
    assert "order = " not in step
    assert f"%arg0: tensor<4x{own}xi64>" in step


def test_one_row_of_positions_follows_the_sequence(graph, tmp_path):
    step = compare("key padding", 13, "dp2,cp2", [*STEP, "--cp=ring"], tmp_path, graph, places="one row")
    assert ZIGZAG in step


@pytest.mark.parametrize("mode", ["ring", "gather", "ulysses", "auto"])
def test_a_mask_of_its_own_keeps_the_order(mode, graph, tmp_path):
    """Nothing permutes an input [batch, 1, sequence, sequence]; it is padded where it is used."""
    assert ZIGZAG not in compare("a mask of its own", 13, "cp2", [*STEP, f"--cp={mode}"], tmp_path, graph)


@pytest.mark.parametrize("mode", ["ring", "gather"])
@pytest.mark.parametrize("places", ["counted", "table"])
def test_places_of_its_own_keep_the_order(places, mode, graph, tmp_path):
    """A table of positions that is cut to the sequence's length, or as long."""
    assert ZIGZAG not in compare("key padding", 13, "cp2", [*STEP, f"--cp={mode}"], tmp_path, graph, places=places)


@pytest.mark.parametrize("length", [13, 16])
@pytest.mark.parametrize("mesh", ["cp2", "cp2,tp2", "tp2"])
def test_outputs_are_in_order(mesh, length, graph, tmp_path):
    """Logits leave as the tokens came in, without padding."""
    compare("key padding", length, mesh, ["--forward-only"] + ["--cp=ring"] * ("cp" in mesh), tmp_path, graph)
