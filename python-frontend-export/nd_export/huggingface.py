"""Causal language models of transformers: from a folder or a config to an export."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import torch
import transformers

from . import checkpoint, fake, testing
from .api import Exported, Extra, export_module
from .errors import ExportError
from .progress import Progress
from .trace import example_size

_DIMENSIONS = {name: {0: "batch", 1: "seq"} for name in ("input_ids", "position_ids")}


def load_config(source: Path, trust_remote_code: bool = False) -> transformers.PretrainedConfig:
    """The model config in a folder or in a JSON file. Nothing is downloaded."""
    file = source / "config.json" if source.is_dir() else source
    if not file.exists():
        raise ExportError(
            f"{file} does not exist",
            remedy="give a folder with config.json or a config's JSON file; models are not downloaded "
            "(`hf download NAME --local-dir DIR` does that)",
        )
    try:
        fields = json.loads(file.read_text())
        if "model_type" not in fields:
            raise ValueError("it has no 'model_type'")
        config = transformers.AutoConfig.from_pretrained(
            file, local_files_only=True, trust_remote_code=trust_remote_code
        )
    except Exception as error:  # transformers raises what its many config classes raise
        raise ExportError(f"{file} is not the config of a transformers model: {error}") from error
    if getattr(config, "quantization_config", None) is not None:
        raise ExportError(
            f"{file} has a 'quantization_config', and nd trains unquantized weights",
            remedy="use the unquantized version of the model",
        )
    return config


def build(config: transformers.PretrainedConfig, trust_remote_code: bool = False) -> torch.nn.Module:
    """The model with f32 parameters, randomly initialised (or fake, under `fake_parameters`).

    Its attention is plain operations; where it uses transformers' attention interface, the export replaces them.
    """
    try:
        return transformers.AutoModelForCausalLM.from_config(
            config, dtype=torch.float32, attn_implementation="eager", trust_remote_code=trust_remote_code
        )
    except Exception as error:
        raise ExportError(f"transformers cannot make a causal language model of this config: {error}") from error


@contextlib.contextmanager
def logits_forward(model: torch.nn.Module) -> Iterator[None]:
    """While open, `model(input_ids, position_ids)` ([B, S] int64 each) returns the logits [B, S, V]."""
    original = model.forward

    def forward(input_ids, position_ids):
        return original(input_ids=input_ids, position_ids=position_ids, use_cache=False).logits

    model.forward = forward
    try:
        yield
    finally:
        del model.forward


def export_hf(
    source: str | Path,
    out: str | Path,
    *,
    random_init: int | None = None,
    no_weights: bool = False,
    perturb: bool = False,
    dropout: str = "keep",
    max_seq: int | None = None,
    freeze: tuple[str, ...] = (),
    trust_remote_code: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Exports a causal LM of transformers from a model folder or a config's JSON file, as `nd-export hf` does.

    random_init  seed of new weights, saved in `out` as a folder that transformers loads; None: those of the folder
    no_weights   only the graph; nothing of the model's size is ever allocated
    perturb      with random_init: adds noise, so that no tensor is all zero or one (`nd_export.testing.perturb`)
    max_seq      largest sequence length, if less than the config's
    freeze       globs of parameter names that are not trained
    """
    source, out, progress = Path(source), Path(out), progress or Progress(quiet=True)
    if random_init is not None and no_weights:
        raise ExportError("--random-init and --no-weights exclude each other")
    config = load_config(source, trust_remote_code)
    if random_init is None and not no_weights and not source.is_dir():
        raise ExportError(f"{source} is a config without weights", remedy="give --random-init SEED or --no-weights")
    with progress.stage(f"building {config.model_type}"):
        if random_init is not None:
            transformers.set_seed(random_init)
            model = build(config, trust_remote_code)
            if perturb:
                testing.perturb(model, random_init)
        else:
            with fake.fake_parameters():
                model = build(config, trust_remote_code)
    _freeze(model, freeze)
    out.mkdir(parents=True, exist_ok=True)
    if random_init is not None:
        extra = checkpoint.random_weights(model, source, out)
    elif no_weights:
        extra = Extra(stored={})
    else:
        model, extra = checkpoint.stored_weights(model, source, out, trust_remote_code, progress)
    extra.vocab_size = getattr(config, "vocab_size", None)
    positions = [getattr(config, "max_position_embeddings", None), getattr(config, "max_seq_len", None), max_seq]
    extra.max_positions = min((p for p in positions if p is not None), default=None)
    limits = {"batch": None, "seq": extra.max_positions}
    size = [example_size(i, limit) for i, limit in enumerate(limits.values())]
    with fake.mode_of(model):
        inputs = {name: torch.zeros(size, dtype=torch.long) for name in _DIMENSIONS}
    with logits_forward(model):
        return export_module(model, inputs, _DIMENSIONS, limits, out, ["logits"], dropout, extra, progress)


def _freeze(model: torch.nn.Module, globs: tuple[str, ...]) -> None:
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    for glob in globs:
        hits = [name for name in names if fnmatchcase(name, glob)]
        if not hits:
            raise ExportError(f"--freeze {glob} matches no parameter", remedy=f"names are such as '{names[0]}'")
        for name in hits:
            model.get_parameter(name).requires_grad_(False)
