"""Modules that no library has: what a plan by structure has to shard without a rule of their own."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

HEADS, WIDTH, HIDDEN, VOCABULARY = 3, 48, 100, 251  # no size divides by 2 and 3


class Encoder(nn.Module):
    """[B, S] -> [B, S, V]: an embedding, a layer that mixes tokens, an MLP, a head. Nothing is causal."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def heads(self, x):
        return (f(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))

    def forward(self, input_ids):
        x = self.embedding(input_ids)
        x = x + self.out(self.mix(x))
        return self.head(x + self.down(torch.tanh(self.up(self.norm(x)))))


class CosineAttention(Encoder):
    """Cosines of queries and keys instead of softmax, without an epsilon.

    Scores have the sequence twice, and their gradient is not zero behind the keys; a head of zeros is not finite.
    """

    def mix(self, x):
        query, key, value = self.heads(x)
        query, key = query / query.norm(dim=-1, keepdim=True), key / key.norm(dim=-1, keepdim=True)
        return (torch.relu(query @ key.transpose(-1, -2)) @ value / 4).transpose(1, 2).flatten(2)


class TokenShift(Encoder):
    """Each token sees the one before and the mean of all so far: operations that need the sequence as a whole."""

    def mix(self, x):
        before = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1)
        return before + torch.cumsum(x, 1) / torch.arange(1, x.shape[1] + 1)[:, None]


class Memory(Encoder):
    """Each token sees those before it, and then learned rows that are no places of a sequence, fewer than tokens."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Parameter(torch.zeros(5, WIDTH))
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)  # the gradient of a bias would be zero but for rounding

    def mix(self, x):
        before = scaled_dot_product_attention(*self.heads(x), is_causal=True)
        query, _, _ = self.heads(x + before.transpose(1, 2).flatten(2))
        _, key, value = self.heads(self.rows.expand(x.shape[0], -1, -1))
        return scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)


class RelativePlaces(Encoder):
    """Attention with a trained number for each head and distance: its mask has a gradient."""

    def __init__(self):
        super().__init__()
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)  # the gradient of a bias would be zero but for rounding
        self.distance = nn.Embedding(9, HEADS)

    def mix(self, x):
        query, key, value = self.heads(x)
        place = torch.arange(x.shape[1])
        bias = self.distance((place[:, None] - place).clamp(-4, 4) + 4).permute(2, 0, 1)
        return ((query @ key.transpose(2, 3) / 4 + bias).softmax(-1) @ value).transpose(1, 2).flatten(2)


class OwnLoss(Encoder):
    """A loss of its own, which no label tells to leave padding out: its gradient is not zero there."""

    outputs = ("loss_sum", "loss_count")

    def __init__(self):
        super().__init__()
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)  # the gradient of a bias would be zero but for rounding

    def mix(self, x):
        return scaled_dot_product_attention(*self.heads(x)).transpose(1, 2).flatten(2)

    def forward(self, input_ids):
        losses = super().forward(input_ids).logsumexp(-1).square()
        return losses.sum(), torch.ones_like(losses).sum()


class Pooled(OwnLoss):
    """Each token sees a mean of all, weighted by a softmax over the whole sequence."""

    def mix(self, x):
        return super().mix(x) + (x[..., :1].softmax(1) * x).sum(1, keepdim=True)


class Narrow(nn.Module):
    """[B, S] -> [B, S, V]: an MLP of width 1, whose parameters have a single row, or a single element."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 1), nn.Linear(1, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, input_ids):
        x = self.embedding(input_ids)
        return self.head(x + self.down(torch.tanh(self.up(x))))


MODULES = {
    "cosine-attention": CosineAttention,
    "token-shift": TokenShift,
    "memory": Memory,
    "narrow": Narrow,
    "own-loss": OwnLoss,
    "pooled": Pooled,
    "relative-places": RelativePlaces,
}
