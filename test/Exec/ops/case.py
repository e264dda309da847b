"""A case: one operation on one set of shapes, as MLIR and as PyTorch."""

import dataclasses
import zlib
from collections.abc import Callable

import torch


@dataclasses.dataclass
class Case:
    """`text` computes %r0, %r1, ... from %NAME of each input; `results` are their MLIR types; `reference` takes the inputs by
    name and returns a tensor or a tuple. `gradient`: the float inputs whose gradient is compared, through the results listed in
    `through` (all float ones by default)."""

    op: str
    inputs: dict[str, torch.Tensor]
    text: str
    results: list[str]
    reference: Callable[..., torch.Tensor | tuple]
    gradient: tuple[str, ...] = ()
    through: tuple[int, ...] | None = None

    def expected(self, double=False):
        """The reference's results as a tuple; in f64 when `double`."""
        cast = {k: v.double() if double and v.is_floating_point() else v for k, v in self.inputs.items()}
        out = self.reference(**cast)
        return out if isinstance(out, tuple) else (out,)

    def expected_gradients(self, cotangents, double=False):
        """Gradients of sum(result * cotangent) over the results in `cotangents` (index -> tensor), by input name."""
        cast = {k: v.double() if double and v.is_floating_point() else v for k, v in self.inputs.items()}
        leaves = {k: cast[k].clone().requires_grad_() for k in self.gradient}
        out = self.reference(**{**cast, **leaves})
        out = out if isinstance(out, tuple) else (out,)
        total = sum((out[i] * c.to(out[i].dtype)).sum() for i, c in cotangents.items())
        grads = torch.autograd.grad(total, list(leaves.values()))
        return dict(zip(leaves, grads, strict=True))


def t(*shape, dtype="f32"):
    """The MLIR tensor type of a shape."""
    return "tensor<" + "".join(f"{d}x" for d in shape) + dtype + ">"


class Random:
    """Reproducible random tensors, seeded by a name."""

    def __init__(self, name):
        self.generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))

    def f(self, *shape):
        return torch.randn(shape, generator=self.generator)

    def positive(self, *shape):
        return torch.rand(shape, generator=self.generator) + 0.1

    def i(self, high, *shape):
        return torch.randint(0, high, shape, generator=self.generator)

    def b(self, *shape):
        return torch.rand(shape, generator=self.generator) < 0.5
