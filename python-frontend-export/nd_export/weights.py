"""Where the bytes of weights lie: safetensors folders, read by their headers alone."""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path

import torch
from safetensors.torch import save_file

from .errors import ExportError
from .parameters import Parameter

_DTYPES = {"F32": "f32", "F64": "f64", "BF16": "bf16", "F16": "f16"}
_BYTES = {"f64": 8, "f32": 4, "bf16": 2, "f16": 2}
# Other files of a model folder, which a saved folder needs too.
_COPIED = {".json", ".txt", ".model", ".jinja", ".py", ".tiktoken"}
_OWN = {"model.nd.json", "model.safetensors.index.json", "pytorch_model.bin.index.json"}


@dataclasses.dataclass(frozen=True)
class Stored:
    """One tensor in a safetensors file; `offset` counts from the start of the file."""

    file: str
    key: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    length: int


def read_header(path: Path) -> dict[str, Stored]:
    """The tensors of one safetensors file by key. A damaged file is an `ExportError` that names it."""
    try:
        size = path.stat().st_size
        with path.open("rb") as f:
            (n,) = struct.unpack("<Q", f.read(8))
            if n > size - 8:
                raise ValueError("its header is longer than the file")
            header = json.loads(f.read(n))
        header.pop("__metadata__", None)
        result = {}
        for key, entry in header.items():
            begin, end = entry["data_offsets"]
            if not 0 <= begin <= end <= size - 8 - n:
                raise ValueError(f"'{key}' ends beyond the file")
            dtype = _DTYPES.get(entry["dtype"], entry["dtype"])
            result[key] = Stored(path.name, key, dtype, tuple(entry["shape"]), 8 + n + begin, end - begin)
            elements = torch.Size(entry["shape"]).numel()
            if dtype in _BYTES and elements * _BYTES[dtype] != end - begin:
                raise ValueError(f"'{key}' has {end - begin} bytes for {elements} elements of {dtype}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise ExportError(
            f"cannot read {path}: {error}", remedy="download or save the file again; it may be truncated"
        ) from error
    return result


def index(folder: Path) -> dict[str, Stored]:
    """All tensors of a model folder by key: `model.safetensors`, or the shards that its index names."""
    single, listed = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.exists():
        return read_header(single)
    if not listed.exists():
        others = sorted(p.name for p in folder.iterdir() if p.suffix in (".bin", ".pt", ".pth"))
        found = f" (it has {', '.join(others[:3])})" if others else ""
        raise ExportError(
            f"{folder} has no model.safetensors and no model.safetensors.index.json{found}",
            remedy="load and save it once with transformers: "
            f"AutoModelForCausalLM.from_pretrained({str(folder)!r}).save_pretrained(NEW_FOLDER)"
            if others
            else "give --random-init SEED or --no-weights to export without weights",
        )
    try:
        weight_map = json.loads(listed.read_text())["weight_map"]
        files = sorted(set(weight_map.values()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExportError(f"{listed} is not an index of weights: {error}", remedy="download it again") from error
    result: dict[str, Stored] = {}
    for file in files:
        if Path(file).name != file or not (folder / file).exists():
            raise ExportError(f"{listed} names {file}, which is not in {folder}", remedy="download the missing file")
        result |= read_header(folder / file)
    return result


def locate(
    parameters: dict[str, Parameter], stored: dict[str, Stored], prefix: str = ""
) -> tuple[dict[str, Stored], list[str]]:
    """(parameter -> where its bytes are, names without). A tensor may be stored under any of its names.

    `prefix` is the path of the base model ("transformer"): folders saved from the base model lack it, others have it.
    """
    found, missing = {}, []
    for name, parameter in parameters.items():
        candidates = list(parameter.names)
        if prefix:
            candidates += [n.removeprefix(f"{prefix}.") for n in parameter.names if n.startswith(f"{prefix}.")]
            candidates += [f"{prefix}.{n}" for n in parameter.names]
        hit = next((stored[c] for c in candidates if c in stored and list(stored[c].shape) == parameter.shape), None)
        if hit is None or hit.dtype not in _BYTES:
            missing.append(name)
        else:
            found[name] = hit
    return found, missing


def save(module: torch.nn.Module, parameters: dict[str, Parameter], path: Path) -> dict[str, Stored]:
    """Writes parameters (each tensor once, under its first name) and persistent buffers of `module` to `path`."""
    state = module.state_dict(keep_vars=True)
    tensors = {name: module.get_parameter(name).detach().contiguous() for name in parameters}
    # A buffer may share memory with another one, which safetensors refuses.
    tensors |= {name: buffer.clone().contiguous() for name, buffer in module.named_buffers() if name in state}
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    temporary.touch()  # with the user's permissions, where safetensors makes a file that only the owner reads
    mode = temporary.stat().st_mode
    save_file(tensors, temporary, metadata={"format": "pt"})
    temporary.chmod(mode)
    temporary.replace(path)
    return {name: entry for name, entry in read_header(path).items() if name in parameters}


def other_files(folder: Path) -> list[str]:
    """Names of the files in `folder` that are not weights and that a saved model folder needs (config, tokenizer)."""
    return sorted(p.name for p in folder.iterdir() if p.is_file() and p.suffix in _COPIED and p.name not in _OWN)
