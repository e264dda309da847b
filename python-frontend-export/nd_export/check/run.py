"""What `nd-check` does, from the folder to the verdict."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import transformers

from .. import sidecar
from ..errors import ExportError
from ..huggingface import export_hf
from ..progress import Progress
from . import compare, localize, reference
from .batch import Batch, batch_of_file, random_batch
from .cli import DIFFERS
from .toolchain import Toolchain


def check(arguments: argparse.Namespace, work: Path) -> int:
    """Prints the comparison; returns 0 if nd agrees, else DIFFERS."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    progress = Progress("nd-check", arguments.quiet)
    export, content, folder = _export(arguments.source, work, progress)
    batch = _batch(arguments, content)
    tools = Toolchain(work, progress, arguments.target, arguments.shard)
    metrics, gradients = tools.step(export, batch, folder, arguments.threads)
    with progress.stage("transformers"):
        model = reference.load(folder, content, torch.float32)
        step = reference.run_step(model, batch)

    entries = compare.gradients(gradients, step.gradients, step.norm)
    loss_off = abs(metrics["loss"] - step.loss) / abs(step.loss)
    tolerance = arguments.tolerance
    loss_ok = loss_off <= tolerance
    if not (loss_ok and all(e.small(tolerance) for e in entries)):
        with progress.stage("transformers in float64"):
            double = reference.run_step(reference.load(folder, content, torch.float64), batch)
        compare.judge(entries, tolerance, gradients, step.gradients, double.gradients)
        loss_ok = loss_ok or abs(metrics["loss"] - double.loss) <= 2 * abs(step.loss - double.loss)

    print(compare.table(entries, tolerance))
    print(_line("loss", metrics["loss"], step.loss, loss_ok))
    norm_off = abs(metrics["grad_norm"] - step.norm) / step.norm if step.norm else 0.0
    norm_ok = norm_off <= tolerance or any(e.judged for e in entries)
    print(_line("gradient norm", metrics["grad_norm"], step.norm, norm_ok))
    wrong = [e for e in entries if not e.small(tolerance)]
    if loss_ok and norm_ok and not wrong:
        worst = max(entries, key=lambda e: 0.0 if e.judged else e.relative, default=None)
        print(f"nd agrees with transformers: {len(entries)} gradients, the largest difference is {worst.relative:.1e}")
        return 0
    print(f"nd DIFFERS from transformers: {'' if loss_ok else 'the loss, '}{len(wrong)} of {len(entries)} gradients")
    _localize(model, step, entries, loss_ok, batch, tools, work, tolerance, progress)
    return DIFFERS


def _export(source: Path, work: Path, progress: Progress) -> tuple[Path, dict, Path]:
    """(export folder, its sidecar, folder of the weights)."""
    if (source / sidecar.NAME).exists():
        content = sidecar.read(source)
        folder = Path(content["weights_dir"] or source)
        if content["task"] != "causal-lm" or not (folder / "config.json").exists():
            raise ExportError(
                f"{source} is not the export of a causal language model of transformers",
                remedy="nd-check compares those; compare other modules with nd-run --dump-gradients",
            )
        if any(p["file"] is None for p in content["parameters"].values()):
            raise ExportError(f"{source} was exported without weights", remedy="give the model's folder")
        return source, content, folder
    result = export_hf(source, work / "export", dropout="off", progress=progress)
    weights = Path(result.content["weights_dir"] or result.folder)
    return result.folder, result.content, weights


def _batch(arguments: argparse.Namespace, content: dict) -> Batch:
    limit, vocabulary = content["max_positions"], content["vocab_size"]
    seq = arguments.seq or min(32, limit or 32)
    if limit is not None and seq > limit:
        raise ExportError(f"--seq={seq} is longer than the model's {limit} positions")
    if arguments.data:
        return batch_of_file(arguments.data, arguments.data_dtype, vocabulary, arguments.batch, seq)
    return random_batch(vocabulary, arguments.batch, seq, arguments.seed)


def _line(name: str, ours: float, theirs: float, good: bool) -> str:
    off = abs(ours - theirs) / abs(theirs) if theirs else abs(ours)
    return f"{name}: nd {ours:.7g}, transformers {theirs:.7g}, difference {off:.1e}  {'ok' if good else 'DIFFERS'}"


def _localize(model, step, entries, loss_ok, batch, tools, work, tolerance, progress) -> None:
    """Prints the first wrong module and how it was found."""
    finding = None
    if not loss_ok:
        try:
            finding = localize.by_outputs(model, batch, tools, work, 10 * tolerance, progress)
        except ExportError as error:
            print(f"the outputs of modules could not be compared: {error}")
        if finding is not None and finding.module is None:
            print(f"{finding.detail} (method: {finding.method}), so the loss itself or its labels differ")
            return
    if finding is None:
        finding = localize.by_gradients(model, step.order, entries, tolerance)
        if not loss_ok:
            finding.method += "; the loss differs too, so the cause may lie in the forward, anywhere before the loss"
    print(f"first wrong module: {finding.module or 'not found'}\n  {finding.detail}\n  method: {finding.method}")
