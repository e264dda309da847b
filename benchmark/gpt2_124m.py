"""GPT-2 124M, f32: nd beside PyTorch eager and torch.compile, in turns in one go, with the same clipping on both sides.

    . scripts/env.sh && python benchmark/gpt2_124m.py [--rounds 2] [--threads 2]

Each round runs the three programs one after the other, so that a noisy neighbour meets all of them; a program's figure is its
best step of all rounds. Prints times, ratios, the share of the step that its GEMMs alone need (measured in the same process
right after the run, `nd-run --gemm-floor`), and peak memory.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Set on some machines against old OpenBLAS builds; it slows numpy and PyTorch down.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def torch_step(args, clip, compiled):
    flags = ["--compile"] if compiled else []
    sizes = ("--batch", args.batch, "--seq", args.seq, "--threads", args.threads, "--steps", args.steps, "--clip", clip)
    out = run(sys.executable, ROOT / "benchmark/peers/torch_gpt2.py", ROOT / "examples/gpt2-124m.json", *sizes, *flags)
    return json.loads(out.splitlines()[-1])


def nd_program(args, folder, clip):
    """Exports (once), imports and compiles; returns the program's folder."""
    export, program = folder / "export", folder / f"prog-clip{clip}"
    if not export.exists():
        run("nd-export", "hf", ROOT / "examples/gpt2-124m.json", "--random-init", 0, "-o", export)
    run("nd-import", export / "model.onnx", f"--batch={args.batch}", f"--seq={args.seq}", "-o", folder / "model.mlir")
    run("nd-opt", "--shard=dp1", f"--clip={clip}", folder / "model.mlir", "-o", folder / "step.mlir")
    run("nd-compile", folder / "step.mlir", "--target=host", "-o", program)
    return program


def nd_step(args, folder, program):
    tokens, metrics = folder / "tokens.bin", folder / "metrics.jsonl"
    if not tokens.exists():
        np.random.default_rng(0).integers(0, 50257, args.batch * args.seq * 64, dtype=np.uint16).tofile(tokens)
    run(
        *("nd-run", program, "--data", tokens, "--data-dtype=uint16", f"--threads={args.threads}"),
        *("--steps", args.steps, "--metrics", metrics),
    )
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    times = sorted(row["step_ms"] / 1e3 for row in rows[1:])
    return {"best_s": times[0], "median_s": times[len(times) // 2], "peak_bytes": max(r["rss_bytes"] for r in rows)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for clip in (1.0, 0.0):
            program = nd_program(args, folder, clip)
            sides = {
                "torch eager": lambda clip=clip: torch_step(args, clip, False),
                "torch.compile": lambda clip=clip: torch_step(args, clip, True),
                "nd": lambda program=program: nd_step(args, folder, program),
            }
            best = {}
            for _ in range(args.rounds):
                for side, step in sides.items():
                    result = step()
                    if side not in best or result["best_s"] < best[side]["best_s"]:
                        best[side] = result
            print(f"clipping {'on' if clip else 'off'}: {args.batch} x {args.seq}, f32, {args.threads} threads")
            for side, r in best.items():
                speed, memory = r["best_s"] / best["nd"]["best_s"], best["nd"]["peak_bytes"] / r["peak_bytes"]
                print(
                    f"  {side:14} best {r['best_s']:.3f} s, median {r['median_s']:.3f} s, peak {r['peak_bytes'] / 1e9:.2f} GB"
                    f"   nd is {speed:.2f}x as fast with {memory:.2f} of the memory"
                )


main()
