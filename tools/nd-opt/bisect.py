"""Executes the stages of a pipeline and names the first that computes something else than those before it.

bisect.py FOLDER TOLERANCE SEED TOOLS: stages as `nd-opt --dump-stages` writes them, and where nd's tools are. A stage before
nd-partition runs as one rank, a rank's program on all ranks. All get the same random weights and batch. A result is compared
with that of the first stage that has it; differences are relative to the norm of the reference, of a gradient or an updated
tensor to that of all results of its kind.
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

FOLDER, TOLERANCE, SEED, TOOLS = (
    pathlib.Path(sys.argv[1]),
    float(sys.argv[2]),
    int(sys.argv[3]),
    pathlib.Path(sys.argv[4]),
)
SUMMED = ("gradient", "weight", "exp_avg", "exp_avg_sq", "momentum")


def fail(message):
    print(f"nd-opt: error: --bisect: {message}", file=sys.stderr)
    sys.exit(1)


def run(*command):
    """Whether the command worked, and what it wrote to standard error."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    return done.returncode == 0, done.stderr


def generator(*names):
    """Random numbers that depend on the seed and a tensor's name alone, not on the stage or on the other tensors."""
    return np.random.default_rng([SEED, *"/".join(names).encode()])


def fill(tensor):
    """A value for an argument; None where zeros or what the runtime gives will do."""
    kind, name, shape = tensor["kind"], tensor["name"], tensor["shape"]
    random = generator(kind, name)
    if kind == "input" and name == "position_ids":
        return np.broadcast_to(np.arange(shape[-1]), shape).astype(np.int64)
    if kind == "input":
        integer = tensor["dtype"].startswith("i")
        return random.integers(0, tensor["bound"], shape) if integer else random.standard_normal(shape, np.float32)
    if kind == "weight":
        return (1 if len(shape) == 1 else 0) + random.standard_normal(shape, np.float32) * 0.1
    if kind in ("exp_avg", "momentum"):
        return random.standard_normal(shape, np.float32) * 0.01
    if kind == "exp_avg_sq":  # an update that divides by almost nothing shows rounding, not mistakes
        return 0.01 + random.random(shape, np.float32)
    return None


def arguments(program):
    manifest = json.loads((program / "manifest.json").read_text())
    given = {}
    for tensor in manifest["tensors"]:
        part = tensor.get("part")
        whole = {"bound": 2, **tensor, "shape": list(tensor.get("global_shape", tensor["shape"]))}
        if part:
            whole["name"] = part["name"]
            whole["shape"][part["dim"]] = part["size"]
        if (value := fill(whole)) is not None:
            given[f"{whole['kind']}:{whole['name']}"] = np.ascontiguousarray(value)
    return given


def execute(stage, work):
    """The results that a stage computes, by name, or why it has none."""
    step, program = work / "step.mlir", work / "prog"
    for command in (
        (TOOLS / "nd-opt", stage, "-nd-strip-sharding", "-o", step),
        (TOOLS / "nd-compile", step, "-o", program),
    ):
        worked, error = run(*command)
        if not worked:
            return None, error
    given = arguments(program)
    save_file(given, work / "in.safetensors")
    worked, error = run(TOOLS / "nd-run", program, "--call", work / "in.safetensors", "-o", work / "out.safetensors")
    if not worked:
        return None, error
    results = load_file(work / "out.safetensors")
    # A stage without an optimizer hands weights back as they are.
    kept = [
        name
        for name, value in given.items()
        if np.array_equal(value, results.get(name, results.get(name.split(":")[1])))
    ]
    return {name: value for name, value in results.items() if f"weight:{name}" not in kept and name not in kept}, ""


def kind_of(name):
    kind = name.split(":")[0]
    return kind if kind in SUMMED else "weight" if ":" not in name and "." in name else name


def norm(values):
    return math.sqrt(sum(float(np.sum(np.square(v.astype(np.float64)))) for v in values))


def compare(results, reference):
    """The largest difference, and of which result."""
    totals = {}
    for name, value in reference.items():
        totals.setdefault(kind_of(name), []).append(value)
    largest = (0.0, "")
    for name in results.keys() & reference.keys():
        ours, theirs = results[name].astype(np.float64), reference[name].astype(np.float64)
        if ours.shape != theirs.shape:
            return math.inf, name
        difference, total = norm([ours - theirs]), norm(totals[kind_of(name)])
        relative = math.nan if not math.isfinite(difference) else difference / total if total else difference
        if not relative <= largest[0]:
            largest = (relative, name)
    return largest


def main():
    stages = sorted(FOLDER.glob("*.mlir"))
    if not stages:
        fail(f"{FOLDER} has no stages; write some with nd-opt --dump-stages={FOLDER} ... model.mlir")
    reference = {}
    for stage in stages:
        with tempfile.TemporaryDirectory() as work:
            results, error = execute(stage, pathlib.Path(work))
        if results is None:
            fail(f"{stage.name} does not run:\n{error}")
        difference, tensor = compare(results, reference)
        if not difference <= TOLERANCE:
            print(f"{stage.name} differs: {tensor} by {difference:.3g}, more than {TOLERANCE:g}")
            sys.exit(1)
        print(
            f"{stage.name}: {len(results)} results, largest difference {difference:.2g}{' of ' + tensor if tensor else ''}"
        )
        for name, value in results.items():
            reference.setdefault(name, value)
    print("all stages compute the same")


main()
