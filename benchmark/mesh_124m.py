"""GPT-2 124M on 16 ranks (dp2,fsdp2,tp2,cp2) of one machine beside one rank with a thread for each core, in turns in one
go: what it costs to run a whole mesh where there are only two cores.

    . scripts/env.sh && python benchmark/mesh_124m.py [--shard dp2,fsdp2,tp2,cp2] [--rounds 2]

Both train on the same 2048 tokens a step (32 x 64), f32, clipping, AdamW; their losses are compared. A side's figures are
its best step of all rounds, the smallest median of a round, and the CPU seconds that its ranks together need for a step.
Beside other work 16 processes get more of the machine than one: then only the CPU seconds compare."""

import argparse
import os
import pathlib
import sys
import tempfile

from common import (
    FIGURES,
    ROOT,
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

LARGEST_DIFFERENCE = 1e-5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shard", default="dp2,fsdp2,tp2,cp2")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seq", type=int, default=64)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        export = export_model(ROOT / "examples/gpt2-124m.json", folder / "export")
        tokens = write_tokens(folder / "tokens.bin", 50257, args.batch * args.steps, args.seq)
        model = import_model(export, args.batch, args.seq)
        meshes = {"dp1": cores, args.shard: 1}  # and the threads of a rank
        programs = {mesh: compile_program(model, folder / mesh, f"--shard={mesh}", "--clip=1") for mesh in meshes}
        best = {}
        for _ in range(args.rounds):
            for mesh, threads in meshes.items():
                keep_best(best, mesh, nd_steps(programs[mesh], tokens, args.steps, threads))
    print(f"GPT-2 124M, {args.batch} x {args.seq} tokens, f32, {cores} cores; {load()}")
    for mesh, result in best.items():
        print(f"  {mesh:20} {describe(result)}")
    ratios = ", ".join(f"{best[args.shard][key] / best['dp1'][key]:.2f}x ({name})" for key, name in FIGURES.items())
    difference = largest_difference(best[args.shard]["losses"], best["dp1"]["losses"])
    print(f"  the mesh takes {ratios}; losses differ by {difference:.1e}")
    if not difference < LARGEST_DIFFERENCE:
        sys.exit(f"not the same training: {best[args.shard]['losses']} beside {best['dp1']['losses']}")


main()
