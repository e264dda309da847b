"""Draws small transformers, and meshes and options for them, and compares what nd trains with PyTorch in f64.

Usage: . scripts/env.sh; python scripts/fuzz.py FIRST COUNT [--cases 6] [--family cohere] [--folder DIR]

Model and cases follow from a seed, so `fuzz.py 17 1` draws again what seed 17 drew. A case that differs, or that crashes, is
kept in the folder and fails the run; what nd-opt refuses is printed, to be judged by the reader.
"""

import argparse
import dataclasses
import math
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "test" / "Exec"))

import numpy as np
import torch
import transformers
from nd_export import testing
from nd_export.huggingface import export_hf
from support import run
from training import Settings, nd_run, torch_run

NO_DROPOUT = {
    "attention_dropout": 0.0,
    "hidden_dropout": 0.0,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": None,
}


def draw_model(rng, family):
    """The family's name, and a model of it whose sizes rarely divide each other."""
    heads, width = rng.choice([1, 2, 3, 4, 5, 6, 6, 8]), rng.choice([4, 8, 12])
    sizes = {"hidden_size": heads * width, "num_attention_heads": heads, "num_hidden_layers": rng.choice([1, 2])}
    sizes |= {"intermediate_size": rng.choice([1, 3, 7, 16, 17, 24]), "vocab_size": rng.choice([3, 7, 13, 32, 61, 251])}
    sizes |= {"max_position_embeddings": 48, "tie_word_embeddings": rng.random() < 0.4} | NO_DROPOUT
    grouped = sizes | {"num_key_value_heads": rng.choice([k for k in range(1, heads + 1) if heads % k == 0])}
    flag = rng.random() < 0.5
    families = {
        "cohere": lambda: transformers.CohereConfig(**grouped, use_qk_norm=flag),
        "gpt_neox": lambda: transformers.GPTNeoXConfig(**sizes, use_parallel_residual=flag),
        "llama": lambda: transformers.LlamaConfig(**grouped, attention_bias=flag),
        "mistral": lambda: transformers.MistralConfig(**grouped, sliding_window=5 if flag else None),
        "phi": lambda: transformers.PhiConfig(**grouped, qk_layernorm=flag, partial_rotary_factor=0.5),
        "qwen2": lambda: transformers.Qwen2Config(**grouped),
        "qwen3": lambda: transformers.Qwen3Config(**grouped, head_dim=width),
        "starcoder2": lambda: transformers.Starcoder2Config(**grouped),
    }
    if family and family not in families:
        sys.exit(f"fuzz.py: no family '{family}'; there are {', '.join(families)}")
    family = family or rng.choice(sorted(families))
    torch.manual_seed(rng.randrange(1 << 30))
    model = transformers.AutoModelForCausalLM.from_config(families[family](), dtype=torch.float32)
    testing.perturb(model, rng.randrange(1 << 30))
    return family, model


@dataclasses.dataclass
class Case:
    shard: str
    microbatches: int
    settings: Settings  # its batch is one microbatch
    options: list[str]

    def is_bf16(self):
        return "--dtype=bf16" in self.options

    def __str__(self):
        return f"--shard={self.shard} {' '.join(self.options)}; {self.settings}"


def draw_mesh(rng, batch):
    """Sizes by axis, of 2 to 8 ranks; dp and fsdp divide the batch."""
    while True:
        mesh = {
            axis: rng.choice([1, 2, 2, 3, 4, 5, 6])
            for axis in rng.sample(["dp", "fsdp", "cp", "tp"], rng.choice([1, 2, 2, 3]))
        }
        if 1 < math.prod(mesh.values()) <= 8 and batch % (mesh.get("dp", 1) * mesh.get("fsdp", 1)) == 0:
            return mesh


def draw_case(rng):
    batch, microbatches = rng.choice([2, 4, 6, 12]), rng.choice([1, 1, 2, 3])
    optimizer = (
        {"optimizer": "sgd", "momentum": rng.choice([0.0, 0.9])} if rng.random() < 0.5 else {"optimizer": "adamw"}
    )
    settings = Settings(
        lr=1e-3, clip=rng.choice([0.0, 0.05, 1.0]), steps=2, batch=batch, seq=rng.randrange(2, 24), **optimizer
    )
    mesh = draw_mesh(rng, batch)
    options = [f"--microbatches={microbatches}"]

    def maybe(probability, name, *values):
        if rng.random() < probability:
            options.append(f"--{name}={rng.choice(values)}")

    if mesh.get("fsdp", 1) > 1:
        maybe(0.5, "zero", 1, 2, 3)
        maybe(0.2, "prefetch-units", 2, 3)
    if mesh.get("cp", 1) > 1:
        maybe(0.8, "cp", "ring", "gather", "ulysses", "auto")
    if mesh.get("tp", 1) > 1:
        maybe(0.4, "sequence-parallel", "off")
    maybe(0.4, "loss-chunk", 1, 2, 3, 5, 8, "off")
    maybe(0.3, "dtype", "bf16")
    return Case(",".join(f"{axis}{size}" for axis, size in mesh.items()), microbatches, settings, options)


