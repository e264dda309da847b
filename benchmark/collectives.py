"""Collectives of the host runtime beside Open MPI, in turns in one go.

    . scripts/env.sh && ninja -C build/release nd-collectives && python benchmark/collectives.py [--ranks 2 4] [--rounds 3]

Open MPI is no dependency of nd: install it by hand with `apt-get install openmpi-bin libopenmpi-dev`; without it only our
times are printed. A figure is the best of all rounds, of the slowest rank. Sizes are those of the whole tensor: what is
reduced, or has been gathered. Where ranks are as many as cores both sides bind them; where they are more, Open MPI yields
while it waits."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from common import ROOT, load, run


def times(*command):
    out = run(*command, env={"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    lines = [line.split() for line in out.splitlines()]
    return {(kind, int(size)): float(time) for kind, size, time in lines}


def size_name(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    ours = shutil.which("nd-collectives") or sys.exit("there is no nd-collectives: build it with ninja nd-collectives")
    with tempfile.TemporaryDirectory() as folder:
        peer = None
        if shutil.which("mpicxx"):
            peer = pathlib.Path(folder) / "mpi"
            source = ROOT / "benchmark/collectives/mpi.cpp"
            subprocess.run(["mpicxx", "-O2", "-std=c++17", source, "-o", peer], check=True)
        for ranks in args.ranks:
            # More ranks than cores: Open MPI has to give the core away while it waits.
            crowded = ranks > len(os.sched_getaffinity(0))
            flags = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] if crowded else ["--bind-to", "core"]
            best = {"nd": {}, "mpi": {}}
            for _ in range(args.rounds):
                results = {"nd": times(ours, ranks), "mpi": times("mpirun", "-n", ranks, *flags, peer) if peer else {}}
                for side, result in results.items():
                    for key, time in result.items():
                        best[side][key] = min(time, best[side].get(key, time))
            print(f"{ranks} ranks{' (more than cores)' if crowded else ''}, microseconds; {load()}")
            print(f"{'':16}{'size':>10}{'nd':>12}{'Open MPI':>12}{'ratio':>8}{'GB/s sent':>11}")
            for (kind, size), time in sorted(best["nd"].items()):
                sent = (2 if kind == "all_reduce" else 1) * (ranks - 1) / ranks * size
                other = best["mpi"].get((kind, size))
                beside = f"{other:12.1f}{other / time:8.2f}" if other else f"{'-':>12}{'-':>8}"
                print(f"{kind:16}{size_name(size):>10}{time:12.1f}{beside}{sent / time / 1e3:11.2f}")


if __name__ == "__main__":
    main()
