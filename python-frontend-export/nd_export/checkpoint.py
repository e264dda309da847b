"""The weights of a transformers model: new ones, or a folder's, left in place wherever they can be."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
import transformers
from safetensors import safe_open
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

from . import weights
from .api import Extra
from .errors import ExportError
from .parameters import describe
from .progress import Progress


def random_weights(model: torch.nn.Module, source: Path, out: Path) -> Extra:
    """Puts config and tokenizer files into `out`; the weights follow with the export."""
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(out)
    if model.generation_config is not None:
        model.generation_config.save_pretrained(out)
    if source.is_dir():
        _copy_files(source, out)
    return Extra(files=weights.other_files(out))


def _copy_files(source: Path, out: Path) -> None:
    for name in weights.other_files(source):
        if not (out / name).exists():
            shutil.copyfile(source / name, out / name)


def stored_weights(
    model: torch.nn.Module, source: Path, out: Path, trust_remote_code: bool, progress: Progress
) -> tuple[torch.nn.Module, Extra]:
    """Finds the folder's tensors for the (fake) model; loads them instead where the folder stores them otherwise."""
    stored = _by_model_names(model, weights.index(source))
    prefix = getattr(model, "base_model_prefix", "")
    found, missing = weights.locate(describe(model), stored, prefix)
    files = weights.other_files(source)
    if not missing:
        _load_buffers(model, source, stored, prefix)
        return model, Extra(weights_dir=source, stored=found, files=files)
    progress.say(f"{source} stores {missing[0]} and {len(missing) - 1} others in another form: weights are converted")
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
    with progress.stage("loading weights"):
        model, info = transformers.AutoModelForCausalLM.from_pretrained(
            source,
            dtype=torch.float32,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            trust_remote_code=trust_remote_code,
        )
    if info["missing_keys"] or info["mismatched_keys"]:
        absent = sorted([*info["missing_keys"], *(k[0] for k in info["mismatched_keys"])])
        raise ExportError(
            f"{source} has no weights of the right shape for {', '.join(absent[:5])} ({len(absent)} in all)",
            remedy="use a checkpoint of a causal language model, or --random-init SEED",
        )
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    _copy_files(source, out)
    return model, Extra(files=weights.other_files(out))


def _by_model_names(model: torch.nn.Module, stored: dict[str, weights.Stored]) -> dict[str, weights.Stored]:
    """A checkpoint's tensors by the names that this version of transformers gives them, where it only renames them."""
    transforms = get_model_conversion_mapping(model)
    renamings = [t for t in transforms if isinstance(t, WeightRenaming)]
    converters = [t for t in transforms if isinstance(t, WeightConverter)]
    result = {}
    for key in sorted(stored):
        name, converted = rename_source_key(key, renamings, converters)
        if converted is None:
            result[name] = stored[key]
    return result


def _load_buffers(model: torch.nn.Module, source: Path, stored: dict[str, weights.Stored], prefix: str) -> None:
    """Buffers that a checkpoint holds take their values from there."""
    for name, buffer in model.named_buffers():
        for key in (name, name.removeprefix(f"{prefix}."), f"{prefix}.{name}"):
            if key in stored and list(stored[key].shape) == list(buffer.shape):
                with safe_open(source / stored[key].file, framework="pt") as file:
                    buffer.copy_(file.get_tensor(stored[key].key))
                break
