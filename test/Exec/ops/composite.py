"""Composites of neural networks: softmax, norms, rope, attention, cross-entropy, dropout."""

import torch
import torch.nn.functional as F

from .attention import attention_cases
from .case import Case, Random, t


def cases():
    r = Random("composite")
    yield from softmax(r)
    yield from norms(r)
    yield from rope(r)
    yield from attention_cases(r)
    yield from cross_entropy(r)
    yield Case("nd.dropout", {"x": r.f(3, 5)}, f"%r0 = nd.dropout %x p = 0.0 : {t(3, 5)}", [t(3, 5)], lambda x: x)


def softmax(r):
    for shape, dim in (((3, 5), 1), ((3, 5), 0), ((2, 1, 67), 2), ((4, 1), 1)):
        yield Case(
            "nd.softmax",
            {"x": 4 * r.f(*shape)},
            f"%r0 = nd.softmax %x dim = {dim} : {t(*shape)}",
            [t(*shape)],
            lambda x, dim=dim: F.softmax(x, dim),
            ("x",),
        )


def norms(r):
    for shape in ((3, 5), (2, 3, 67), (1, 2), (4, 1)):
        rows, width = shape[:-1], shape[-1]
        x, w, b = r.f(*shape) + 0.5, r.f(width), r.f(width)

        def layer_norm(x, w, b=None):
            mean = x.mean(-1)
            rstd = (x.var(-1, correction=0) + 1e-5).rsqrt()
            return F.layer_norm(x, x.shape[-1:], w, b, 1e-5), mean, rstd

        def rms_norm(x, w=None):
            rstd = (x.square().mean(-1) + 1e-6).rsqrt()
            y = x * rstd.unsqueeze(-1)
            return y if w is None else y * w, rstd

        results = [t(*shape), t(*rows), t(*rows)]
        yield Case(
            "nd.layer_norm",
            {"x": x, "w": w, "b": b},
            f"%r0, %r1, %r2 = nd.layer_norm %x, %w, %b eps = 1.0e-5 : {t(*shape)}, {t(width)}, {t(width)} -> {t(*rows)}",
            results,
            layer_norm,
            ("x", "w", "b"),
            (0,),
        )
        yield Case(
            "nd.layer_norm",
            {"x": x, "w": w},
            f"%r0, %r1, %r2 = nd.layer_norm %x, %w eps = 1.0e-5 : {t(*shape)}, {t(width)} -> {t(*rows)}",
            results,
            layer_norm,
            ("x", "w"),
            (0,),
        )
        yield Case(
            "nd.rms_norm",
            {"x": x, "w": w},
            f"%r0, %r1 = nd.rms_norm %x, %w eps = 1.0e-6 : {t(*shape)}, {t(width)} -> {t(*rows)}",
            results[:2],
            rms_norm,
            ("x", "w"),
            (0,),
        )
        yield Case(
            "nd.rms_norm",
            {"x": x},
            f"%r0, %r1 = nd.rms_norm %x eps = 1.0e-6 : {t(*shape)} -> {t(*rows)}",
            results[:2],
            rms_norm,
            ("x",),
            (0,),
        )


def rope(r):
    for (b, h, s, d), rotated in (((2, 3, 5, 8), 8), ((1, 1, 7, 6), 4), ((2, 2, 1, 34), 34)):
        for interleaved in (False, True):
            angles = r.f(b, s, rotated // 2)

            def reference(x, cos, sin, rotated=rotated, interleaved=interleaved):
                cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
                turned, rest = x[..., :rotated], x[..., rotated:]
                if interleaved:
                    a, c = turned[..., 0::2], turned[..., 1::2]
                    turned = torch.stack((a * cos - c * sin, c * cos + a * sin), -1).flatten(-2)
                else:
                    a, c = turned.chunk(2, -1)
                    turned = torch.cat((a * cos - c * sin, c * cos + a * sin), -1)
                return torch.cat((turned, rest), -1)

            yield Case(
                "nd.rope",
                {"x": r.f(b, h, s, d), "cos": angles.cos(), "sin": angles.sin()},
                f"%r0 = nd.rope %x, %cos, %sin{' interleaved' if interleaved else ''} : {t(b, h, s, d)}, {t(b, s, rotated // 2)}",
                [t(b, h, s, d)],
                reference,
                ("x",),
            )


def cross_entropy(r):
    for *rows, vocabulary in ((3, 7), (1, 1), (5, 257), (4, 1030), (2, 3, 9), (3, 1, 2, 5)):
        labels = r.i(vocabulary, *rows)
        labels[::2] = -100 if labels.numel() > 1 else labels[0]
        logits = 3 * r.f(*rows, vocabulary)
        types = f"{t(*rows, vocabulary)}, {t(*rows, dtype='i64')}"

        def losses(logits, labels):
            loss = F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=-100, reduction="none")
            return loss.reshape(labels.shape), torch.logsumexp(logits, -1)

        def gradient(logits, labels, lse, dl):
            one = F.one_hot(labels.clamp(min=0), logits.shape[-1])
            return (torch.exp(logits - lse[..., None]) - one) * dl[..., None] * (labels != -100)[..., None]

        yield Case(
            "nd.softmax_cross_entropy",
            {"logits": logits, "labels": labels},
            f"%r0, %r1 = nd.softmax_cross_entropy %logits, %labels ignore = -100 : {types} -> {t(*rows)}",
            [t(*rows)] * 2,
            losses,
            ("logits",),
            (0,),
        )
        yield Case(
            "nd.softmax_cross_entropy_grad",
            {"logits": logits, "labels": labels, "lse": torch.logsumexp(logits, -1), "dl": r.f(*rows)},
            f"%r0 = nd.softmax_cross_entropy_grad %logits, %labels, %lse, %dl ignore = -100 : {types}, {t(*rows)}",
            [t(*rows, vocabulary)],
            gradient,
        )
