"""What a rank's program never has in memory: all of its tokens beside the whole vocabulary, logits wider than a shard, scores.

`nd-verify-footprint` sees to it for every program, by structure; here is what it promises, lists and refuses. A few
programs are looked at by the shapes of their buffers too (values inside kernels do not count), which shares nothing with it.
"""

import itertools
import json
import math
import re
import subprocess

import pytest
from mutants import Step
from support import run

BATCH, SEQ = 6, 20
VOCABULARY = {"llama": 256, "llama-odd": 251, "gpt2-odd": 251}
CHUNKS = ("--loss-chunk=8",)


class Rank:
    """The sizes of what one rank has, by a mesh such as `dp2,tp2`."""

    def __init__(self, vocabulary, mesh, batch=BATCH, seq=SEQ):
        degree = {axis: int(size) for axis, size in re.findall(r"([a-z]+)(\d+)", mesh)}
        self.tp, self.cp = degree.get("tp", 1), degree.get("cp", 1)
        self.width = -(-vocabulary // self.tp)
        # Wider than a shard: the vocabulary, as it is or padded, and several shards of it.
        self.wide = {vocabulary, *(n * self.width for n in range(2 if self.tp > 1 else 1, self.tp + 1))}
        multiple = math.lcm(2 * self.cp if self.cp > 1 else 1, self.cp * self.tp)  # the sequence is padded to it
        self.tokens = (
            batch * (-(-seq // multiple) * multiple) // math.prod(degree.get(a, 1) for a in ("dp", "fsdp", "cp"))
        )
        self.sequences = {seq // n for n in (1, self.cp, 2 * self.cp)}

    def whole_logits(self, shapes):
        return {s for s in shapes if any(d in self.wide and math.prod(s) == d * self.tokens for d in s)}

    def wide_values(self, shapes):
        """Also of fewer tokens; a table has no dimension that long, for tp shards it."""
        return {s for s in shapes if self.wide.intersection(s)} if self.tp > 1 else set()

    def scores(self, shapes):
        return {s for s in shapes if any(a in self.sequences and b in self.sequences for a, b in itertools.pairwise(s))}


class Footprint:
    """What the compiler promises of a program, and what its report lists, by what it is."""

    def __init__(self, model, mesh, options, folder):
        step, report = folder / "step.mlir", folder / "report.json"
        options = [f"--shard={mesh}", "--report=json", f"--report-file={report}", *options]
        run("nd-opt", *options, model, "-o", step)
        memory = json.loads(report.read_text())["memory"]
        module = step.read_text().split("\n", 1)[0]
        self.promises = {k: int(v) for k, v in re.findall(r"(chunked_\w+|vocabulary_width) = (\d+)", module)}
        self.scores = [entry for entry in memory["listed"] if entry["what"] == "scores"]
        self.logits = [entry for entry in memory["listed"] if entry["what"] == "logits"]


def buffers(folder):
    """The shapes of a rank's temporary buffers."""
    run("nd-opt", "--nd-host-pipeline", folder / "step.mlir", "-o", folder / "rank.mlir")
    types = re.findall(r"rt\.buffer at \d+ : memref<((?:\d+x)+)", (folder / "rank.mlir").read_text())
    return {tuple(int(size) for size in shape.split("x")[:-1]) for shape in types}


def expected(rank, chunked):
    width = {"vocabulary_width": rank.width} if rank.tp > 1 else {}
    return width | ({"chunked_tokens": rank.tokens, "chunked_width": rank.width} if chunked else {})


@pytest.mark.parametrize("options", [(), CHUNKS, ("--dtype=bf16", *CHUNKS)])
@pytest.mark.parametrize("mesh", ["dp2", "fsdp3", "cp2", "tp2", "tp3", "dp2,tp4", "fsdp2,tp2", "dp3,cp2,tp2"])
@pytest.mark.parametrize("name", VOCABULARY)
def test_no_whole_logits_and_no_scores(name, mesh, options, imported, tmp_path):
    rank, found = Rank(VOCABULARY[name], mesh), Footprint(imported(name, BATCH, SEQ), mesh, options, tmp_path)
    assert found.promises == expected(rank, chunked=bool(options))
    assert not found.scores
    widths = {entry["shape"][-1] for entry in found.logits}
    assert widths == (set() if options else {rank.width})


@pytest.mark.parametrize("mesh", ["fsdp2,tp2", "dp3,cp2,tp2"])
@pytest.mark.parametrize("name", VOCABULARY)
def test_by_shapes(name, mesh, imported, tmp_path):
    rank = Rank(VOCABULARY[name], mesh)
    Footprint(imported(name, BATCH, SEQ), mesh, CHUNKS, tmp_path)
    shapes = buffers(tmp_path)
    assert not rank.whole_logits(shapes)
    assert not rank.wide_values(shapes)
    assert not rank.scores(shapes)


def test_logits_that_are_whole_are_seen(imported, tmp_path):
    """One rank of no tensor axis whose loss is not chunked has them."""
    found = Footprint(imported("llama", BATCH, SEQ), "dp2", ["--loss-chunk=off"], tmp_path)
    assert {tuple(entry["shape"]) for entry in found.logits} == {(60, 256), (3, 20, 256)}
    assert all(entry["bytes"] == 4 * 60 * 256 for entry in found.logits)
    shapes = buffers(tmp_path)
    assert Rank(256, "dp2").whole_logits(shapes)
    assert Rank(256, "dp2,tp2").wide_values(shapes)


@pytest.mark.parametrize("mesh", ["dp2", "dp2,tp2"])
def test_scores_are_seen(mesh, imported, tmp_path):
    """Attention that a model writes out (biases of heads) has them; the report says where."""
    found = Footprint(imported("bloom", BATCH, SEQ), mesh, [], tmp_path)
    assert {tuple(entry["shape"][-2:]) for entry in found.scores} == {(SEQ, SEQ)}
    assert all("modeling_bloom.py" in entry["location"] for entry in found.scores)
    assert Rank(251, mesh).scores(buffers(tmp_path))


def test_logits_that_a_pass_would_gather_are_refused(imported, tmp_path):
    """No number changes, and no other verifier sees it: every rank has its shard again right behind."""
    Footprint(imported("llama", BATCH, SEQ), "dp2,tp2", [], tmp_path)
    step = Step((tmp_path / "step.mlir").read_text())
    made = step.find(r"nd\.dot_general", r"nd\.logits")
    logits, (*_, shard) = step.result(made), step.types(made)
    whole = shard.replace("x128x", "x256x")
    gather = 'over @mesh ["tp"] dims = [2] instance = 9001 names = ["logits"] reason = ""'
    cut = 'over @mesh ["tp"] dim = 2 instance = 9002 name = "logits" reason = ""'
    step.replace(logits, "%own", made + 1)
    step.lines[made + 1 : made + 1] = [
        f"%whole = nd.all_gather {logits} {gather} : {shard} -> {whole}",
        f"%own = nd.all_slice %whole {cut} : {whole} -> {shard}",
    ]
    (tmp_path / "gathered.mlir").write_text(step.text())
    run("nd-opt", "-nd-verify-sharding", tmp_path / "gathered.mlir", "-o", "/dev/null")
    command = ["nd-compile", tmp_path / "gathered.mlir", "-o", tmp_path / "prog"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode
    assert f"result 0 of 'nd.all_gather', '{whole}', is 60 tokens x 256 words of the vocabulary" in done.stderr
    assert "modeling_llama.py" in done.stderr or "gathered.mlir" in done.stderr


@pytest.mark.parametrize("options", [(), CHUNKS])
@pytest.mark.parametrize("mesh", ["dp2", "tp2", "fsdp2,tp2", "cp2,tp2"])
@pytest.mark.parametrize("name", ["llama-equal", "gpt2-equal"])
def test_equal_sizes_mean_nothing(name, mesh, options, imported, tmp_path):
    """Batch, sequence, and width of a head are 16; vocabulary, hidden width, MLP or positions 64."""
    rank, found = Rank(64, mesh, 16, 16), Footprint(imported(name, 16, 16), mesh, options, tmp_path)
    assert found.promises == expected(rank, chunked=bool(options))
    assert not found.scores
    # The logits and their gradient, and nothing that is as wide.
    assert len(found.logits) == (0 if options else 2)


@pytest.mark.parametrize("annotation", ["lm_head.weight=[_,_]", "lm_head.weight=[_,tp]", "lm_head.weight=[fsdp+tp,_]"])
def test_a_vocabulary_that_the_user_keeps_whole_is_not_promised(annotation, imported, tmp_path):
    found = Footprint(imported("llama", BATCH, SEQ), "fsdp2,tp2", [f"--annotate={annotation}"], tmp_path)
    assert "vocabulary_width" not in found.promises
