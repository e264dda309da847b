"""`nd-check`, with commands of nd that return what a test prepared."""

import json
import sys

import pytest
import torch
from nd_export.check import compare, reference
from nd_export.check.batch import Batch, batch_of_file, random_batch
from nd_export.check.cli import main
from nd_export.errors import ExportError
from safetensors.torch import save_file

COMMAND = """#!{python}
import os, pathlib, shutil, sys
name, prepared = os.path.basename(sys.argv[0]), pathlib.Path({prepared!r})
arguments = dict(zip(sys.argv[1:], sys.argv[2:]))
if (prepared / ("fail-" + name)).exists():
    sys.exit(name + ": no rule for nd.frobnicate")
with open(prepared / "log", "a") as log:
    print(name, *sys.argv[1:], file=log)
if name != "nd-run":
    pathlib.Path(arguments["-o"]).write_text("")
elif "--call" in arguments:
    shutil.copy(prepared / "outputs.safetensors", arguments["-o"])
else:
    pathlib.Path(arguments["--dump-gradients"]).mkdir()
    shutil.copy(prepared / "gradients.safetensors", arguments["--dump-gradients"])
    shutil.copy(prepared / "metrics.jsonl", arguments["--metrics"])
"""


class Nd:
    """nd's commands on the PATH; they answer with `gradients`, `loss` and `outputs`, right ones unless changed."""

    def __init__(self, folder, model, source, out):
        self.folder, self.out = folder, out
        content = json.loads((out / "model.nd.json").read_text())
        batch = random_batch(256, 4, 32, seed=0)
        loaded = reference.load(source, content, torch.float32)
        step = reference.run_step(loaded, batch)
        self.gradients, self.loss, self.norm = dict(step.gradients), step.loss, step.norm
        self.outputs = reference.module_outputs(loaded, batch)
        (folder / "bin").mkdir()
        for name in ("nd-import", "nd-opt", "nd-compile", "nd-run"):
            path = folder / "bin" / name
            path.write_text(COMMAND.format(python=sys.executable, prepared=str(folder)))
            path.chmod(0o755)

    def check(self, *arguments):
        save_file({k: v.contiguous() for k, v in self.gradients.items()}, self.folder / "gradients.safetensors")
        save_file({k: v.clone().contiguous() for k, v in self.outputs.items()}, self.folder / "outputs.safetensors")
        (self.folder / "metrics.jsonl").write_text(json.dumps({"step": 1, "loss": self.loss, "grad_norm": self.norm}))
        return main([str(self.out), *arguments])


