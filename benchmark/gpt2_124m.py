"""GPT-2 124M: nd beside PyTorch eager and torch.compile, in turns in one go, with the same clipping on both sides. With
--dtype=bf16 PyTorch's forward runs under autocast(bfloat16), its weights and optimizer in f32, as nd's.

    . scripts/env.sh && python benchmark/gpt2_124m.py [--dtype bf16] [--rounds 2] [--threads 2]

Each round runs the three programs one after the other, so that a noisy neighbour meets all of them; a program's figure is its
best step of all rounds. Prints times, ratios, peak memory, and the share of nd's step that its products alone need with
oneDNN's own threads (`nd-gemm-floor`, in the same round).
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from common import ENVIRONMENT, ROOT, export_model, load, run, write_tokens


def torch_step(args, clip, compiled):
    flags = ["--compile"] * compiled + ["--autocast"] * (args.dtype == "bf16")
    sizes = ("--batch", args.batch, "--seq", args.seq, "--threads", args.threads, "--steps", args.steps, "--clip", clip)
    out = run(sys.executable, ROOT / "benchmark/peers/torch_gpt2.py", ROOT / "examples/gpt2-124m.json", *sizes, *flags)
    return json.loads(out.splitlines()[-1])


def nd_program(args, folder, clip):
    """Exports (once), imports and compiles; returns the program's folder."""
    export, program = folder / "export", folder / f"prog-clip{clip}"
    if not export.exists():
        export_model(ROOT / "examples/gpt2-124m.json", export)
    run("nd-import", export / "model.onnx", f"--batch={args.batch}", f"--seq={args.seq}", "-o", folder / "model.mlir")
    run(
        "nd-opt",
        "--shard=dp1",
        f"--dtype={args.dtype}",
        f"--clip={clip}",
        folder / "model.mlir",
        "-o",
        folder / "step.mlir",
    )
    run("nd-compile", folder / "step.mlir", "--target=host", "-o", program, f"--dump-stages={program}-stages")
    return program


def gemm_floor(args, program):
    """Seconds of all products of a step by oneDNN alone, from the shapes in the program's last stage."""
    text = sorted(pathlib.Path(f"{program}-stages").glob("*.mlir"))[-1].read_text()
    products = collections.Counter()
    for line in re.findall(r"rt\.gemm .*", text):
        a, b, *_, c = re.findall(r"memref<([^>]*)>", line)
        (m, n), k = (int(d) for d in c.split("x")[:2]), int(a.split("x")[1].split(",")[0])
        types = (re.search(r"x(b?f\d+)", text)[1] for text in (a, c))
        products[m, n, k, int("strided<[1," in a), int("strided<[1," in b), *types] += 1
    lines = "".join(" ".join(map(str, (*product, count))) + "\n" for product, count in products.items())
    environment = ENVIRONMENT | {"OMP_NUM_THREADS": str(args.threads)}
    done = subprocess.run(["nd-gemm-floor"], input=lines, capture_output=True, text=True, env=environment, check=True)
    return {"best_s": float(done.stdout.split()[0])}


def nd_step(args, folder, program):
    tokens, metrics = folder / "tokens.bin", folder / "metrics.jsonl"
    if not tokens.exists():
        write_tokens(tokens, 50257, args.batch * 64, args.seq)
    run(
        *("nd-run", program, "--data", tokens, "--data-dtype=uint16", f"--threads={args.threads}"),
        *("--steps", args.steps, "--metrics", metrics),
    )
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    times = sorted(row["step_ms"] / 1e3 for row in rows[1:])
    return {"best_s": times[0], "median_s": times[len(times) // 2], "peak_bytes": max(r["rss_bytes"] for r in rows)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--clip", type=float, action="append", help="largest gradient norm, 0 = off [both 1 and 0]")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for clip in args.clip or (1.0, 0.0):
            program = nd_program(args, folder, clip)
            sides = {
                "torch eager": lambda clip=clip: torch_step(args, clip, False),
                "torch.compile": lambda clip=clip: torch_step(args, clip, True),
                "nd": lambda program=program: nd_step(args, folder, program),
                "products": lambda program=program: gemm_floor(args, program),
            }
            best = {}
            for _ in range(args.rounds):
                for side, step in sides.items():
                    result = step()
                    if side not in best or result["best_s"] < best[side]["best_s"]:
                        best[side] = result
            print(
                f"clipping {'on' if clip else 'off'}: {args.batch} x {args.seq}, {args.dtype}, {args.threads} threads; "
                f"{load()}"
            )
            floor = best.pop("products")["best_s"]
            for side, r in best.items():
                speed, memory = r["best_s"] / best["nd"]["best_s"], best["nd"]["peak_bytes"] / r["peak_bytes"]
                times = f"best {r['best_s']:.3f} s, median {r['median_s']:.3f} s, peak {r['peak_bytes'] / 1e9:.2f} GB"
                compared = f"   nd is {speed:.2f}x as fast with {memory:.2f} of the memory" if side != "nd" else ""
                print(f"  {side:14} {times}{compared}")
            print(f"  the products alone: {floor:.3f} s, {floor / best['nd']['best_s']:.0%} of nd's step")


main()
