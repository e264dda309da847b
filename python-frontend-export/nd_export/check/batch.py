"""The tokens both sides see: B samples of S + 1 tokens, the first S inputs, the last S labels."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import torch

from ..errors import ExportError


@dataclasses.dataclass
class Batch:
    """`tokens`: B * S + 1 of them; sample i is tokens i*S .. i*S + S."""

    tokens: np.ndarray
    batch: int
    seq: int

    @property
    def samples(self) -> torch.Tensor:
        """[B, S + 1] int64."""
        starts = np.arange(self.batch)[:, None] * self.seq
        return torch.from_numpy(self.tokens[starts + np.arange(self.seq + 1)[None, :]].astype(np.int64))

    @property
    def inputs(self) -> dict[str, torch.Tensor]:
        """input_ids and position_ids, [B, S] int64."""
        return {
            "input_ids": self.samples[:, :-1].contiguous(),
            "position_ids": torch.arange(self.seq).expand(self.batch, self.seq).contiguous(),
        }

    @property
    def labels(self) -> torch.Tensor:
        """[B, S] int64: the token after each input."""
        return self.samples[:, 1:]

    def write(self, path: Path) -> str:
        """Writes nd's token file and returns its type, uint16 or uint32."""
        dtype = "uint16" if self.tokens.max() < 1 << 16 else "uint32"
        self.tokens.astype(dtype).tofile(path)
        return dtype


def random_batch(vocab_size: int, batch: int, seq: int, seed: int) -> Batch:
    """Uniformly random tokens."""
    return Batch(np.random.default_rng(seed).integers(vocab_size, size=batch * seq + 1), batch, seq)


def batch_of_file(path: Path, dtype: str, vocab_size: int, batch: int, seq: int) -> Batch:
    """The first B * S + 1 tokens of a token file of type uint16 or uint32."""
    count = batch * seq + 1
    tokens = np.fromfile(path, dtype=dtype, count=count)
    if len(tokens) < count:
        raise ExportError(f"{path} has {len(tokens)} tokens, and {batch} x {seq} + 1 = {count} are needed")
    if tokens.max() >= vocab_size:
        raise ExportError(
            f"{path} has token {tokens.max()}, and the vocabulary has {vocab_size}",
            remedy="tokenize with the model's tokenizer, or give the file's type with --data-dtype",
        )
    return Batch(tokens, batch, seq)
