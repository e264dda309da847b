"""What a rank's program never has in memory: all of its tokens beside the whole vocabulary, logits wider than a shard, scores.

Buffers of the arena count, not values inside kernels. No two kinds of dimension of the models here have one size.
"""

import itertools
import math
import re

import pytest
from support import run

BATCH, SEQ = 6, 20
VOCABULARY = {"llama": 256, "llama-odd": 251, "gpt2-odd": 251}


def buffers(model, mesh, options, folder):
    """The shapes of a rank's temporary buffers."""
    run("nd-opt", f"--shard={mesh}", *options, model, "-o", folder / "step.mlir")
    run("nd-opt", "--nd-host-pipeline", folder / "step.mlir", "-o", folder / "rank.mlir")
    types = re.findall(r"rt\.buffer at \d+ : memref<((?:\d+x)+)", (folder / "rank.mlir").read_text())
    return {tuple(int(size) for size in shape.split("x")[:-1]) for shape in types}


class Rank:
    """The sizes of what one rank has, by a mesh such as `dp2,tp2`."""

    def __init__(self, vocabulary, mesh):
        degree = {axis: int(size) for axis, size in re.findall(r"([a-z]+)(\d+)", mesh)}
        self.tp, self.cp = degree.get("tp", 1), degree.get("cp", 1)
        part = -(-vocabulary // self.tp)
        # Wider than a shard: the vocabulary, as it is or padded, and several shards of it.
        self.wide = {vocabulary, *(n * part for n in range(2 if self.tp > 1 else 1, self.tp + 1))}
        self.tokens = BATCH * SEQ // math.prod(degree.get(axis, 1) for axis in ("dp", "fsdp", "cp"))
        self.sequences = {SEQ // n for n in (1, self.cp, 2 * self.cp)}

    def whole_logits(self, shapes):
        return {s for s in shapes if any(d in self.wide and math.prod(s) == d * self.tokens for d in s)}

    def wide_values(self, shapes):
        """Also of fewer tokens; a table has no dimension that long, for tp shards it."""
        return {s for s in shapes if self.wide.intersection(s)} if self.tp > 1 else set()

    def scores(self, shapes):
        return {s for s in shapes if any(a in self.sequences and b in self.sequences for a, b in itertools.pairwise(s))}


@pytest.mark.parametrize("options", [(), ("--loss-chunk=8",), ("--dtype=bf16", "--loss-chunk=8")])
@pytest.mark.parametrize("mesh", ["dp2", "fsdp3", "cp2", "tp2", "tp3", "dp2,tp4", "fsdp2,tp2", "dp3,cp2,tp2"])
@pytest.mark.parametrize("name", VOCABULARY)
def test_no_whole_logits_and_no_scores(name, mesh, options, imported, tmp_path):
    rank = Rank(VOCABULARY[name], mesh)
    shapes = buffers(imported(name, BATCH, SEQ), mesh, options, tmp_path)
    if rank.tp > 1 or options:
        assert not rank.whole_logits(shapes)
    assert not rank.wide_values(shapes)
    assert not rank.scores(shapes)


def test_logits_that_are_whole_are_seen(imported, tmp_path):
    """One rank of no tensor axis whose loss is not chunked has them."""
    shapes = buffers(imported("llama", BATCH, SEQ), "dp2", ["--loss-chunk=off"], tmp_path)
    assert Rank(256, "dp2").whole_logits(shapes)
    assert Rank(256, "dp2,tp2").wide_values(shapes)


def test_scores_are_seen(imported, tmp_path):
    """Attention that a model writes out (biases of heads) has them."""
    shapes = buffers(imported("bloom", BATCH, SEQ), "dp2", [], tmp_path)
    assert Rank(251, "dp2").scores(shapes)
