"""The command `nd-export`: help, exit codes, messages."""

import subprocess
import sys
import time

import pytest
from evaluate import sidecar
from nd_export.cli import main
from nd_export.testing import tiny_gpt2

FACTORY = """
import torch

class Square(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))
    def forward(self, x):
        return ((x * self.w) ** 2).sum(), torch.tensor(x.shape[0])

def make():
    return dict(module=Square(), example_inputs=torch.randn(4, 3), outputs=("loss_sum", "loss_count"))

def number():
    return 3

def broken():
    return torch.ones(2) @ torch.ones(3)
"""


def test_help_is_complete_and_quick():
    start = time.monotonic()
    text = subprocess.run(
        [sys.executable, "-m", "nd_export.cli", "hf", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert time.monotonic() - start < 2  # does not import PyTorch
    for option in ("--random-init", "--no-weights", "--dropout", "--freeze", "--max-seq", "--traceback", "--out"):
        assert option in text
    assert "exit codes" in text


@pytest.fixture
def config(tmp_path):
    tiny_gpt2(n_layer=1).config.save_pretrained(tmp_path)
    return tmp_path / "config.json"


def test_export_with_frozen_parameters(config, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["hf", str(config), "--no-weights", "--freeze=*.wpe.*", "--freeze", "*ln_?.bias", "-o", str(out)]) == 0
    frozen = [n for n, p in sidecar(out)["parameters"].items() if not p["trainable"]]
    assert frozen == [
        "transformer.wpe.weight",
        "transformer.h.0.ln_1.bias",
        "transformer.h.0.ln_2.bias",
        "transformer.ln_f.bias",
    ]
    progress = capsys.readouterr().err
    assert "tracing the module: " in progress and "16 parameters" in progress


def test_factory_in_a_file(tmp_path):
    (tmp_path / "square.py").write_text(FACTORY)
    out = tmp_path / "out"
    assert main(["torch", f"{tmp_path}/square.py:make", "-q", "-o", str(out)]) == 0
    assert sidecar(out)["task"] == "loss" and (out / "model.safetensors").exists()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["hf", "no/such/folder"], "no/such/folder does not exist"),
        (["hf", "CONFIG"], "is a config without weights\n  remedy: give --random-init SEED or --no-weights"),
        (["hf", "CONFIG", "--no-weights", "--freeze=nothing"], "--freeze nothing matches no parameter"),
        (["torch", "no.py:make"], "'no.py:make' is not FILE.py:FACTORY"),
        (["torch", "FILE:other"], "has no function 'other'"),
        (["torch", "FILE:broken"], "square.py:broken failed: RuntimeError: inconsistent tensor size"),
        (["torch", "FILE:broken"], "square.py:18, in broken\n      return torch.ones(2) @ torch.ones(3)"),
        (["torch", "FILE:number"], "returned int\n  remedy: return"),
    ],
)
def test_error_is_one_message_and_exit_code_1(config, tmp_path, capsys, arguments, message):
    (tmp_path / "square.py").write_text(FACTORY)
    arguments = [a.replace("CONFIG", str(config)).replace("FILE", f"{tmp_path}/square.py") for a in arguments]
    assert main([*arguments, "-q", "-o", str(tmp_path / "out")]) == 1
    text = capsys.readouterr().err
    assert text.startswith("nd-export: error: ") and message in text and "Traceback" not in text
    assert main([*arguments, "-q", "-o", str(tmp_path / "out"), "--traceback"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_wrong_usage_is_exit_code_2(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["hf", "x", "--random-init", "1", "--no-weights", "-o", "y"])
    assert exit_.value.code == 2
