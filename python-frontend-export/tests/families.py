"""One tiny model of each family that the tests export, perturbed, without dropout."""

import torch
import transformers
from nd_export.testing import perturb, tiny_gpt2, tiny_llama

_SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "vocab_size": 97,
    "max_position_embeddings": 64,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": None,
}
_GROUPED = _SIZES | {"num_key_value_heads": 2}


def make(config):
    """A perturbed model of `config`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return perturb(transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32))


MODELS = {
    "gpt2": lambda: perturb(tiny_gpt2()),
    "gpt2-odd": lambda: perturb(tiny_gpt2(odd=True, n_layer=1)),
    "llama": lambda: perturb(tiny_llama(num_hidden_layers=1)),
    "llama-odd": lambda: perturb(tiny_llama(odd=True, num_hidden_layers=1)),
    # query, key and value in one matrix, gate and up in another
    "phi3": lambda: make(transformers.Phi3Config(**_GROUPED)),
    # sliding window
    "mistral": lambda: make(transformers.MistralConfig(**_GROUPED, sliding_window=5)),
    # window on every other layer, soft caps, norms that multiply by 1 + weight, tied head
    "gemma2": lambda: make(
        transformers.Gemma2Config(
            **_GROUPED | {"num_hidden_layers": 2}, head_dim=8, sliding_window=5, query_pre_attn_scalar=8
        )
    ),
    # rotary on a part of each head; stored under another name than the model's
    "gpt_neox": lambda: make(transformers.GPTNeoXConfig(**_SIZES, rotary_pct=0.25)),
    # attention of its own, with alibi: exported as plain operations
    "bloom": lambda: make(
        transformers.BloomConfig(hidden_size=32, n_layer=1, n_head=4, vocab_size=97, bos_token_id=0, eos_token_id=0)
    ),
}
