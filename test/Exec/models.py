"""The tiny models of the executed tests, by name."""

import functools
import itertools

import torch
import transformers
from nd_export import testing


def tiny_qwen2(window=False, odd=False, heads=None):
    """A Qwen2 of 2 layers: biases of queries, keys and values, and a window in the second layer if there is one.

    even: width 64, 4 heads of 16 over 2 key/value heads, MLP 160, vocabulary 256.
    odd:  width 39, 3 heads of 6 over 1 key/value head, MLP 53, vocabulary 251.
    `heads`: so many of both kinds instead.
    """
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
    sizes |= {"intermediate_size": 160, "vocab_size": 256}
    if odd:
        sizes = {"hidden_size": 39, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 6}
        sizes |= {"intermediate_size": 53, "vocab_size": 251}
    if heads:
        sizes |= {"num_attention_heads": heads, "num_key_value_heads": heads}
    layers = ["full_attention", "sliding_attention" if window else "full_attention"]
    rest = {
        "num_hidden_layers": 2,
        "max_position_embeddings": 64,
        "layer_types": layers,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    config = transformers.Qwen2Config(**sizes, **rest, use_sliding_window=window, sliding_window=5)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()


def tiny_bloom():
    """A Bloom of 2 layers: 4 heads of 12, attention with alibi that is written out, softmax and all; vocabulary 251."""
    sizes = {"hidden_size": 48, "n_head": 4, "n_layer": 2, "vocab_size": 251}
    config = transformers.BloomConfig(
        **sizes, hidden_dropout=0.0, attention_dropout=0.0, bos_token_id=0, eos_token_id=0
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()


def tiny_falcon(one_key_head=False):
    """A Falcon of 2 layers: 4 heads of 12 over 2 key/value heads in one product, documents computed from positions.

    As the older ones are with `one_key_head`, for all query heads; attention and MLP then read the result of one norm."""
    sizes = {"hidden_size": 48, "num_attention_heads": 4, "num_kv_heads": 2, "num_hidden_layers": 2, "vocab_size": 251}
    kind = {"alibi": False, "new_decoder_architecture": not one_key_head, "bos_token_id": 0, "eos_token_id": 0}
    config = transformers.FalconConfig(**sizes, **kind, hidden_dropout=0.0, attention_dropout=0.0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()


def tiny_parallel(config, **sizes):
    """2 layers of width 64 in which attention and MLP read the same stream; MLP 160, vocabulary 256."""
    common = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 160}
    common |= {"vocab_size": 256, "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 0}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        of = config(**common | sizes, pad_token_id=None, attention_dropout=0.0)
        return transformers.AutoModelForCausalLM.from_config(of, dtype=torch.float32).train()


SIX = {"hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 2}


def tiny_of_six_heads(config):
    """2 layers of width 96, 6 heads of 16 over 2 key/value heads, as this kind of model does it; MLP 160, vocabulary 256."""
    sizes = SIX | {"num_hidden_layers": 2, "intermediate_size": 160, "vocab_size": 256, "max_position_embeddings": 64}
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    if config is not transformers.Phi3Config:
        sizes["head_dim"] = 16
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        of = config(**sizes, **ids, tie_word_embeddings=False)
        return transformers.AutoModelForCausalLM.from_config(of, dtype=torch.float32).train()


MODELS = {
    "bloom": tiny_bloom,
    "falcon": tiny_falcon,
    "falcon-4-1": functools.partial(tiny_falcon, one_key_head=True),
    "gpt2": testing.tiny_gpt2,
    "gpt2-odd": functools.partial(testing.tiny_gpt2, odd=True),
    "gpt2-deep": functools.partial(testing.tiny_gpt2, n_layer=4),
    "gpt2-4-heads": testing.tiny_gpt2,
    "gpt2-odd-4-heads": functools.partial(testing.tiny_gpt2, odd=True, n_embd=20, n_head=4),
    "llama": testing.tiny_llama,
    "llama-odd": functools.partial(testing.tiny_llama, odd=True),
    "llama-deep": functools.partial(testing.tiny_llama, num_hidden_layers=4),
    "llama-tied": functools.partial(testing.tiny_llama, tie_word_embeddings=True),
}
MODELS |= {
    # one norm before both, and one before each; the latter has biases
    "cohere": functools.partial(tiny_parallel, transformers.CohereConfig, num_key_value_heads=2),
    "gpt_neox": functools.partial(tiny_parallel, transformers.GPTNeoXConfig, hidden_dropout=0.0),
    # Sizes that equal each other: what a dimension is does not follow from them.
    "llama-equal": functools.partial(testing.tiny_llama, vocab_size=64, intermediate_size=64),
    "gpt2-equal": functools.partial(testing.tiny_gpt2, vocab_size=64, n_positions=64),
    "llama-6-2": functools.partial(testing.tiny_llama, **SIX),
    "llama-6-3": functools.partial(testing.tiny_llama, **SIX | {"num_key_value_heads": 3}),
    "llama-4-1": functools.partial(testing.tiny_llama, num_key_value_heads=1),
    "qwen2-6-2": functools.partial(tiny_of_six_heads, transformers.Qwen2Config),
    "qwen3-6-2": functools.partial(tiny_of_six_heads, transformers.Qwen3Config),
    "phi3-6-2": functools.partial(tiny_of_six_heads, transformers.Phi3Config),
}
for window, odd, heads in itertools.product((False, True), (False, True), (None, 4)):
    name = "qwen2" + "-window" * window + "-odd" * odd + "-4-heads" * (heads is not None)
    MODELS[name] = functools.partial(tiny_qwen2, window, odd, heads)
