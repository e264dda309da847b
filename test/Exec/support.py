"""Compiles MLIR to programs and runs them: what the executed tests share."""

import json
import pathlib
import re
import subprocess

import torch
from safetensors.torch import load_file, save_file

WRITTEN_OUT = ("bloom", "cosine-attention", "relative-places")  # models whose attention is no nd.attention
TYPES = {torch.float32: "f32", torch.int64: "i64", torch.bool: "i1", torch.int32: "i32", torch.bfloat16: "bf16"}


def run(*command, stdin=None, timeout=300):
    """Runs a command and returns its standard output; fails the test with both outputs when it fails."""
    done = subprocess.run([str(c) for c in command], input=stdin, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-8000:]}"
    if command[0] == "nd-compile":
        step = next(pathlib.Path(word) for word in command[1:] if str(word).endswith(".mlir"))
        check_footprint(step.read_text(), pathlib.Path(command[command.index("-o") + 1]))
    return done.stdout


def check_footprint(step, program):
    """No compiled program has scores in memory, but those of models that write them out, or of a general mask. (Logits
    in memory that were promised to be in chunks, or wider than a shard, do not compile.)"""
    manifest = json.loads((program / "manifest.json").read_text())
    model = pathlib.Path(manifest.get("model", {}).get("weights_dir", ""))
    is_written_out = any(re.fullmatch(rf"({'|'.join(WRITTEN_OUT)})\d*", part) for part in model.parts)
    has_mask = re.search(r"nd\.attention .* mask\(", step)
    scores = [entry for entry in manifest["memory"]["listed"] if entry["what"] == "scores"]
    assert is_written_out or has_mask or not scores, f"{program}: scores in memory: {scores}"


def tensor_type(value):
    """The MLIR type of a torch tensor: `tensor<2x3xf32>`."""
    return "tensor<" + "".join(f"{d}x" for d in value.shape) + TYPES[value.dtype] + ">"


class Program:
    """An MLIR module compiled into a folder, called with named tensors."""

    def __init__(self, folder: pathlib.Path, mlir: str, *optimizer_options, ranks: int = 1):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.ranks = folder, ranks
        source, step = folder / "source.mlir", folder / "step.mlir"
        source.write_text(mlir)
        run("nd-opt", *optimizer_options, source, "-o", step)
        run("nd-compile", step, "--target=host", "-o", folder / "prog")

    @property
    def manifest(self):
        return json.loads((self.folder / "prog" / "manifest.json").read_text())

    def call(self, inputs: dict[str, torch.Tensor], *options) -> dict[str, torch.Tensor]:
        """Runs the program once: arguments by name, results by name."""
        given, results = self.folder / "in.safetensors", self.folder / "out.safetensors"
        save_file({name: value.clone().contiguous() for name, value in inputs.items()}, given)  # none may share memory
        run("nd-run", self.folder / "prog", "--call", given, "-o", results, *options)
        return load_file(results)


def relative(ours, reference):
    """|ours - reference| / |reference| by tensor norm, in double; 0 when both are zero."""
    ours, reference = ours.double().flatten(), reference.double().flatten()
    difference, norm = (ours - reference).norm().item(), reference.norm().item()
    return difference / norm if norm else difference


def assert_close(name, ours, single, double, bound=1e-5):
    """nd's result is within `bound` of PyTorch's by tensor norm; where that cannot hold, PyTorch in f64 judges: nd's
    error is at most twice PyTorch's own. Integers and booleans are equal; NaN and infinities stand in the same places."""
    assert tuple(ours.shape) == tuple(single.shape), (
        f"{name}: shape {tuple(ours.shape)}, expected {tuple(single.shape)}"
    )
    if not single.is_floating_point():
        assert torch.equal(ours.to(single.dtype), single), f"{name}: expected {single}, got {ours}"
        return
    finite = torch.isfinite(single)
    assert torch.equal(torch.isnan(ours), torch.isnan(single)), f"{name}: NaN in other places"
    assert torch.equal(ours[~finite & ~torch.isnan(ours)], single[~finite & ~torch.isnan(single)]), (
        f"{name}: infinities"
    )
    ours, single, double = ours[finite], single[finite], double[finite]
    error = relative(ours, single)
    if error > bound:
        allowed = 2 * relative(single, double)
        assert relative(ours, double) <= allowed, (
            f"{name}: differs by {error:.2e}, and by {relative(ours, double):.2e} from f64"
        )
