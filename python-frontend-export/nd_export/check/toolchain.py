"""nd's own commands: from an export folder to gradients, or to the results of a forward program."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from ..errors import ExportError
from ..progress import Progress
from .batch import Batch


class Toolchain:
    """Runs nd-import, nd-opt, nd-compile and nd-run in the folder `work`."""

    def __init__(self, work: Path, progress: Progress, target: str = "host", shard: str | None = None):
        self._work, self._progress, self._target, self._shard = work, progress, target, shard

    def step(self, export: Path, batch: Batch, weights: Path, threads: int | None):
        """(metrics of step 1, gradients by name) of one training step on `batch`, with the learning rate 0."""
        folder = self._work / "step"
        shard = [f"--shard={self._shard}"] if self._shard else []
        options = [*shard, "--keep-gradients", "--optimizer=sgd", "--lr=0"]
        program = self._compile(export, batch, folder, options)
        dtype = batch.write(folder / "tokens.bin")
        more = [f"--threads={threads}"] if threads else []
        self._run(
            "nd-run",
            *(program, "--data", folder / "tokens.bin", f"--data-dtype={dtype}", "--no-shuffle", "--steps", 1),
            *("--weights", weights),
            *("--metrics", folder / "metrics.jsonl", "--dump-gradients", folder / "gradients", *more),
        )
        metrics = json.loads((folder / "metrics.jsonl").read_text().splitlines()[0])
        return metrics, load_file(folder / "gradients" / "gradients.safetensors")

    def forward(self, export: Path, batch: Batch, parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The results, by name, of the exported graph alone, on one rank."""
        folder = self._work / "forward"
        program = self._compile(export, batch, folder, ["--forward-only"])
        given = {name: tensor.detach().contiguous() for name, tensor in (batch.inputs | parameters).items()}
        save_file(given, folder / "in.safetensors")
        self._run("nd-run", program, "--call", folder / "in.safetensors", "-o", folder / "out.safetensors")
        return load_file(folder / "out.safetensors")

    def _compile(self, export: Path, batch: Batch, folder: Path, options: list[str]) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        model, step, program = folder / "model.mlir", folder / "step.mlir", folder / "prog"
        sizes = [f"--batch={batch.batch}", f"--seq={batch.seq}"]
        self._run("nd-import", export / "model.onnx", *sizes, "-o", model)
        self._run("nd-opt", *options, model, "-o", step)
        self._run("nd-compile", step, f"--target={self._target}", "-o", program)
        return program

    def _run(self, command: str, *arguments) -> None:
        path = shutil.which(command)
        if path is None:
            raise ExportError(
                f"{command} is not on the PATH", remedy="build nd and source scripts/env.sh, or install it"
            )
        line = [command, *map(str, arguments)]
        with self._progress.stage(command):
            done = subprocess.run([path, *line[1:]], capture_output=True, text=True)
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
            raise ExportError(f"{command} failed with exit code {done.returncode}: {' '.join(line)}\n{said}")
