"""Attention whose sequence is on several ranks, with keys in a ring and with gathered keys, beside PyTorch on the whole.

The programs are in the global view and say `cp_mode`; partitioning and the expansion of rings make a rank's program."""

import functools
import re

import pytest
import torch
from ops.attention import attention
from ops.case import Random
from support import Program, assert_close, tensor_type

BATCH, HEADS, KEY_HEADS, LENGTH, WIDTH = 2, 4, 2, 24, 4
CASES = {
    "plain": {},
    "causal": {"causal": True},
    "window": {"causal": True, "window": 3},
    "window_of_both_sides": {"window": 2},
    "padding": {"causal": True, "valid": 19},
    "padding_not_causal": {"valid": 9},
    "documents": {"causal": True, "documents": True},
    "key_padding": {"key_padding": True},
    "positions": {"causal": True, "positions": True, "window": 7},
    "mask": {"mask": "float"},
    "softcap": {"causal": True, "softcap": 1.5},
}


def zigzag(ranks):
    return [chunk for i in range(ranks) for chunk in (i, 2 * ranks - 1 - i)]


def stored(value, order, dims):
    """Chunks of these dimensions in the order of storage."""
    for dim in dims if order else ():
        chunks = value.chunk(len(order), dim)
        value = torch.cat([chunks[i] for i in order], dim)
    return value


def natural(value, order, dim):
    return stored(value, [order.index(i) for i in range(len(order))] if order else None, (dim,))


@functools.cache
def inputs(name):
    """Of a case, in the natural order, with what documents and the like say beside them."""
    r, options = Random(name), CASES[name]
    q, do = (2 * r.f(BATCH, HEADS, LENGTH, WIDTH) for _ in range(2))
    k, v = (r.f(BATCH, KEY_HEADS, LENGTH, WIDTH) for _ in range(2))
    extra = {}
    if options.get("documents"):
        extra["documents"] = torch.sort(r.i(3, BATCH, LENGTH), 1).values
    if options.get("positions"):
        extra["positions"] = torch.arange(LENGTH).repeat(BATCH, 1) * 5 % LENGTH
    if options.get("key_padding"):
        extra["key_padding"] = r.b(BATCH, LENGTH)
        extra["key_padding"][:, 0] = True
    if options.get("mask"):
        extra["mask"] = r.f(BATCH, 1, LENGTH, LENGTH)
    return {"q": q, "k": k, "v": v, "do": do, **extra}


def expected(name, dtype):
    """Result, lse and gradients of PyTorch on the whole sequence."""
    options, values = CASES[name], inputs(name)
    cast = {n: x.to(dtype) if x.is_floating_point() else x for n, x in values.items()}
    extra = {n: cast[n] for n in ("positions", "documents", "key_padding", "mask") if n in cast}
    if "valid" in options:
        extra["key_padding"] = (torch.arange(LENGTH) < options["valid"]).expand(BATCH, LENGTH)
    leaves = [cast[n].requires_grad_() for n in "qkv"]
    result, lse = attention(*leaves, options, 0.5, **extra)
    grads = torch.autograd.grad((result * cast["do"]).sum(), leaves)
    return [x.detach() for x in (result, lse, *grads)]


