"""How long the compiler takes for a large Llama without weights, from MLIR to the verified program of a rank and its report.

    . scripts/env.sh && python benchmark/compile_time.py [--shard=dp8,fsdp64,tp8] [--layers 16 32 64 126] [--passes]

Stages: `step` parses the model, trains and shards it, and writes the step; `lower` reads that and writes the planned rank
program; `check` parses and verifies that; `report` is the step again with its report. CPU seconds do not depend on what else the
machine does; `growth` compares them with the layers: 1.0 is linear. `verified` is the share of passes that only verify (after
each pass of sharding, and of the rank program) in all passes of `step` and `lower`. `--passes` lists the passes of the largest
model.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STAGES = ("step", "lower", "check", "report")


def measure(*command):
    """CPU seconds, wall seconds, peak bytes and standard error of a command."""
    start = time.monotonic()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        errors.seek(0)
        text = errors.read()
    if status:
        sys.exit(f"{' '.join(map(str, command))}\n{text[-4000:]}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss * 1024, text


def compile_model(args, layers, folder):
    graph, step, program = (folder / f"{name}.mlir" for name in ("model", "step", "program"))
    sizes = (f"--model={args.model}", f"--layers={layers}", f"--batch={args.batch}", f"--seq={args.seq}")
    window = f"--window={args.window}"
    subprocess.run([sys.executable, ROOT / "benchmark/llama_graph.py", *sizes, window, "-o", graph], check=True)
    options = [f"--shard={args.shard}", f"--system={args.system}", *args.options]
    timing = ["--mlir-timing", "--mlir-timing-display=list"]
    return {
        "step": measure("nd-opt", *options, *timing, graph, "-o", step),
        "lower": measure("nd-opt", "--nd-host-pipeline", *timing, step, "-o", program),
        "check": measure("nd-opt", program, "-o", "/dev/null"),
        "report": measure("nd-opt", f"--system={args.system}", "--report=json", step, "-o", folder / "report.json"),
    }


def passes_of(stage):
    """(seconds, pass), the largest first, then `Total`."""
    found = re.findall(r"^ +([0-9.]+) \([ 0-9.]+%\)  +(\S.*)$", stage[3], re.MULTILINE)
    return [(float(seconds), name) for seconds, name in found if name != "root"]


def share_verified(stages):
    passes = passes_of(stages["step"]) + passes_of(stages["lower"])
    total = sum(seconds for seconds, name in passes if name == "Total")
    return sum(seconds for seconds, name in passes if name.startswith("Verify")) / total


def print_passes(stages):
    for stage in ("step", "lower"):
        print(f"\n{stage}, seconds by pass:")
        for seconds, name in passes_of(stages[stage]):
            if seconds >= 0.01 and name != "Total":
                print(f"  {seconds:8.3f}  {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="405b")
    parser.add_argument("--layers", type=int, nargs="+", default=[16, 32, 64, 126])
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seq", type=int, default=8192)
    parser.add_argument("--window", type=int, default=0, help="sliding window of every second layer")
    parser.add_argument("--shard", default="dp8,fsdp64,tp8")
    parser.add_argument("--system", default="h100x8")
    parser.add_argument("--passes", action="store_true", help="list the passes of the last model")
    parser.add_argument("options", nargs="*", help="more options of nd-opt, after --")
    args = parser.parse_args()
    print(f"{args.model}, batch {args.batch}, sequence {args.seq}, {args.shard}; CPU seconds\n")
    print("layers " + "".join(f"{stage:>9}" for stage in STAGES) + "      all     wall   memory verified   growth")
    before = None
    with tempfile.TemporaryDirectory() as folder:
        for layers in args.layers:
            stages = compile_model(args, layers, pathlib.Path(folder))
            cpu = {stage: stages[stage][0] for stage in STAGES}
            total, wall = sum(cpu.values()), sum(s[1] for s in stages.values())
            growth = f"{total / before[1] / (layers / before[0]):9.2f}" if before else ""
            memory = max(s[2] for s in stages.values()) / 2**30
            row = "".join(f"{cpu[stage]:9.2f}" for stage in STAGES)
            print(
                f"{layers:6} {row}{total:9.2f}{wall:9.2f}{memory:7.2f} G{share_verified(stages):9.1%}{growth}",
                flush=True,
            )
            before = (layers, total)
    if args.passes:
        print_passes(stages)


if __name__ == "__main__":
    main()
