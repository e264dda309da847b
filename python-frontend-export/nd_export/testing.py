"""Models for tests: small, in even and in odd sizes, and noise so that no tensor is all zero or one."""

from __future__ import annotations

import torch
import transformers


def perturb(model: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """Adds noise to every parameter of `model`, in place, and returns it.

    transformers initialises norms to 1 and biases to 0, and weights so small that attention is uniform; wrong results
    can then look right. The noise is normal, of deviation 0.1 for vectors and 0.6 / sqrt(smaller size) for matrices:
    attention is far from uniform, and the loss starts near ln(V). It depends on the seed and the parameters' order
    only; a tied tensor gets it once.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            scale = 0.1 if parameter.ndim < 2 else 0.6 * min(parameter.shape[-2:]) ** -0.5
            noise = torch.randn(parameter.shape, generator=generator) * scale
            parameter.add_(noise.to(parameter.dtype))
    return model


def tiny_gpt2(odd: bool = False, seed: int = 0, **changes) -> transformers.GPT2LMHeadModel:
    """A GPT-2 of 2 layers without dropout, freshly initialised: [B, S] -> [B, S, V], S up to its n_positions.

    even: width 64, 4 heads of 16, MLP 256, vocabulary 256, 64 positions.
    odd:  width 21, 3 heads of 7, MLP 53, vocabulary 251, 37 positions: nothing divides by 2.
    `changes` are fields of GPT2Config. For weights that make mistakes visible: `perturb(tiny_gpt2(), seed)`.
    """
    sizes = {"n_embd": 64, "n_head": 4, "n_inner": 256, "vocab_size": 256, "n_positions": 64}
    if odd:
        sizes = {"n_embd": 21, "n_head": 3, "n_inner": 53, "vocab_size": 251, "n_positions": 37}
    none = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 0, "eos_token_id": 0}
    return _model(transformers.GPT2Config(**({"n_layer": 2} | sizes | none | changes)), seed)


def tiny_llama(odd: bool = False, seed: int = 0, **changes) -> transformers.LlamaForCausalLM:
    """A Llama of 2 layers, freshly initialised, embedding and head not tied: [B, S] -> [B, S, V].

    even: width 64, 4 heads of 16 over 2 key/value heads, MLP 160, vocabulary 256.
    odd:  width 39, 3 heads of 6 over 1 key/value head, MLP 53, vocabulary 251.
    `changes` are fields of LlamaConfig, e.g. tie_word_embeddings=True, num_hidden_layers=3.
    """
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
    sizes |= {"intermediate_size": 160, "vocab_size": 256}
    if odd:
        sizes = {"hidden_size": 39, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 6}
        sizes |= {"intermediate_size": 53, "vocab_size": 251}
    rest = {"num_hidden_layers": 2, "max_position_embeddings": 64, "tie_word_embeddings": False}
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    return _model(transformers.LlamaConfig(**(sizes | rest | ids | changes)), seed)


def _model(config: transformers.PretrainedConfig, seed: int) -> transformers.PreTrainedModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return model.train()