@pytest.fixture
def nd(exported, tmp_path, monkeypatch):
    fake = Nd(tmp_path, *exported("gpt2"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return fake


def test_agreement_is_exit_code_0_and_lists_every_parameter(nd, capsys):
    assert nd.check("--shard=dp2", "--threads=1") == 0
    text = capsys.readouterr().out
    assert text.count(" ok\n") >= len(nd.gradients) and "transformer.h.1.mlp.c_fc.bias" in text
    assert "nd agrees with transformers: 28 gradients" in text and "DIFFERS" not in text
    commands = (nd.folder / "log").read_text().splitlines()
    assert [c.split()[0] for c in commands] == ["nd-import", "nd-opt", "nd-compile", "nd-run"]
    assert "--batch=4 --seq=32" in commands[0] and "--shard=dp2 --keep-gradients" in commands[1]
    assert "--data-dtype=uint16 --no-shuffle --steps 1" in commands[3] and "--threads=1" in commands[3]


def test_wrong_backward_is_traced_by_gradients(nd, capsys):
    wrong = [n for n in nd.gradients if ".wte" in n or ".wpe" in n or ".h.0." in n or ".h.1.ln_1" in n or "c_attn" in n]
    for name in wrong:
        nd.gradients[name] = nd.gradients[name] * 1.01
    assert nd.check() == 3
    text = capsys.readouterr().out
    assert f"nd DIFFERS from transformers: {len(wrong)} of 28 gradients" in text
    assert "first wrong module: transformer.h.1.attn.c_attn\n" in text
    assert "method: gradients alone" in text and "the loss differs too" not in text


def test_wrong_tied_gradient_names_all_users(nd, capsys):
    nd.gradients["transformer.wte.weight"] = nd.gradients["transformer.wte.weight"] * 1.01
    assert nd.check("-q") == 3
    assert "wrong gradients: transformer.wte.weight = lm_head.weight" in capsys.readouterr().out


def test_wrong_forward_is_traced_by_outputs(nd, capsys):
    nd.loss *= 1.001
    names = list(nd.outputs)
    for name in names[names.index("transformer.h.1.mlp.act") :]:
        nd.outputs[name] = nd.outputs[name] * 1.01
    assert nd.check("-q") == 3
    text = capsys.readouterr().out
    assert "first wrong module: transformer.h.1.mlp.act\n" in text
    assert "its output differs by 1.0e-02; transformer.h.1.mlp.c_fc before it agrees" in text
    assert "method: outputs of all modules" in text
    assert "--forward-only" in (nd.folder / "log").read_text()


def test_missing_gradient_and_nan_differ(nd, capsys):
    del nd.gradients["transformer.ln_f.bias"]
    nd.gradients["transformer.ln_f.weight"] = torch.full((64,), float("nan"))
    assert nd.check("-q") == 3
    text = capsys.readouterr().out
    assert "nd has no gradient of it" in text and "first wrong module: transformer.ln_f\n" in text


def test_failing_command_is_shown_with_what_it_said(nd, capsys):
    (nd.folder / "fail-nd-opt").touch()
    assert nd.check("-q") == 1
    text = capsys.readouterr().err
    assert "nd-opt failed with exit code 1: nd-opt --keep-gradients" in text and "no rule for nd.frobnicate" in text


def test_missing_command_is_named(nd, capsys):
    (nd.folder / "bin" / "nd-compile").unlink()
    assert nd.check("-q") == 1
    assert "nd-compile is not on the PATH\n  remedy: build nd" in capsys.readouterr().err


def test_export_without_weights_cannot_be_checked(nd, tmp_path, capsys):
    content = json.loads((nd.out / "model.nd.json").read_text())
    for parameter in content["parameters"].values():
        parameter["file"] = None
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "model.nd.json").write_text(json.dumps(content))
    assert main([str(tmp_path / "copy"), "-q"]) == 1
    assert "was exported without weights" in capsys.readouterr().err


def test_zero_gradients_are_compared_with_the_norm_of_all():
    theirs = {"a": torch.ones(4), "b": torch.full((4,), 1e-9)}
    a, b = compare.gradients({"a": torch.ones(4), "b": torch.zeros(4)}, theirs, total=2.0)
    assert not a.zero and b.zero and b.small(1e-5)


def test_float64_excuses_only_differences_of_pytorchs_own_size():
    double = {n: torch.ones(4, dtype=torch.float64) for n in "ab"}
    single = {n: torch.ones(4) * (1 + 1e-4) for n in "ab"}
    ours = {"a": torch.ones(4) * (1 - 1.9e-4), "b": torch.ones(4) * (1 - 2.1e-4)}
    entries = compare.gradients(ours, single, total=2.0)
    compare.judge(entries, 1e-5, ours, single, double)
    assert [e.small(1e-5) for e in entries] == [True, False]


def test_samples_overlap_by_one_token():
    batch = Batch(torch.arange(7).numpy(), batch=2, seq=3)
    assert batch.inputs["input_ids"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert batch.labels.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert batch.inputs["position_ids"].tolist() == [[0, 1, 2]] * 2


def test_token_files(tmp_path):
    path = tmp_path / "tokens.bin"
    assert Batch(torch.arange(7).numpy() * 20000, 2, 3).write(path) == "uint32"
    assert batch_of_file(path, "uint32", 200000, 2, 3).tokens.tolist() == [i * 20000 for i in range(7)]
    with pytest.raises(ExportError, match="has token 120000, and the vocabulary has 257"):
        batch_of_file(path, "uint32", 257, 2, 3)
    with pytest.raises(ExportError, match="has 7 tokens, and 3 x 3 . 1 = 10 are needed"):
        batch_of_file(path, "uint32", 200000, 3, 3)
