"""The command `nd-check`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .. import __version__
from ..cli import guarded
from ..errors import ExportError

DIFFERS = 3

EPILOG = """\
what it does:
  exports DIR (a model folder; an export folder is used as it is), compiles it, runs one step of nd and one of
  transformers in float32 without dropout, on the same tokens, and compares loss, gradient norm and every gradient.
  A difference above the tolerance is checked once more against float64: nd passes if it is at most twice as far from
  it as PyTorch's float32 is. What then remains is traced to the first module that is wrong:
    - if the loss differs: a second program returns every module's output, and the first that differs is named
    - if only gradients differ: the last module in forward order with a wrong gradient is named
  The output says which of the two it was.

exit codes: 0 nd agrees, 1 cannot be checked, 2 wrong usage, 3 nd differs
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="nd-check",
        description="Compares one training step of nd with transformers.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"nd-check {__version__}")
    top.add_argument("source", type=Path, metavar="DIR", help="model folder, or folder that nd-export hf wrote")
    top.add_argument("--shard", metavar="MESH", help="mesh of the step, e.g. dp2,tp2 [one rank]")
    top.add_argument("--batch", type=int, default=4, metavar="B", help="sequences [4]")
    top.add_argument("--seq", type=int, metavar="S", help="tokens a sequence [32, or the model's limit]")
    top.add_argument("--data", type=Path, metavar="TOKENS.bin", help="token file to take the tokens from [random]")
    top.add_argument("--data-dtype", choices=("uint16", "uint32"), default="uint16", help="its type [uint16]")
    top.add_argument("--seed", type=int, default=0, help="of the random tokens [0]")
    top.add_argument("--tolerance", type=float, default=1e-5, metavar="T", help="relative difference [1e-5]")
    top.add_argument("--target", choices=("host", "cuda"), default="host", help="what nd compiles for [host]")
    top.add_argument("--threads", type=int, metavar="N", help="threads a rank [nd-run's default]")
    top.add_argument("--work", type=Path, metavar="DIR", help="keep everything that was made here [a temporary folder]")
    top.add_argument("-q", "--quiet", action="store_true", help="no progress lines")
    top.add_argument("--traceback", action="store_true", help="on an error, show Python's traceback as well")
    return top


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    arguments = parser().parse_args(argv)

    def action() -> int:
        for name, least in (("batch", 1), ("seq", 2), ("tolerance", 0), ("threads", 1)):
            value = getattr(arguments, name)
            if value is not None and value < least:
                raise ExportError(f"--{name}={value} is too small", remedy=f"give at least {least}")
        from .run import check

        if arguments.work:
            arguments.work.mkdir(parents=True, exist_ok=True)
            return check(arguments, arguments.work)
        with tempfile.TemporaryDirectory(prefix="nd-check-") as work:
            return check(arguments, Path(work))

    return guarded("nd-check", action, arguments.traceback)


if __name__ == "__main__":
    sys.exit(main())
