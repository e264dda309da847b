"""Attention with each of its options, beside a plain definition in PyTorch."""

import torch

from .case import Case, t

#          B  Hq Hkv S  T  D  Dv, options
SHAPES = (
    ((2, 3, 3, 5, 5, 8, 8), {"causal": True}),
    ((1, 4, 2, 7, 7, 4, 4), {"causal": True}),
    ((2, 2, 1, 70, 70, 16, 16), {"causal": True}),
    ((1, 2, 2, 130, 130, 8, 8), {"causal": True, "window": 9}),
    ((1, 2, 2, 5, 9, 4, 6), {}),
    ((2, 2, 2, 6, 6, 4, 4), {"causal": True, "softcap": 2.0}),
    ((2, 2, 2, 6, 6, 4, 4), {"causal": True, "documents": True}),
    ((2, 2, 2, 6, 6, 4, 4), {"causal": True, "positions": True}),
    ((2, 2, 1, 6, 6, 4, 4), {"key_padding": True}),
    ((2, 2, 1, 6, 7, 4, 4), {"mask": "float"}),
    ((2, 2, 1, 6, 7, 4, 4), {"mask": "bool"}),
    ((1, 1, 1, 1, 1, 1, 1), {"causal": True}),
    ((2, 2, 1, 12, 12, 4, 4), {"causal": True, "order": (0, 3, 1, 2), "window": 7, "valid": 11}),
    ((1, 2, 2, 6, 6, 4, 4), {"valid": 4}),
    ((1, 6, 4, 6, 6, 4, 4), {"causal": True, "kv_map": (1, 0, 0, 2, 3, -1)}),
)


def visible(options, queries, keys, positions=None, documents=None, key_padding=None, mask=None):
    """Boolean [B or 1, 1, S, T]: which keys a query sees."""
    index, index_of_keys = torch.arange(queries), torch.arange(keys)
    if order := options.get("order"):
        index = index_of_keys = index.reshape(len(order), -1)[list(order)].flatten()
    q = index if positions is None else positions
    k = index_of_keys if positions is None else positions
    q, k = q.reshape(-1, 1, queries, 1), k.reshape(-1, 1, 1, keys)
    seen = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    if options.get("causal"):
        seen = seen & (k <= q)
    if options.get("window"):
        seen = seen & (q - k < options["window"])
    if options.get("valid"):
        seen = seen & (index_of_keys < options["valid"])
    if documents is not None:
        seen = seen & (documents[:, None, :, None] == documents[:, None, None, :])
    if key_padding is not None:
        seen = seen & key_padding[:, None, None, :]
    if mask is not None and mask.dtype == torch.bool:
        seen = seen & mask
    return seen


def attention(q, k, v, options, scale, **extra):
    """Result and log-sum-exp of nd.attention's definition."""
    heads = torch.tensor(options.get("kv_map") or [h * k.shape[1] // q.shape[1] for h in range(q.shape[1])])
    k, v = k[:, heads.clamp(min=0)], v[:, heads.clamp(min=0)]
    scores = q @ k.transpose(-1, -2) * scale
    if options.get("softcap"):
        scores = options["softcap"] * torch.tanh(scores / options["softcap"])
    mask = extra.get("mask")
    if mask is not None and mask.dtype != torch.bool:
        scores = scores + mask
    scores = scores.masked_fill(~visible(options, q.shape[2], k.shape[2], **extra), float("-inf"))
    padding = (heads < 0)[:, None]
    result = (torch.softmax(scores, -1) @ v).masked_fill(padding[..., None], 0)
    return result, torch.logsumexp(scores, -1).masked_fill(padding, float("-inf"))


def attention_cases(r):
    for (b, hq, hkv, s, n, d, dv), options in SHAPES:
        extra = {}
        if options.get("positions"):
            extra["positions"] = torch.stack([torch.randperm(s, generator=r.generator) for _ in range(b)])
        if options.get("documents"):
            extra["documents"] = torch.sort(r.i(3, b, s), 1).values
        if options.get("key_padding"):
            extra["key_padding"] = r.b(b, n)
            extra["key_padding"][:, 0] = True
        if options.get("mask"):
            extra["mask"] = r.f(b, 1, s, n) if options["mask"] == "float" else r.b(1, hq, s, n)
            if options["mask"] == "bool":
                extra["mask"][..., 0] = True
        scale = d**-0.5
        operands = "".join(
            f" {k}(%{k} : {t(*v.shape, dtype={torch.int64: 'i64', torch.bool: 'i1'}.get(v.dtype, 'f32'))})"
            for k, v in extra.items()
        )
        flags = " causal" if options.get("causal") else ""
        attributes = ", ".join(
            [f"{name} = {options[name]} : i64" for name in ("window", "valid") if options.get(name)]
            + [f"{n} = array<i64: {str(options[n])[1:-1]}>" for n in ("order", "kv_map") if options.get(n)]
            + ([f"softcap = {options['softcap']} : f64"] if options.get("softcap") else [])
        )
        tail = f"{operands} scale = {scale:.17e}{flags}" + (f" {{{attributes}}}" if attributes else "")
        types = f"{t(b, hq, s, d)}, {t(b, hkv, n, d)}, {t(b, hkv, n, dv)}"
        inputs = {"q": 2 * r.f(b, hq, s, d), "k": r.f(b, hkv, n, d), "v": r.f(b, hkv, n, dv), **extra}

        def reference(q, k, v, options=options, scale=scale, **extra):
            return attention(q, k, v, options, scale, **extra)

        yield Case(
            "nd.attention",
            inputs,
            f"%r0, %r1 = nd.attention %q, %k, %v{tail} : {types} -> {t(b, hq, s, dv)}, {t(b, hq, s)}",
            [t(b, hq, s, dv), t(b, hq, s)],
            reference,
            ("q", "k", "v"),
            (0,),
        )

        def gradient(q, k, v, o, lse, do, options=options, scale=scale, **extra):
            leaves = [x.clone().requires_grad_() for x in (q, k, v)]
            out, _ = attention(*leaves, options, scale, **extra)
            return torch.autograd.grad((out * do).sum(), leaves)

        out, lse = attention(inputs["q"], inputs["k"], inputs["v"], options, scale, **extra)
        yield Case(
            "nd.attention_grad",
            {**inputs, "o": out, "lse": lse, "do": r.f(b, hq, s, dv)},
            f"%r0, %r1, %r2 = nd.attention_grad %q, %k, %v result(%o, %lse, %do){tail} : {types}, {t(b, hq, s, dv)}, {t(b, hq, s)}, "
            f"{t(b, hq, s, dv)} -> {types}",
            [t(b, hq, s, d), t(b, hkv, n, d), t(b, hkv, n, dv)],
            gradient,
        )
