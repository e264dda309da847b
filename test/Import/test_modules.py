"""Modules written by hand, exported by plain torch.onnx.export: every node type of the common set computes PyTorch's values."""

import pytest
import torch
from families import arguments
from safetensors.torch import load_file, save_file
from support import relative, run
from torch import nn
from torch.nn import functional as F


class Module(nn.Module):
    """`function(self, x, i)` on x [3, 5, 8] of floats and i [3, 5] of integers below 8."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x, i):
        return self.function(self, x, i)


CASES = {
    "activations": lambda: Module(
        lambda m, x, i: (
            F.relu(x)
            + F.leaky_relu(x, 0.2)
            + F.softplus(x)
            + F.elu(x)
            + F.silu(x)
            + F.mish(x)
            + F.hardswish(x)
            + F.gelu(x)
            + F.gelu(x, approximate="tanh")
            + F.hardsigmoid(x)
            + F.softsign(x)
        )
    ),
    "elementary": lambda: Module(
        lambda m, x, i: (
            torch.exp(x)
            - torch.log(x.abs() + 1)
            + torch.sin(x) * torch.cos(x)
            + torch.rsqrt(x * x + 2)
            + x**3
            + (x.abs() + 0.1) ** 1.7
            + torch.erf(x)
            + torch.floor(x)
            + torch.sign(x)
            + torch.clamp(x, -0.5, 0.5)
            + torch.maximum(x, -x)
            + torch.round(x)
        )
    ),
    "selection": lambda: Module(
        lambda m, x, i: (
            torch.where((i[..., None] > 3) & ~(x > 0) | (x < -1), x, x * 0.1)
            + torch.tril(x, 1)
            + torch.triu(x, -2)
            + F.one_hot(i, 8).float() * ((i * 3 - 7) % 5)[..., None]
        )
    ),
    "counting": lambda: Module(  # a range of i32 has its bounds computed by selections
        lambda m, x, i: x * torch.pow(torch.tensor(0.5), torch.arange(1, 17, 2, dtype=torch.int32))
    ),
    "indices": lambda: Module(
        lambda m, x, i: (
            m.e(i) * x + x.gather(2, i[..., None]) + x[:, [0, 3, 1, 1, 2]] + x[torch.arange(3), i[:, 0] % 5][:, None]
        ),
        e=nn.Embedding(8, 8),
    ),
    "movement": lambda: Module(
        lambda m, x, i: (
            torch.cat([t * k for k, t in enumerate(x.split([3, 4, 1], -1))], -1)
            + torch.stack(x.unbind(-1), -1)
            + torch.cat(x.chunk(3, 1)[::-1], 1)
            + x.flip(2)
            + x.repeat(1, 2, 1)[:, :5]
            + F.pad(x, (1, -1, -1, 1), value=0.5)
        )
    ),
    "reductions": lambda: Module(
        lambda m, x, i: (
            (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5)
            + x.amax(1, keepdim=True)
            + x.logsumexp(-1, keepdim=True)
            + x.cumsum(1)
            + x.argmax(-1, keepdim=True)
        )
    ),
    "products": lambda: Module(
        lambda m, x, i: torch.einsum("bsd,btd,de->bse", x, x, m.w) + m.l(x)[..., :4] + torch.bmm(x, x.mT) @ x[..., :4],
        w=nn.Parameter(torch.randn(8, 4)),
        l=nn.Linear(8, 8),
    ),
    "norms": lambda: Module(
        lambda m, x, i: m.a(x) + m.b(x) + m.c(x) * F.normalize(x, dim=-1),
        a=nn.LayerNorm(8),
        b=nn.RMSNorm(8, eps=1e-5),
        c=nn.RMSNorm(8, eps=1e-5, elementwise_affine=False),
    ),
    "encoder": lambda: Module(
        lambda m, x, i: m.e(x), e=nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    ),
    "losses": lambda: Module(
        lambda m, x, i: (
            F.cross_entropy(x.reshape(-1, 8), torch.where(i > 5, -100, i).reshape(-1))
            + F.cross_entropy(x.transpose(1, 2), i, reduction="none").sum()
            - (F.log_softmax(x, -1).gather(-1, i[..., None]).squeeze(-1) * (i != 3)).sum()
            + F.nll_loss(F.log_softmax(x, -1).reshape(-1, 8), i.reshape(-1), ignore_index=2)
        )
    ),
}


def check(name, opset, folder, batch, *options):
    """The module computes PyTorch's values; returns the imported model and what nd-opt made of it."""
    torch.manual_seed(0)
    module, x, i = CASES[name]().eval(), torch.randn(batch, 5, 8), torch.randint(0, 8, (batch, 5))
    program = torch.onnx.export(module, (x, i), dynamo=True, verbose=False, opset_version=opset, optimize=opset == 18)
    program.save(str(folder / "model.onnx"))
    used = {value.name for value in program.model.graph.inputs}
    run("nd-import", folder / "model.onnx", "-o", folder / "model.mlir")
    text = (folder / "model.mlir").read_text()
    run("nd-opt", "--forward-only", *options, folder / "model.mlir", "-o", folder / "step.mlir")
    run("nd-compile", folder / "step.mlir", "--target=host", "-o", folder / "prog")
    given = {key: value for key, value in {"x": x, "i": i}.items() if key in used} | arguments(text, folder)
    save_file(given, folder / "in.safetensors")
    run("nd-run", folder / "prog", "--call", folder / "in.safetensors", "-o", folder / "out.safetensors")
    (result,) = (v for k, v in load_file(folder / "out.safetensors").items() if k not in given)
    with torch.no_grad():
        assert relative(result, module(x, i)) < 1e-5
    return text, (folder / "step.mlir").read_text()


@pytest.mark.parametrize("opset", [18, 23])
@pytest.mark.parametrize("name", CASES)
def test_module(name, opset, tmp_path):
    text, _ = check(name, opset, tmp_path, 3)
    if name == "losses":
        assert text.count("nd.softmax_cross_entropy") == 4


@pytest.mark.parametrize("opset", [18, 23])
def test_encoder_on_two_ranks(opset, tmp_path):
    """nn.TransformerEncoderLayer works on [S, B, E] inside, and merges its dimensions with each other and with the heads."""
    _, step = check("encoder", opset, tmp_path, 4, "--shard=dp2")
    assert "nd.all_gather" not in step
