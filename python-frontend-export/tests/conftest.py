"""Exports that several tests look at, made once."""

import functools
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import families
import pytest
import torch
import transformers
from nd_export.huggingface import export_hf

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """name in families.MODELS -> (model in eval mode, folder it was saved in, folder it was exported to)."""

    @functools.cache
    def make(name):
        model = families.MODELS[name]()
        source, out = tmp_path_factory.mktemp(name), tmp_path_factory.mktemp(f"{name}-onnx")
        model.save_pretrained(source)
        export_hf(source, out)
        return model.eval(), source, out

    return make
