"""The command `nd-export`."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from . import __version__
from .errors import ExportError

EPILOG = """\
what is written to OUT:
  model.onnx          the graph, opset 23, batch and sequence length as symbols; parameters point into safetensors
  model.nd.json       names, files, ties, blocks, outputs: what nd-import needs besides
  model.safetensors   with --random-init only (with config.json beside it: transformers loads OUT). The weights of a
                      folder stay where they are, unless transformers stores them in another form than the model's
  model.onnx.data     constants above 1 MiB, where there are any

next: nd-run OUT/model.onnx --shard=... --data tokens.bin --steps N, or nd-import OUT/model.onnx --batch B --seq S
exit codes: 0 done, 1 cannot be exported (the message says what, where and the remedy), 2 wrong usage
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="nd-export",
        description="Exports a model for the nd compiler.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"nd-export {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="hf | torch")

    hf = commands.add_parser(
        "hf",
        help="a causal language model of transformers: a local folder, or a config's JSON file",
        description="Exports a causal language model of transformers. Nothing is downloaded.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    hf.add_argument("source", type=Path, metavar="DIR|CONFIG.json", help="folder with config.json, or a config")
    weights = hf.add_mutually_exclusive_group()
    weights.add_argument("--random-init", type=int, metavar="SEED", help="new weights, saved in OUT")
    weights.add_argument("--no-weights", action="store_true", help="only the graph; works for a model of any size")
    hf.add_argument("--perturb", action="store_true", help="with --random-init: noise on every tensor (for tests)")
    hf.add_argument("--max-seq", type=int, metavar="N", help="largest sequence length [the config's]")
    hf.add_argument(
        "--freeze", action="append", default=[], metavar="GLOB", help="parameters that are not trained; repeatable"
    )
    hf.add_argument(
        "--trust-remote-code", action="store_true", help="run model code that lies in DIR (default: refuse it)"
    )
    _common(hf)

    module = commands.add_parser(
        "torch",
        help="any torch.nn.Module, made by a function in a Python file",
        description="Exports what FACTORY() in FILE.py returns: a dict of the arguments of nd_export.export (module, "
        "example_inputs, and optionally outputs, dynamic_shapes, limits), or a tuple (module, example_inputs[, outputs"
        "[, dynamic_shapes]]).",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_argument("source", metavar="FILE.py:FACTORY", help="Python file and the function in it")
    module.add_argument("--no-weights", action="store_true", help="only the graph, without saving the weights")
    _common(module)
    return top


def _common(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-o", "--out", type=Path, required=True, metavar="OUT", help="folder to write (made if needed)"
    )
    command.add_argument(
        "--dropout", choices=("keep", "off"), default="keep", help="keep the config's dropout, or set all to 0 [keep]"
    )
    command.add_argument("-q", "--quiet", action="store_true", help="no progress lines")
    command.add_argument("--traceback", action="store_true", help="on an error, show Python's traceback as well")


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    arguments = parser().parse_args(argv)
    return guarded("nd-export", lambda: run(arguments), arguments.traceback)


def guarded(program: str, action, show_traceback: bool) -> int:
    """Runs `action`; an error of the user's becomes one message and exit code 1."""
    try:
        return action() or 0
    except ExportError as error:
        if show_traceback:
            traceback.print_exc()
        print(f"{program}: error: {error}", file=sys.stderr)
    except OSError as error:
        if show_traceback:
            traceback.print_exc()
        print(f"{program}: error: {error.strerror or error}: {error.filename or ''}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return 130
    return 1


def run(arguments: argparse.Namespace) -> None:
    from .progress import Progress

    progress = Progress(quiet=arguments.quiet)
    progress.say("importing PyTorch and transformers")
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if arguments.command == "hf":
        from .huggingface import export_hf

        result = export_hf(
            arguments.source,
            arguments.out,
            random_init=arguments.random_init,
            no_weights=arguments.no_weights,
            perturb=arguments.perturb,
            dropout=arguments.dropout,
            max_seq=arguments.max_seq,
            freeze=tuple(arguments.freeze),
            trust_remote_code=arguments.trust_remote_code,
            progress=progress,
        )
    else:
        from .api import export

        made = call_factory(arguments.source)
        result = export(
            path=arguments.out,
            weights=not arguments.no_weights,
            dropout=arguments.dropout,
            quiet=arguments.quiet,
            **made,
        )
    parameters = result.content["parameters"].values()
    count = sum(_product(p["shape"]) for p in parameters)
    progress.say(
        f"{result.folder / 'model.onnx'}: {result.nodes} nodes, {len(parameters)} parameters, {count:,} numbers, "
        f"{len(result.content['blocks'])} blocks"
    )


def call_factory(source: str) -> dict:
    """The keyword arguments of `nd_export.export` that FILE.py:FACTORY returns."""
    file, _, name = source.rpartition(":")
    if not file.endswith(".py") or not Path(file).is_file():
        raise ExportError(f"'{source}' is not FILE.py:FACTORY with an existing file")
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        if not callable(getattr(module, name, None)):
            raise ExportError(f"{file} has no function '{name}'")
        made = getattr(module, name)()
    except (ExportError, KeyboardInterrupt):
        raise
    except Exception as error:  # whatever the user's file raises
        from .where import where_raised

        raise ExportError(f"{source} failed: {type(error).__name__}: {error}", where=where_raised(error)) from error
    if isinstance(made, Mapping):
        return dict(made)
    if isinstance(made, tuple) and 2 <= len(made) <= 4:
        return dict(zip(("module", "example_inputs", "outputs", "dynamic_shapes"), made, strict=False))
    raise ExportError(f"{source} returned {type(made).__name__}", remedy="return (module, example_inputs) or a dict")


def _product(shape: list[int]) -> int:
    result = 1
    for size in shape:
        result *= size
    return result


if __name__ == "__main__":
    sys.exit(main())
