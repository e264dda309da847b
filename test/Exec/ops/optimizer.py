"""Updates: adamw and sgd beside torch.optim, over several steps' worth of state, and with `apply` false."""

import torch

from .case import Case, Random, t

SCALARS = {"lr": 1e-2, "bias1": 1 - 0.9**3, "sqrt_bias2": (1 - 0.999**3) ** 0.5, "scale": 0.5}


def cases():
    r = Random("optimizer")
    for shape in ((3, 5), (1,), (67,)):
        for apply in (True, False):
            yield adamw(r, shape, apply)
            for momentum in (0.0, 0.9):
                yield sgd(r, shape, momentum, apply)


def scalars(*names):
    return {name: torch.tensor(SCALARS[name]) for name in names}


def adamw(r, shape, apply):
    def reference(p, g, m, v, lr, bias1, sqrt_bias2, scale, apply):
        if not apply:
            return p, m, v
        q = torch.nn.Parameter(p.clone())
        q.grad = g * scale
        optimizer = torch.optim.AdamW([q], lr=lr.item(), eps=1e-8, weight_decay=0.1)
        optimizer.state[q] = {"step": torch.tensor(2.0), "exp_avg": m.clone(), "exp_avg_sq": v.clone()}
        optimizer.step()
        return q.detach(), optimizer.state[q]["exp_avg"], optimizer.state[q]["exp_avg_sq"]

    grad = r.f(*shape) if apply else torch.full(shape, float("nan"))
    return Case(
        "nd.adamw",
        {
            "p": r.f(*shape),
            "g": grad,
            "m": r.f(*shape),
            "v": r.positive(*shape),
            **scalars(*SCALARS),
            "apply": torch.tensor(apply),
        },
        "%r0, %r1, %r2 = nd.adamw %p grad %g moments %m, %v scalars %lr, %bias1, %sqrt_bias2, %scale, %apply"
        f" {{beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1}} : {t(*shape)}, {t(*shape)}, {t()}, {t(dtype='i1')}",
        [t(*shape)] * 3,
        reference,
    )


def sgd(r, shape, momentum, apply):
    def reference(p, g, lr, scale, apply, buffer=None):
        if not apply:
            return (p,) if buffer is None else (p, buffer)
        q = torch.nn.Parameter(p.clone())
        q.grad = g * scale
        optimizer = torch.optim.SGD([q], lr=lr.item(), momentum=momentum, weight_decay=0.1)
        if buffer is not None:
            optimizer.state[q] = {"momentum_buffer": buffer.clone()}
        optimizer.step()
        return (q.detach(),) if buffer is None else (q.detach(), optimizer.state[q]["momentum_buffer"])

    inputs = {"p": r.f(*shape), "g": r.f(*shape), **scalars("lr", "scale"), "apply": torch.tensor(apply)}
    types = f"{t(*shape)}, {t(*shape)}, {t()}, {t(dtype='i1')}"
    attributes = f"{{momentum = {momentum}, weight_decay = 0.1}}"
    if not momentum:
        return Case(
            "nd.sgd",
            inputs,
            f"%r0 = nd.sgd %p grad %g scalars %lr, %scale, %apply {attributes} : {types}",
            [t(*shape)],
            reference,
        )
    return Case(
        "nd.sgd",
        {**inputs, "buffer": r.f(*shape)},
        f"%r0, %r1 = nd.sgd %p grad %g momentum %buffer scalars %lr, %scale, %apply {attributes} : {types}, {t(*shape)} -> {t(*shape)}",
        [t(*shape)] * 2,
        reference,
    )
