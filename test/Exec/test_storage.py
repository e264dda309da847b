"""How tensors are stored on ranks, by execution: local programs written by hand, whose arguments say which part of a logical
tensor a rank holds. Every program returns its memory as it is, padding included, and the logical tensor again."""

import dataclasses

import pytest
import torch
from support import Program, tensor_type

MESH = 'nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 3, tensor>]'
SIZES = {"dp": 2, "tp": 3}
EVERY = ("dp", "tp")


@dataclasses.dataclass
class Stored:
    """A logical tensor, the axes of each dimension, its shape on a rank, and further attributes."""

    value: torch.Tensor
    axes: tuple
    local: tuple
    more: str = ""

    def attributes(self, kind, name):
        lists = ", ".join("{" + ", ".join(f'"{a}"' for a in axes) + "}" for axes in self.axes)
        shape = ", ".join(map(str, self.value.shape))
        more = ", " + self.more if self.more else ""
        return (
            f'{{nd.kind = "{kind}", nd.name = "{name}", nd.sharding = #nd.sharding<@mesh, [{lists}]>, '
            f"nd.global_shape = array<i64: {shape}>{more}}}"
        )


def run_stored(folder, stored: Stored, kind="input"):
    """The memory of each rank, [2, 3, local shape], and the tensor that the ranks give back."""
    local = torch.empty(stored.local, dtype=stored.value.dtype)
    raw = Stored(
        torch.empty(2, 3, *stored.local), (("dp",), ("tp",)) + ((),) * len(stored.local), (1, 1, *stored.local)
    )
    t, r = tensor_type(local), tensor_type(local[None, None])
    text = f"""
      {MESH}
      func.func @main(%x: {t} {stored.attributes(kind, "x")})
          -> ({t} {stored.attributes("output", "y")}, {r} {raw.attributes("output", "raw")}) {{
        %raw = nd.reshape %x : {t} -> {r}
        return %x, %raw : {t}, {r}
      }}"""
    got = Program(folder, text, ranks=6).call({"x": stored.value})
    return got["raw"], got["y"]


def test_uneven_blocks(tmp_path):
    """5 rows over tp3 inside dp2: blocks of 3, then of 1."""
    x = torch.randn(5, 2)
    raw, y = run_stored(tmp_path, Stored(x, (EVERY, ()), (1, 2), "nd.blocks = [[3, 1], []]"))
    assert torch.equal(y, x)
    expected = torch.zeros(2, 3, 1, 2)
    for row in range(5):
        expected[row // 3, row % 3, 0] = x[row]
    assert torch.equal(raw, expected)


def test_uneven_blocks_minor_axis_first(tmp_path):
    """7 columns over dp2 inside tp3: rank (d, t) holds columns from 3 t + 2 d on, within its block of 3."""
    x = torch.randn(2, 7)
    raw, y = run_stored(tmp_path, Stored(x, ((), ("tp", "dp")), (2, 2), "nd.blocks = [[], [3, 2]]"))
    assert torch.equal(y, x)
    for d in range(2):
        for t in range(3):
            held = [c for c in range(3 * t + 2 * d, min(3 * t + 2 * d + 2, 3 * t + 3, 7))]
            assert torch.equal(raw[d, t, :, : len(held)], x[:, held])
            assert torch.all(raw[d, t, :, len(held) :] == 0)


@pytest.mark.parametrize("pad", [0, -100])
def test_zig_zag_sequence(tmp_path, pad):
    """16 positions in 6 chunks of 3, stored 0 5 1 4 2 3 over tp3, the batch over dp2; 2 of 18 are padding."""
    x = torch.arange(4 * 16).reshape(4, 16)
    more = f"nd.chunks = {{dim = 1, order = array<i64: 0, 5, 1, 4, 2, 3>, size = 3}}, nd.pad_value = {pad}"
    raw, y = run_stored(tmp_path, Stored(x, (("dp",), ("tp",)), (2, 6), more))
    assert torch.equal(y, x)
    padded = torch.nn.functional.pad(x, (0, 2), value=pad).reshape(2, 2, 6, 3)
    for t, chunks in enumerate([(0, 5), (1, 4), (2, 3)]):
        assert torch.equal(raw[:, t].long(), padded[:, :, chunks].reshape(2, 2, 6))


def test_copies_of_heads(tmp_path):
    """Two heads of 4 rows, three times on six ranks, by joint coordinates; replicas must be equal."""
    x = torch.randn(8, 3)
    more = "nd.copies = {dim = 0, unit = 4, table = [[0], [0], [0], [1], [1], [1]]}"
    raw, y = run_stored(tmp_path, Stored(x, (EVERY, ()), (4, 3), more))
    assert torch.equal(y, x)
    assert torch.equal(raw, x.reshape(2, 1, 4, 3).expand(2, 3, 4, 3))


def test_irregular_copies(tmp_path):
    """Two heads on five ranks of six: the last holds zeros, and tp alone would not say which."""
    x = torch.randn(4, 3)
    more = "nd.copies = {dim = 0, unit = 2, table = [[0], [0], [0], [1], [1], [-1]]}"
    raw, y = run_stored(tmp_path, Stored(x, (EVERY, ()), (2, 3), more))
    assert torch.equal(y, x)
    assert torch.equal(raw[1, 2], torch.zeros(2, 3))
    assert torch.equal(raw[1, 1], x[2:])


def test_parts_of_a_fused_weight(tmp_path):
    """w is [4, 7] in files; the program has columns 0-2 (sharded over tp, one each) and 3-6 (over dp) of it."""
    w = torch.randn(4, 7)
    part = 'nd.part = {{name = "w", dim = 1, offset = {}, size = 7}}'.format
    first = Stored(w[:, :3], ((), ("tp",)), (4, 1), part(0))
    second = Stored(w[:, 3:], ((), ("dp",)), (4, 2), part(3))
    text = f"""
      {MESH}
      func.func @main(%a: tensor<4x1xf32> {first.attributes("weight", "w#0")},
                      %b: tensor<4x2xf32> {second.attributes("weight", "w#1")})
          -> (tensor<4x1xf32> {first.attributes("weight", "w#0")}, tensor<4x2xf32> {second.attributes("weight", "w#1")},
              tensor<4x1xf32> {first.attributes("gradient", "w#0")}, tensor<4x2xf32> {second.attributes("gradient", "w#1")}) {{
        %0 = arith.negf %a : tensor<4x1xf32>
        %1 = arith.addf %b, %b : tensor<4x2xf32>
        return %0, %1, %a, %b : tensor<4x1xf32>, tensor<4x2xf32>, tensor<4x1xf32>, tensor<4x2xf32>
      }}"""
    got = Program(tmp_path, text, ranks=6).call({"w": w})
    assert set(got) == {"w", "gradient:w"}
    assert torch.equal(got["w"], torch.cat([-w[:, :3], 2 * w[:, 3:]], 1))
    assert torch.equal(got["gradient:w"], w)
