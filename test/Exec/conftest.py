"""What several tests share: a real text, and tiny models exported, imported, and trained on one rank."""

import functools
import pathlib
import sys

import numpy as np
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import nd_export
from models import MODELS
from modules import MODULES
from nd_export import testing
from support import run
from training import nd_run

TEXT = pathlib.Path("/usr/share/common-licenses/GPL-3")  # every Debian system has it

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokens(tmp_path_factory):
    """A token file of a real text, a byte a token, and the same tokens as an array."""
    ids = np.frombuffer(TEXT.read_bytes(), dtype=np.uint8).astype(np.uint16)
    path = tmp_path_factory.mktemp("data") / "tokens.bin"
    ids.tofile(path)
    return path, ids


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Name of a model -> a folder with hf/, which transformers loads (no module has it), and onnx/, its export."""

    @functools.cache
    def export(name):
        folder = tmp_path_factory.mktemp(name)
        if name in MODULES:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                module = testing.perturb(MODULES[name](), 0)
            example, shapes = {"input_ids": torch.zeros(2, 13, dtype=torch.long)}, {"input_ids": {0: "batch"}}
            outputs = getattr(module, "outputs", ["logits"])
            nd_export.export(module, example, folder / "onnx", outputs=outputs, dynamic_shapes=shapes)
            return folder
        testing.perturb(MODELS[name](), 0).save_pretrained(folder / "hf")
        run("nd-export", "hf", folder / "hf", "-o", folder / "onnx")
        return folder

    return export


@pytest.fixture(scope="session")
def imported(exported):
    """(name of a model, batch, length of a sequence) -> its MLIR file."""

    @functools.cache
    def build(name, batch, seq):
        mlir = exported(name) / f"model-{batch}-{seq}.mlir"
        sizes = (f"--batch={batch}", f"--seq={seq}")
        run("nd-import", exported(name) / "onnx" / "model.onnx", *sizes, "-o", mlir)
        return mlir

    return build


@pytest.fixture(scope="session")
def one_rank(imported, tokens, tmp_path_factory):
    """(name of a model, settings) -> what nd computes on one rank."""

    @functools.cache
    def build(name, how):
        return nd_run(imported(name, how.batch, how.seq), tokens[0], how, tmp_path_factory.mktemp("one"), "dp1")

    return build