def module(names, ranks, mode, order):
    """One function with every case. The sequence of queries, keys and results is sharded, other inputs are whole."""
    arguments, results, body, returned = [], [], [], []
    for i, name in enumerate(names):
        options, values = CASES[name], inputs(name)
        for n, x in values.items():
            axes = ["{}", "{}", '{"cp"}' if n in ("q", "k", "v", "do") else "{}", "{}"][: x.ndim]
            attributes = (
                f'nd.kind = "input", nd.name = "{n}{i}", nd.sharding = #nd.sharding<@mesh, [{", ".join(axes)}]>'
            )
            arguments.append(f"%{n}{i}: {tensor_type(x)} {{{attributes}}}")
        tail = "".join(
            f" {n}(%{n}{i} : {tensor_type(values[n])})"
            for n in ("positions", "documents", "key_padding", "mask")
            if n in values
        )
        attributes = [f'cp_mode = "{mode}"']
        attributes += [f"{n} = {options[n]} : i64" for n in ("window", "valid") if n in options]
        attributes += [f"softcap = {options['softcap']} : f64"] if "softcap" in options else []
        attributes += [f"order = array<i64: {', '.join(map(str, order))}>"] if order else []
        tail += f" scale = 0.5{' causal' if options.get('causal') else ''} {{{', '.join(attributes)}}}"
        query, key = tensor_type(values["q"]), tensor_type(values["k"])
        lse = f"tensor<{BATCH}x{HEADS}x{LENGTH}xf32>"
        body.append(f"%o{i}, %l{i} = nd.attention %q{i}, %k{i}, %v{i}{tail} : {query}, {key}, {key} -> {query}, {lse}")
        body.append(
            f"%dq{i}, %dk{i}, %dv{i} = nd.attention_grad %q{i}, %k{i}, %v{i} result(%o{i}, %l{i}, %do{i}){tail}"
            f" : {query}, {key}, {key}, {query}, {lse}, {query} -> {query}, {key}, {key}"
        )
        for n, kind in {"o": query, "l": lse, "dq": query, "dk": key, "dv": key}.items():
            axes = '[{}, {}, {"cp"}]' if n == "l" else '[{}, {}, {"cp"}, {}]'
            attributes = f'nd.kind = "output", nd.name = "{n}{i}", nd.sharding = #nd.sharding<@mesh, {axes}>'
            results.append(f"{kind} {{{attributes}}}")
            returned.append((f"%{n}{i}", kind))
    names, types = zip(*returned, strict=True)
    return (
        f'nd.mesh @mesh axes [#nd.axis<"cp" = {ranks}, context>]\n'
        f"func.func @main({', '.join(arguments)}) -> ({', '.join(results)}) {{\n  "
        + "\n  ".join(body)
        + f"\n  return {', '.join(names)} : {', '.join(types)}\n}}\n"
    )


PASSES = (
    "-nd-propagate-sharding",
    "-nd-insert-reshards",
    "-nd-verify-sharding",
    "-nd-partition",
    "-nd-verify-sharding",
)


@pytest.mark.parametrize("order", ["natural", "zigzag"])
@pytest.mark.parametrize("mode", ["ring", "gather"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_sequence_on_ranks(ranks, mode, order, tmp_path):
    order = zigzag(ranks) if order == "zigzag" else None
    text = module(list(CASES), ranks, mode, order)
    expand = ("-nd-expand-ring-attention",) if mode == "ring" else ()
    program = Program(tmp_path, text, *PASSES, *expand, ranks=ranks)
    given = {}
    for i, name in enumerate(CASES):
        for n, x in inputs(name).items():
            dims = {"mask": (2, 3), "q": (2,), "k": (2,), "v": (2,), "do": (2,)}.get(n, (1,))
            given[f"{n}{i}"] = stored(x, order, dims)
    got = program.call(given)
    for i, name in enumerate(CASES):
        for n, single, double in zip(
            ("o", "l", "dq", "dk", "dv"), expected(name, torch.float32), expected(name, torch.float64), strict=True
        ):
            assert_close(f"{name} {n}", natural(got[f"{n}{i}"], order, 2), single, double)


@pytest.mark.parametrize(
    ("name", "order", "forward", "backward"),
    [("causal", None, 3, 3), ("window", None, 1, 1), ("window", zigzag(4), 2, 2), ("positions", None, 3, 3)],
)
def test_hops(name, order, forward, backward, tmp_path):
    """Keys and values make c - 1 hops forward and backward, and so do their gradients; a window leaves hops out."""
    text = module([name], 4, "ring", order)
    program = Program(tmp_path, text, *PASSES, "-nd-expand-ring-attention", ranks=4)
    step = (program.folder / "step.mlir").read_text()
    assert len(re.findall(r"nd\.permute", step)) == 2 * (forward + 2 * backward)
