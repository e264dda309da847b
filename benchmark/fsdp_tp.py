"""FSDP and TP on CPU ranks: nd beside PyTorch's FSDP2 (`fully_shard`) and tensor parallel (`parallelize_module`) on
gloo, eager and with torch.compile of each block, in turns in one go.

    . scripts/env.sh && python benchmark/fsdp_tp.py [--modes fsdp tp] [--ranks 2] [--rounds 2]

Both sides: the same weights, samples, f32, clipping to norm 1, AdamW, one thread a rank; their losses are compared. FSDP
trains GPT-2 124M; TP a Llama of 134M parameters, since PyTorch has no plan for GPT-2's fused query, key and value. A
side's figures are its best step of all rounds, the smallest median of a round, and the CPU seconds that its ranks together
need for a step, which hardly depend on what else the machine does."""

import argparse
import json
import pathlib
import re
import sys
import tempfile

from common import (
    FIGURES,
    ROOT,
    Failed,
    attempt,
    compile_program,
    describe,
    export_model,
    import_model,
    keep_best,
    largest_difference,
    load,
    nd_steps,
    write_tokens,
)

CONFIGS = {"fsdp": ROOT / "examples/gpt2-124m.json", "tp": ROOT / "benchmark/llama-134m.json"}
# Both sides round differently, and AdamW's first steps turn small differences of small gradients into steps of full size.
LARGEST_DIFFERENCE = 1e-4


def torch_steps(args, mode, export, tokens, compiled):
    launch = (sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={args.ranks}")
    sizes = ("--batch", args.batch, "--seq", args.seq, "--steps", args.steps)
    peer = ROOT / "benchmark/peers/torch_mesh.py"
    flags = ["--compile"] * compiled
    out = attempt(*launch, peer, mode, export, "--data", tokens, *sizes, *flags, env={"OMP_NUM_THREADS": "1"})
    return json.loads(out.splitlines()[-1])


def compare(args, mode, folder):
    export = export_model(CONFIGS[mode], folder / mode)
    vocabulary = json.loads(CONFIGS[mode].read_text())["vocab_size"]
    tokens = write_tokens(folder / f"{mode}.bin", vocabulary, args.batch * args.steps, args.seq)
    model = import_model(export, args.batch, args.seq)
    program = compile_program(model, folder / f"{mode}-program", f"--shard={mode}{args.ranks}", "--clip=1")
    sides = {
        "torch eager": lambda: torch_steps(args, mode, export, tokens, False),
        "torch.compile": lambda: torch_steps(args, mode, export, tokens, True),
        "nd": lambda: nd_steps(program, tokens, args.steps, 1),
    }
    if not args.compile:
        del sides["torch.compile"]
    best = {}
    for _ in range(args.rounds):
        for side in list(sides):
            try:
                keep_best(best, side, sides[side]())
            except Failed as failure:
                if side != "torch.compile":
                    sys.exit(str(failure))
                del sides[side]  # not every module of transformers compiles with every sharding
                errors = re.findall(r"^.*Error: .*$", str(failure), re.MULTILINE)
                print(f"  {side} does not run: {errors[0] if errors else failure}", flush=True)
    print(f"{mode}{args.ranks}, {CONFIGS[mode].stem}, {args.batch} x {args.seq} tokens, f32, 1 thread a rank; {load()}")
    for side, result in best.items():
        line = f"  {side:14} {describe(result)}"
        if side != "nd":
            ratios = ", ".join(f"{result[key] / best['nd'][key]:.2f}x ({name})" for key, name in FIGURES.items())
            difference = largest_difference(best["nd"]["losses"], result["losses"])
            line += f"   nd: {ratios}; losses differ by {difference:.1e}"
            if not difference < LARGEST_DIFFERENCE:
                sys.exit(f"{line}\nnot the same training: {best['nd']['losses']} beside {result['losses']}")
        print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", nargs="+", choices=CONFIGS, default=list(CONFIGS))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4, help="sequences of all ranks together")
    parser.add_argument("--seq", type=int, default=64)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--no-compile", dest="compile", action="store_false", help="PyTorch's eager mode only")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for mode in args.modes:
            compare(args, mode, pathlib.Path(name))


main()
