"""What the benchmarks share: running commands, exporting and compiling a model, reading a run's metrics."""

import json
import os
import pathlib
import resource
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Set on some machines against old OpenBLAS builds; it slows numpy and PyTorch down.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}


class Failed(Exception):
    """A command that failed; the text is its output."""


def attempt(*command, env=None):
    """Runs a command and returns what it prints."""
    command = [str(c) for c in command]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT | (env or {}))
    if done.returncode:
        raise Failed(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def run(*command, env=None):
    """The same; ends the benchmark with the output when it fails."""
    try:
        return attempt(*command, env=env)
    except Failed as failure:
        sys.exit(str(failure))


def load():
    """The machine's load, to be printed beside figures."""
    return "load average " + " ".join(f"{value:.1f}" for value in os.getloadavg())


def export_model(config, folder):
    """Exports a model with random weights; the folder is also one that transformers loads."""
    run("nd-export", "hf", config, "--random-init", 0, "-o", folder)
    return folder


def import_model(export, batch, seq):
    model = export / f"model-{batch}x{seq}.mlir"
    run("nd-import", export / "model.onnx", f"--batch={batch}", f"--seq={seq}", "-o", model)
    return model


def compile_program(model, program, *options):
    """Compiles a training step; `options` are those of nd-opt. Returns the program's folder."""
    step = program.with_suffix(".mlir")
    run("nd-opt", *options, model, "-o", step)
    run("nd-compile", step, "--target=host", "-o", program)
    return program


def write_tokens(path, vocabulary, samples, seq):
    """Random tokens for so many samples, as uint16."""
    np.random.default_rng(0).integers(0, vocabulary, samples * seq + 1, dtype=np.uint16).tofile(path)
    return path


def nd_steps(program, tokens, steps, threads, *options):
    """Trains, and says how long steps took, and how long all cores together worked for one. The first step, which meets
    cold caches, does not count."""
    metrics = program.with_suffix(".jsonl")
    data = ("--data", tokens, "--data-dtype=uint16", "--no-shuffle")

    def work(count):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run("nd-run", program, *data, f"--threads={threads}", "--steps", count, "--metrics", metrics, *options)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    work(1)  # brings the program and the weights into memory
    whole = work(steps)
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    cpu = (whole - work(1)) / (steps - 1)
    times = sorted(row["step_ms"] / 1e3 for row in rows[1:])
    losses = [row["loss"] for row in rows]
    return {"best_s": times[0], "median_s": times[len(times) // 2], "cpu_s": cpu, "losses": losses}


FIGURES = {"best_s": "best", "median_s": "median", "cpu_s": "CPU"}


def describe(result):
    return ", ".join(f"{name} {result[key]:.3f} s" for key, name in FIGURES.items())


def keep_best(best, side, result):
    """Of all rounds a side's figures are its best step, and the smallest median and CPU time of a round."""
    known = best.setdefault(side, result)
    for key in FIGURES:
        known[key] = min(known[key], result[key])


def largest_difference(losses, reference):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, reference, strict=True))
