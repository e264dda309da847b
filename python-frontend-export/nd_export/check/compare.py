"""Differences between nd's numbers and transformers', and which of them are small."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import torch

# A gradient this much smaller than all together is zero in exact arithmetic (the bias of all keys, say): rounding noise.
_ZERO = 1e-7


@dataclasses.dataclass
class Difference:
    """|ours - theirs| over |theirs|, or over the norm of all gradients if `zero`."""

    name: str
    norm: float
    relative: float
    zero: bool = False
    judged: bool = False  # small beside PyTorch's own rounding, as float64 shows
    note: str = ""

    def small(self, tolerance: float) -> bool:
        return self.judged or self.relative <= tolerance


def relative(ours: torch.Tensor, theirs: torch.Tensor, norm: float | None = None) -> float:
    """|ours - theirs| / norm in float64; infinite where shapes or finiteness differ."""
    if ours.shape != theirs.shape or not bool(torch.isfinite(ours).all()):
        return float("inf")
    difference = float((ours.double() - theirs.double()).norm())
    norm = float(theirs.double().norm()) if norm is None else norm
    return difference / norm if norm else (0.0 if difference == 0 else float("inf"))


def gradients(ours: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor], total: float) -> list[Difference]:
    """One entry a parameter, in the order of `theirs`; `total` is the norm of all gradients."""
    result = []
    for name, expected in theirs.items():
        norm = float(expected.double().norm())
        zero = norm <= _ZERO * total
        if name not in ours:
            result.append(Difference(name, norm, float("inf"), note="nd has no gradient of it"))
            continue
        note = "" if ours[name].shape == expected.shape else f"nd's shape is {list(ours[name].shape)}"
        off = relative(ours[name], expected, total if zero else None)
        result.append(Difference(name, norm, off, zero, note=note))
    result += [Difference(n, 0.0, float("inf"), note="transformers has none") for n in ours if n not in theirs]
    return result


def judge(
    entries: list[Difference],
    tolerance: float,
    ours: Mapping[str, torch.Tensor],
    single: Mapping[str, torch.Tensor],
    double: Mapping[str, torch.Tensor],
) -> None:
    """Marks the differences that float64 excuses: nd is at most twice as far from it as PyTorch's float32 is."""
    for entry in entries:
        if entry.small(tolerance) or entry.name not in ours or entry.name not in double:
            continue
        own, theirs = relative(ours[entry.name], double[entry.name]), relative(single[entry.name], double[entry.name])
        entry.judged = own <= 2 * theirs
        entry.note = f"from float64: nd {own:.1e}, PyTorch {theirs:.1e}"


def table(entries: list[Difference], tolerance: float) -> str:
    """Lines `parameter  norm  difference  verdict`."""
    width = max((len(e.name) for e in entries), default=0)
    lines = [f"{'parameter':{width}}  {'norm':>9}  {'difference':>10}"]
    for entry in entries:
        verdict = "ok" if entry.small(tolerance) else "DIFFERS"
        verdict += " (zero: beside the norm of all)" if entry.zero else ""
        verdict += f" ({entry.note})" if entry.note else ""
        lines.append(f"{entry.name:{width}}  {entry.norm:9.2e}  {entry.relative:10.1e}  {verdict}")
    return "\n".join(lines)
