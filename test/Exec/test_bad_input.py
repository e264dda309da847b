"""Wrong input: every tool says what is wrong, where, and what to do; exits with a code that is not 0; never crashes."""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from safetensors.torch import load_file, save_file
from support import run


@pytest.fixture(scope="module")
def road(exported, tmp_path_factory):
    """A tiny GPT-2 at every stage: hf/, onnx/, model.mlir, step.mlir, prog/."""
    folder = tmp_path_factory.mktemp("road")
    for part in ("hf", "onnx"):  # own copies, beside each other: the export says where the weights are by relative path
        shutil.copytree(exported("gpt2") / part, folder / part)
    run("nd-import", folder / "onnx/model.onnx", "--batch=4", "--seq=8", "-o", folder / "model.mlir")
    run("nd-opt", "--shard=dp2", folder / "model.mlir", "-o", folder / "step.mlir")
    run("nd-compile", folder / "step.mlir", "--target=host", "-o", folder / "prog")
    return folder


def refuses(*command, says):
    """The command fails with a message that has every word of `says`, not by a signal and not with a traceback."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=60)
    text = done.stdout + done.stderr
    assert 0 < done.returncode < 90, f"exit code {done.returncode}\n{text}"
    for trace in ("PLEASE submit a bug report", "Traceback", "Stack dump", "terminate called", "Assertion"):
        assert trace not in text, text
    for word in says:
        assert word.lower() in text.lower(), f"no {word!r} in:\n{text}"


def copy(road, tmp_path, what):
    return pathlib.Path(shutil.copytree(road / what, tmp_path / what, symlinks=True))


SIZES = ("--batch=4", "--seq=8")


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07\xff\xff\xff\xff\xff\x0f"])
def test_import_of_what_is_not_onnx(content, tmp_path):
    (tmp_path / "model.onnx").write_bytes(content)
    refuses("nd-import", tmp_path / "model.onnx", *SIZES, says=["model.onnx"])


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_import_of_a_truncated_model(road, part, tmp_path):
    folder = copy(road, tmp_path, "onnx")
    data = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(data[: int(len(data) * part)])
    refuses("nd-import", folder / "model.onnx", *SIZES, says=["model.onnx"])


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "other"}'])
def test_import_with_a_bad_sidecar(road, content, tmp_path):
    folder = copy(road, tmp_path, "onnx")
    (folder / "model.nd.json").write_text(content)
    refuses("nd-import", folder / "model.onnx", *SIZES, says=["model.nd.json"])


def test_import_where_sidecar_and_graph_disagree(road, tmp_path):
    folder = copy(road, tmp_path, "onnx")
    sidecar = json.loads((folder / "model.nd.json").read_text())
    name = next(iter(sidecar["parameters"]))
    sidecar["parameters"][name]["shape"][0] += 1
    (folder / "model.nd.json").write_text(json.dumps(sidecar))
    refuses("nd-import", folder / "model.onnx", *SIZES, says=["model.nd.json", name])


def test_import_with_impossible_sizes(road):
    refuses("nd-import", road / "onnx/model.onnx", "--batch=0", "--seq=8", says=["batch"])
    refuses("nd-import", road / "onnx/model.onnx", "--batch=4", "--seq=100000", says=["seq", "100000"])
    refuses("nd-import", road / "onnx/missing.onnx", *SIZES, says=["missing.onnx"])


def test_opt_on_what_is_not_mlir(tmp_path):
    (tmp_path / "model.mlir").write_text("func.func @forward(")
    refuses("nd-opt", "--shard=dp2", tmp_path / "model.mlir", says=["model.mlir"])
    refuses("nd-opt", "--shard=dp2", tmp_path / "none.mlir", says=["none.mlir"])


@pytest.mark.parametrize(
    ("shard", "says"),
    [("xp2", ["xp"]), ("dp0", ["dp"]), ("dp3", ["3", "4"]), ("dp2,dp2", ["dp"]), ("", ["shard"]), ("dp", ["dp"])],
)
def test_opt_with_a_wrong_mesh(road, shard, says):
    refuses("nd-opt", f"--shard={shard}", road / "model.mlir", says=says)


def test_compile_of_what_is_no_step(road, tmp_path):
    (tmp_path / "empty.mlir").write_text("module {}")
    refuses("nd-compile", tmp_path / "empty.mlir", "-o", tmp_path / "prog", says=["function"])
    refuses("nd-compile", tmp_path / "none.mlir", "-o", tmp_path / "prog", says=["none.mlir"])
    (tmp_path / "file").write_text("")
    refuses("nd-compile", road / "step.mlir", "-o", tmp_path / "file" / "prog", says=["prog"])


def train(road, tokens, *options):
    return ("nd-run", road / "prog", "--data", tokens, "--steps=2", "--data-dtype=uint16", *options)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", ["tokens.bin", "empty"]),
        (b"\0" * 7, ["tokens.bin", "7"]),
        (b"\0\0" * 8, ["tokens.bin", "8"]),
        (b"\xff\xff" * 999, ["tokens.bin", "65535"]),
    ],
)
def test_run_on_bad_tokens(road, content, says, tmp_path):
    (tmp_path / "tokens.bin").write_bytes(content)
    refuses(*train(road, tmp_path / "tokens.bin"), says=says)


def test_run_without_its_files(road, tokens, tmp_path):
    refuses(*train(road, tmp_path / "none.bin"), says=["none.bin"])
    refuses("nd-run", tmp_path / "nothing", "--data", tokens[0], "--steps=1", says=["nothing"])
    refuses(*train(road, tokens[0], "--weights", tmp_path / "no-weights"), says=["no-weights"])
    refuses("nd-run", road / "prog", "--data", tokens[0], "--data-dtype=float", "--steps=1", says=["float"])


@pytest.mark.parametrize("content", ["", "{", '{"format": "nd.program", "version": 999}', "[]"])
def test_run_with_a_bad_manifest(road, tokens, content, tmp_path):
    folder = copy(road, tmp_path, "prog")
    (folder / "manifest.json").write_text(content)
    refuses("nd-run", folder, "--data", tokens[0], "--steps=1", says=["manifest.json"])


def test_run_of_a_cut_executable(road, tokens, tmp_path):
    folder = copy(road, tmp_path, "prog")
    executable = folder / "rank0"
    os.truncate(executable, executable.stat().st_size // 2)
    refuses("nd-run", folder, "--data", tokens[0], "--steps=1", says=["rank0", "bytes", "recompile"])


def test_two_runs_do_not_write_to_one_place(road, tokens, tmp_path):
    """The other run is this process, which holds the locks."""
    metrics, writing = tmp_path / "metrics.jsonl", tmp_path / ".saved.writing"
    metrics.write_text("of the other run")
    writing.mkdir()
    for path, option in ((metrics, ("--metrics", metrics)), (writing, ("--save", tmp_path / "saved"))):
        file = os.open(path, os.O_RDONLY)
        fcntl.flock(file, fcntl.LOCK_EX)
        refuses(*train(road, tokens[0], *option), says=["another run", str(option[1])])
        os.close(file)
    assert metrics.read_text() == "of the other run" and writing.exists()
    run(*train(road, tokens[0], "--metrics", metrics, "--save", tmp_path / "saved"))


def test_a_full_disk_of_metrics_does_not_lose_the_weights(road, tokens, tmp_path):
    refuses(*train(road, tokens[0], "--metrics=/dev/full", "--save", tmp_path / "saved"), says=["metrics", "space"])
    assert (tmp_path / "saved" / "model.safetensors").exists()


def test_opt_on_a_full_disk(road):
    refuses(
        "nd-opt", "--shard=dp2", road / "model.mlir", "-o", "/dev/full", says=["nd-opt: error", "/dev/full", "space"]
    )


def damaged_weights(folder, kind):
    path = folder / "model.safetensors"
    data = path.read_bytes()
    if kind == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif kind == "header":
        path.write_bytes(b"\xff" * 8 + data[8:])
    elif kind == "empty":
        path.write_bytes(b"")
    else:
        tensors = load_file(path)
        name = next(n for n in tensors if n.endswith("wte.weight"))
        tensors[name] = tensors[name][1:].clone() if kind == "shape" else tensors[name]
        if kind == "missing":
            del tensors[name]
        save_file(tensors, path)


@pytest.mark.parametrize("kind", ["truncated", "header", "empty", "shape", "missing"])
def test_run_with_damaged_weights(road, tokens, kind, tmp_path):
    folder = copy(road, tmp_path, "hf")
    damaged_weights(folder, kind)
    says = ["wte.weight", "hf"] if kind == "missing" else ["model.safetensors"] + ["wte.weight"] * (kind == "shape")
    refuses(*train(road, tokens[0], "--weights", folder), says=says)


FULL_DISK = """
mount -t tmpfs -o size=64m none "$0"
"$@" --save "$0/saved" >&2 || exit 99
sha256sum "$0"/saved/* > "$0/before"
mount -o remount,size=$(($(du -sk "$0" | cut -f1) + 100))k "$0"
"$@" --save "$0/saved"
code=$?
sha256sum --quiet --check "$0/before" || exit 98
[ "$(ls "$0")" = "$(printf 'before\\nsaved')" ] || exit 97
exit $code
"""


def test_a_full_disk_leaves_the_previous_folder(road, tokens, tmp_path):
    """On a file system of its own, in a mount namespace: the second save finds 100 kB free."""
    (tmp_path / "disk").mkdir()
    namespace = ("unshare", "--map-root-user", "--mount", "sh", "-c", FULL_DISK, tmp_path / "disk")
    refuses(*namespace, *train(road, tokens[0]), says=["saved", "space"])


def test_a_save_never_deletes_what_it_would_not_write(road, tokens, tmp_path):
    saved = tmp_path / "saved"
    run(*train(road, tokens[0], "--save", saved))
    (saved / "notes.txt").write_text("mine")
    refuses(*train(road, tokens[0], "--save", saved), says=["notes.txt", "lost"])
    assert (saved / "notes.txt").read_text() == "mine"


def test_a_save_through_a_link_replaces_what_it_points_at(road, tokens, tmp_path):
    run(*train(road, tokens[0], "--save", tmp_path / "real"))
    (tmp_path / "link").symlink_to("real")
    run(*train(road, tokens[0], "--save", tmp_path / "link"))
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "model.safetensors").exists()


def test_threads_are_at_least_one(road, tokens):
    refuses(*train(road, tokens[0], "--threads=0"), says=["threads", "one"])