def differences(case, ours, single, exact):
    """What is farther from f64 than PyTorch's own rounding explains, in f32 or under autocast."""
    found = []

    def check(name, got, near, want, total):
        error, size = (got.double() - want.double()).norm().item(), want.double().norm().item()
        rounding = (near.double() - want.double()).norm().item()
        bound = 3e-2 * size + 2e-2 * total if case.is_bf16() else 1e-5 * size + 1e-6 * total
        if not error <= bound + 5 * rounding:
            found.append(f"{name}: {error:.2e} of {size:.2e}, PyTorch's {rounding:.2e}")

    def check_all(kind, got, near, want):
        if got.keys() != want.keys():
            found.append(f"{kind}: other tensors: {sorted(got.keys() ^ want.keys())}")
            return
        total = math.sqrt(sum(t.double().norm().item() ** 2 for t in want.values()))
        for name in want:
            check(f"{kind} {name}", got[name], near[name], want[name], total)

    for step, losses in enumerate(zip(ours.losses, single.losses, exact.losses, strict=True), 1):
        check(f"loss of step {step}", *map(torch.tensor, losses), total=0)
    check("gradient norm", *(torch.tensor(o.norms[0]) for o in (ours, single, exact)), total=0)
    check_all("gradient", ours.gradients, single.gradients, exact.gradients)
    if case.settings.optimizer == "sgd":  # AdamW makes a step of lr of any gradient, also of one that is all rounding
        check_all("weight", ours.weights, single.weights, exact.weights)
    return found


def run_case(folder, tokens, case):
    """ok, refused or WRONG, and what there is to say."""
    ids = np.fromfile(tokens, np.uint16)
    source = folder / f"model-{case.settings.batch}-{case.settings.seq}.mlir"
    if not source.exists():
        sizes = f"--batch={case.settings.batch}", f"--seq={case.settings.seq}"
        run("nd-import", folder / "onnx" / "model.onnx", *sizes, "-o", source)
    try:
        ours = nd_run(source, tokens, case.settings, folder / "case", case.shard, options=case.options)
    except AssertionError as error:
        lines = str(error).splitlines()
        if lines[0].startswith("nd-opt") and "Stack dump" not in str(error):
            return "refused", next((line for line in lines[1:] if "error:" in line), lines[-1])
        return "WRONG", str(error)
    whole = dataclasses.replace(case.settings, batch=case.settings.batch * case.microbatches)
    single = torch_run(folder / "hf", ids, whole, autocast=torch.bfloat16 if case.is_bf16() else None)
    exact = torch_run(folder / "hf", ids, whole, torch.float64)
    found = differences(case, ours, single, exact)
    return ("WRONG" if found else "ok"), "\n".join(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("count", type=int, help="how many, a model each")
    parser.add_argument("--cases", type=int, default=6, help="meshes and options for each model")
    parser.add_argument("--family", help="only models of this kind")
    parser.add_argument("--folder", type=pathlib.Path, help="where files lie [a temporary folder]")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    base = arguments.folder or pathlib.Path(tempfile.mkdtemp(prefix="nd-fuzz-"))
    counts = {"ok": 0, "refused": 0, "WRONG": 0}
    for seed in range(arguments.first, arguments.first + arguments.count):
        rng, folder = random.Random(seed), base / str(seed)
        shutil.rmtree(folder, ignore_errors=True)
        family, model = draw_model(rng, arguments.family)
        model.save_pretrained(folder / "hf")
        export_hf(folder / "hf", folder / "onnx", max_seq=48)
        tokens = folder / "tokens.bin"
        np.random.default_rng(seed).integers(0, model.config.vocab_size, 4096).astype(np.uint16).tofile(tokens)
        wrong = False
        for number in range(arguments.cases):
            case = draw_case(rng)
            verdict, text = run_case(folder, tokens, case)
            counts[verdict] += 1
            if verdict != "ok":
                print(f"{verdict}: seed {seed}, case {number}, {family}: {case}\n{text}", flush=True)
            if verdict == "WRONG":
                wrong = True
                (folder / "case").rename(folder / f"wrong-{number}")
            else:
                shutil.rmtree(folder / "case", ignore_errors=True)
        if not wrong:
            shutil.rmtree(folder)
        print(f"seed {seed}, {family}: {counts}", flush=True)
    return 1 if counts["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
