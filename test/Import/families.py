"""Small models of ten families of transformers, and how others export them."""

import re

import numpy as np
import torch
import transformers
from nd_export import testing
from safetensors.torch import load_file

VOCABULARY = {"vocab_size": 61, "bos_token_id": 0, "eos_token_id": 0}
LLAMA = VOCABULARY | {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
NONE = {"attention_dropout": 0.0}

CONFIGS = {
    "gpt2": lambda: transformers.GPT2Config(
        n_layer=2, n_embd=32, n_head=4, n_positions=64, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **VOCABULARY
    ),
    "llama": lambda: transformers.LlamaConfig(**LLAMA),
    "mistral": lambda: transformers.MistralConfig(sliding_window=5, **LLAMA),
    "gemma2": lambda: transformers.Gemma2Config(sliding_window=5, head_dim=8, query_pre_attn_scalar=8, **LLAMA),
    "qwen2": lambda: transformers.Qwen2Config(**LLAMA),
    "phi": lambda: transformers.PhiConfig(**(LLAMA | {"num_key_value_heads": 4}), partial_rotary_factor=0.5),
    "phi3": lambda: transformers.Phi3Config(**LLAMA, pad_token_id=0),
    "gpt_neox": lambda: transformers.GPTNeoXConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        hidden_dropout=0.0,
        **NONE,
        **VOCABULARY,
    ),
    "gptj": lambda: transformers.GPTJConfig(
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=64,
        rotary_dim=4,
        resid_pdrop=0,
        embd_pdrop=0,
        attn_pdrop=0,
        **VOCABULARY,
    ),
    "opt": lambda: transformers.OPTConfig(
        hidden_size=32,
        ffn_dim=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        word_embed_proj_dim=32,
        dropout=0.0,
        pad_token_id=1,
        **NONE,
        **VOCABULARY,
    ),
    "bert": lambda: transformers.BertConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
        **VOCABULARY,
    ),
}
# What each family is made of, in 2 layers: norms (plain or RMS) and rotations.
NORMS = {"gpt2": ("layer_norm", 5), "opt": ("layer_norm", 5), "bert": ("layer_norm", 6), "gemma2": ("rms_norm", 9)}
NORMS |= {"gpt_neox": ("layer_norm", 5), "phi": ("layer_norm", 3), "gptj": ("layer_norm", 3)}
ROTATIONS = {"gpt2": 0, "opt": 0, "bert": 0}
BATCH, SEQ = 2, 12
ARGUMENT = re.compile(r"%\w+: tensor<([\dx]*)(f32|i64)> \{((?:[^{}]|\{[^{}]*\})*)\}")


class Logits(torch.nn.Module):
    """input_ids (and position_ids) -> logits, as a user would wrap a model to export it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, position_ids=None):
        positions = {} if position_ids is None else {"position_ids": position_ids}
        cache = {} if self.model.config.model_type == "bert" else {"use_cache": False}
        return self.model(input_ids=input_ids, **positions, **cache).logits


def build(family: str) -> torch.nn.Module:
    config = CONFIGS[family]()
    torch.manual_seed(0)
    kind = transformers.AutoModelForMaskedLM if family == "bert" else transformers.AutoModelForCausalLM
    model = testing.perturb(kind.from_config(config, dtype=torch.float32), 0)
    model.config.use_cache = False
    return model


def inputs(positions: bool) -> tuple[torch.Tensor, ...]:
    ids = torch.randint(0, 61, (BATCH, SEQ), generator=torch.Generator().manual_seed(1))
    return (ids, torch.arange(SEQ).expand(BATCH, SEQ).contiguous()) if positions else (ids,)


def export(model: torch.nn.Module, path, attention: str, positions: bool, symbolic: bool, **options) -> torch.nn.Module:
    """torch.onnx.export as somebody without nd does it. Returns the exported module."""
    model.set_attn_implementation(attention)
    module, arguments = Logits(model), inputs(positions)
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("seq", max=64)}
    shapes = {"dynamic_shapes": tuple(sizes for _ in arguments)} if symbolic else {}
    program = torch.onnx.export(module.eval(), arguments, dynamo=True, verbose=False, **shapes, **options)
    program.save(str(path))
    return module


def arguments(mlir: str, folder):
    """name -> value of every weight of the imported function, read where `nd.storage` says."""
    found = {}
    for shape, _, attributes in ARGUMENT.findall(next(line for line in mlir.splitlines() if "func.func" in line)):
        field = dict(re.findall(r'([\w.]+) = "([^"]*)"', attributes))
        if field["nd.kind"] != "weight":
            continue
        sizes = [int(size) for size in shape.split("x") if size]
        if "key" in field:
            found[field["nd.name"]] = load_file(folder / field["file"])[field["key"]]
            continue
        offset, length = (int(re.search(rf"{name} = (\d+)", attributes)[1]) for name in ("offset", "length"))
        data = (folder / field["file"]).read_bytes()[offset : offset + length]
        found[field["nd.name"]] = torch.from_numpy(np.frombuffer(data, np.float32).copy()).reshape(sizes)
    return found
