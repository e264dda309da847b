"""Where an error is: the module that was running, and the innermost line of the user's code."""

from __future__ import annotations

import contextlib
import re
import traceback
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.nn.modules import module as torch_module

# Frames inside these packages are machinery: the line to show a user is the last one outside them.
_MACHINERY = ("torch", "nd_export", "onnx", "onnxscript", "onnx_ir", "contextlib.py", "copyreg.py", "functools.py")
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)\n?(?:\s*(.*))?')


class ModuleTracker:
    """Which modules of `root` are running; after an exception, `path()` names the innermost that had not returned."""

    def __init__(self, root: torch.nn.Module):
        self._names = {id(m): name for name, m in root.named_modules()}
        self._root = type(root).__name__
        self._stack: list[torch.nn.Module] = []

    @contextlib.contextmanager
    def watch(self) -> Iterator[ModuleTracker]:
        """Follows calls while it is open (hooks on all modules, removed at the end)."""
        before = torch_module.register_module_forward_pre_hook(self._enter)
        after = torch_module.register_module_forward_hook(self._leave)
        try:
            yield self
        finally:
            before.remove()
            after.remove()

    def _enter(self, module, _inputs) -> None:
        self._stack.append(module)

    def _leave(self, module, _inputs, _output) -> None:
        # An exception that the model itself caught leaves entries above its own: drop them too.
        while self._stack and self._stack.pop() is not module:
            pass

    def path(self) -> str | None:
        """`transformer.h.0.attn (GPT2Attention)`, or None outside any module."""
        for module in reversed(self._stack):
            if id(module) in self._names:
                return f"{self._names[id(module)] or self._root} ({type(module).__name__})"
        return None


def shorten(path: str) -> str:
    """A source file's path from its package on, or from the current folder; else the bare file name."""
    parts = Path(path).parts
    for marker in ("site-packages", "dist-packages"):
        if marker in parts:
            return "/".join(parts[len(parts) - parts[::-1].index(marker) :])
    for i, part in enumerate(parts):
        if re.fullmatch(r"python3\.\d+", part):
            return "/".join(parts[i + 1 :])
    with contextlib.suppress(ValueError):
        return Path(path).resolve().relative_to(Path.cwd()).as_posix()
    return Path(path).name


def is_machinery(path: str) -> bool:
    """Whether a source file belongs to the tools that export rather than to the model."""
    own = Path(__file__).parent
    return Path(path).is_relative_to(own) or shorten(path).split("/")[0] in _MACHINERY


def _describe(file: str, line: int | str, function: str, code: str | None) -> str:
    return f"{shorten(file)}:{line}, in {function}" + (f"\n      {code.strip()}" if code else "")


def where_in_stack(frames: traceback.StackSummary) -> str | None:
    """The innermost frame of the user's code, with its source line."""
    users = [f for f in frames if not is_machinery(f.filename) and not f.filename.startswith("<")]
    return _describe(users[-1].filename, users[-1].lineno, users[-1].name, users[-1].line) if users else None


def where_in_trace(stack_trace: str | None) -> str | None:
    """The same for the text that torch.fx keeps with each node (`node.meta["stack_trace"]`)."""
    users = [m for m in _FRAME.findall(stack_trace or "") if not is_machinery(m[0])]
    return _describe(*users[-1]) if users else None


def where_raised(error: BaseException) -> str | None:
    """The innermost frame of the user's code that an exception passed through."""
    return where_in_stack(traceback.extract_tb(error.__traceback__))


def first_paragraph(text: str) -> str:
    """The part of a long PyTorch error that says what is wrong, without its advertisements for other tools."""
    lines = []
    text = re.sub(r" For more information, run with TORCH_LOGS=\S+", "", text)
    for line in text.strip().splitlines():
        if not line.strip() and lines:
            break
        if line.strip():
            lines.append(re.sub(r"\x1b\[\d+m", "", line.rstrip()))
    return "\n".join(lines) or text
