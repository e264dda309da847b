"""Data that several tests share: a real text."""

import pathlib
import sys

import numpy as np
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))

TEXT = pathlib.Path("/usr/share/common-licenses/GPL-3")  # every Debian system has it

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokens(tmp_path_factory):
    """A token file of a real text, a byte a token, and the same tokens as an array."""
    ids = np.frombuffer(TEXT.read_bytes(), dtype=np.uint8).astype(np.uint16)
    path = tmp_path_factory.mktemp("data") / "tokens.bin"
    ids.tofile(path)
    return path, ids
