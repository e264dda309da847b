"""Any torch.nn.Module: losses of its own, symbols, and errors that name the module, the line and the remedy."""

import nd_export
import pytest
import torch
from evaluate import graph, run, sidecar
from nd_export import ExportError


class Regression(torch.nn.Module):
    """x [N, 3], target [N], weight [N] -> (sum of weighted squared errors, sum of weights)."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))

    def forward(self, x, target, weight):
        error = self.net(x).squeeze(-1) - target
        return (error**2 * weight).sum(), weight.sum()


def batch(n):
    return {"x": torch.randn(n, 3), "target": torch.randn(n), "weight": torch.rand(n)}


def test_own_loss_as_sum_and_count(tmp_path):
    module = Regression().eval()
    result = nd_export.export(
        module,
        tuple(batch(4).values()),
        tmp_path,
        outputs=("loss_sum", "loss_count"),
        dynamic_shapes={"x": {0: "batch"}, "target": {0: "batch"}, "weight": {0: "batch"}},
        limits={"batch": 100},
    )
    assert result.content == sidecar(tmp_path) and not module.training
    content = result.content
    assert content["task"] == "loss" and content["symbols"] == {"batch": {"min": 1, "max": 100}}
    assert content["outputs"] == {"loss_sum": {"role": "loss_sum"}, "loss_count": {"role": "loss_count"}}
    assert content["inputs"]["x"] == {"dtype": "f32", "shape": ["batch", 3]}
    inputs = batch(7)
    for ours, theirs in zip(run(tmp_path, **inputs), module(**inputs), strict=True):
        assert ours == pytest.approx(theirs.item(), rel=1e-5)


def test_static_export_with_named_output(tmp_path):
    module = torch.nn.Linear(3, 2)
    content = nd_export.export(module, torch.randn(4, 3), tmp_path, outputs={"scores": "logits"}).content
    assert content["symbols"] == {} and content["inputs"]["input"]["shape"] == [4, 3]
    assert [v.name for v in graph(tmp_path).output] == ["scores"] and content["outputs"]["scores"]["role"] == "logits"


def test_results_that_are_inputs_or_parameters_or_twice_the_same(tmp_path):
    class Through(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.p = torch.nn.Parameter(torch.tensor([2.0]))

        def forward(self, x):
            y = x * self.p
            return x, self.p, y, y

    x = torch.tensor([3.0])
    outputs = dict.fromkeys("abcd", "output")
    nd_export.export(Through(), x, tmp_path, outputs=outputs)
    assert [v.item() for v in run(tmp_path, x=x)] == [3.0, 2.0, 6.0, 6.0]


class Wrap(torch.nn.Module):
    """Puts a function into a module named `inner`, one level down."""

    def __init__(self, function):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.inner = Inner(function)

    def forward(self, x):
        return self.inner(x * self.weight)


class Inner(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        return self.function(self, x)


def branch(module, x):
    return x if x.sum() > 0 else -x


def untranslatable(module, x):
    return torch.special.bessel_j0(x)


def counter(module, x):
    module.seen.add_(x.detach().sum(0))
    return x + module.seen


def fixed(module, x):
    return x.view(3, 4) + 1


def wrong(module, x):
    return x @ torch.ones(5, 5)


@pytest.mark.parametrize(
    "function, message",
    [
        (branch, "inner .Inner.: torch.export failed: Could not guard on data-dependent"),
        (wrong, "inner .Inner.: torch.export failed: a and b must have same reduction dim"),
    ],
)
def test_error_while_tracing_names_module_and_line(tmp_path, function, message):
    with pytest.raises(ExportError, match=message) as error:
        nd_export.export(Wrap(function), torch.randn(3, 4), tmp_path)
    line = function.__code__.co_firstlineno + 1
    assert f"test_modules.py:{line}, in {function.__name__}\n      return x" in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "function, message",
    [
        (untranslatable, "inner: torch.onnx cannot translate an operation: No ONNX function .*bessel_j0"),
        (counter, "inner: forward updates the buffer 'inner.seen'"),
    ],
)
def test_error_after_tracing_names_module_and_line_of_forward(tmp_path, function, message):
    with pytest.raises(ExportError, match=message) as error:
        nd_export.export(Wrap(function), torch.randn(3, 4), tmp_path)
    assert ", in forward\n      return self.function(self, x)" in str(error.value)
    assert not list(tmp_path.iterdir())


def test_symbol_that_the_code_fixes_is_refused(tmp_path):
    with pytest.raises(
        ExportError, match="batch as dynamic but your code specialized it to be a constant .3."
    ) as error:
        nd_export.export(Wrap(fixed), torch.randn(3, 4), tmp_path, dynamic_shapes={"x": {0: "batch"}})
    assert "leave it out of dynamic_shapes" in error.value.remedy


def test_batch_norm_is_refused_in_training(tmp_path):
    with pytest.raises(ExportError, match="updates the buffer 'num_batches_tracked'") as error:
        nd_export.export(torch.nn.BatchNorm1d(4), torch.randn(3, 4), tmp_path)
    assert "LayerNorm" in error.value.remedy


class Stopped(torch.nn.Module):
    """`how` takes the value of a layer, without its gradient."""

    def __init__(self, how, trained=True):
        super().__init__()
        self.how, self.layer, self.other = how, torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.layer.requires_grad_(trained)

    def forward(self, x):
        if self.how == "detach":
            return self.other(x) * self.layer(x).detach()
        with torch.no_grad():
            value = self.layer(x)
        return self.other(x) * value


@pytest.mark.parametrize("how", ["detach", "no_grad"])
def test_stopped_gradient_is_refused(how, tmp_path):
    """torch.onnx.export lets it through without a word; where nothing is trained it stops none."""
    with pytest.raises(ExportError, match=f"{how} stops a gradient"):
        nd_export.export(Stopped(how), torch.randn(3, 4), tmp_path)
    nd_export.export(Stopped(how, trained=False), torch.randn(3, 4), tmp_path)


class Smoothed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(3, 7)

    def forward(self, x, labels):
        loss = torch.nn.functional.cross_entropy(self.head(x), labels, reduction="sum", label_smoothing=0.1)
        return loss, (labels != -100).sum()


def test_label_smoothing_is_refused(tmp_path):
    """torch.onnx.export drops it without a word."""
    with pytest.raises(ExportError, match="cross_entropy_loss with label_smoothing=0.1") as error:
        nd_export.export(Smoothed(), (torch.randn(4, 3), torch.arange(4)), tmp_path, outputs=["loss_sum", "loss_count"])
    assert "log_softmax" in error.value.remedy


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"outputs": ["logits"]}, "returns 2 tensors, but outputs names 1"),
        ({"outputs": ["loss_sum", "total"]}, "role 'total'; roles are logits"),
        ({"outputs": ["loss_sum", "output"]}, "one loss_sum and one loss_count"),
        ({"example_inputs": (torch.randn(4, 3),)}, "do not fit Regression.forward: missing a required argument"),
        ({"example_inputs": (torch.randn(4, 3), torch.randn(4), 1.0)}, "input 'weight' .* is float, not a tensor"),
        ({"dynamic_shapes": {"y": {0: "batch"}}}, "names 'y', which is not an input"),
        ({"dynamic_shapes": {"x": {2: "batch"}}}, "has dimension 2; it has 2"),
        ({"dynamic_shapes": {"x": {0: 7}}}, "has 7; symbols are names"),
        ({"example_inputs": tuple(batch(1).values()), "dynamic_shapes": {"x": {0: "n"}}}, "size 1 in dimension 0"),
        ({"dropout": "none"}, "dropout is 'keep' or 'off'"),
        ({"module": Regression().double()}, "parameter 'net.0.weight' is f64"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, changes, message):
    arguments = {
        "module": Regression(),
        "example_inputs": tuple(batch(4).values()),
        "outputs": ("loss_sum", "loss_count"),
    }
    with pytest.raises(ExportError, match=message):
        nd_export.export(path=tmp_path, **(arguments | changes))


def test_loss_that_is_no_scalar_is_refused(tmp_path):
    class PerItem(torch.nn.Module):
        def forward(self, x):
            return x**2, torch.tensor(x.shape[0])

    with pytest.raises(ExportError, match=r"'loss_sum' has shape \[4\]; loss_sum is a scalar"):
        nd_export.export(PerItem(), torch.randn(4), tmp_path, outputs=("loss_sum", "loss_count"))
