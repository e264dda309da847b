"""nd-opt --bisect: stages of a right compiler compute the same; the first that does not is named."""

import subprocess

import pytest
from mutants import Step
from support import run

# Neither tp nor fsdp divides the vocabulary; the table is tied.
MODEL = """
module attributes {nd.model = {batch = 6 : i64, seq = 4 : i64, ignore_index = -100 : i64, blocks = []}} {
  func.func @forward(%ids: tensor<6x4xi64> {nd.bound = 7 : i64, nd.kind = "input", nd.name = "input_ids"},
                     %w: tensor<7x4xf32> {nd.kind = "weight", nd.name = "w.weight"},
                     %n: tensor<4xf32> {nd.kind = "weight", nd.name = "n.weight"})
      -> (tensor<6x4x7xf32> {nd.kind = "logits"}) {
    %0 = nd.take %w[%ids] : tensor<7x4xf32>, tensor<6x4xi64> -> tensor<6x4x4xf32>
    %1, %r = nd.rms_norm %0, %n eps = 1.0e-6 : tensor<6x4x4xf32>, tensor<4xf32> -> tensor<6x4xf32>
    %2 = nd.dot_general %1, %w contract = [2] x [1] : tensor<6x4x4xf32>, tensor<7x4xf32> -> tensor<6x4x7xf32>
    return %2 : tensor<6x4x7xf32>
  }
}
"""


@pytest.fixture
def stages(tmp_path):
    """The folder of the stages of a step for fsdp3,tp2."""
    source, folder = tmp_path / "model.mlir", tmp_path / "stages"
    source.write_text(MODEL)
    run(
        "nd-opt",
        "--shard=fsdp3,tp2",
        "--keep-gradients",
        f"--dump-stages={folder}",
        source,
        "-o",
        tmp_path / "step.mlir",
    )
    return folder


def bisect(folder, *options):
    return subprocess.run(["nd-opt", f"--bisect={folder}", *options], capture_output=True, text=True, timeout=300)


def test_stages_are_numbered(stages):
    names = sorted(p.name for p in stages.glob("*.mlir"))
    assert names[0] == "00-input.mlir"
    assert [n for n in names if "nd-partition" in n] and [n for n in names if "nd-insert-reshards" in n]
    assert [int(n.split("-")[0]) for n in names] == list(range(len(names)))


def test_right_stages_compute_the_same(stages):
    done = bisect(stages)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all stages compute the same\n")
    assert done.stdout.count("results, largest difference") == len(list(stages.glob("*.mlir")))


def double_a_sum(step):
    step.multiply(step.find(r"nd\.all_reduce +sum"), 0, 2.0)


def another_base(step):
    """In the global view: the loss takes powers of two."""
    step.edit(step.find(r"= math\.exp "), r"math\.exp ", "math.exp2 ")


@pytest.mark.parametrize(("stage", "change"), [("nd-partition", double_a_sum), ("nd-insert-reshards", another_base)])
def test_names_the_stage_that_differs(stage, change, stages):
    file = next(p for p in sorted(stages.glob("*.mlir")) if p.name.endswith(f"-{stage}.mlir"))
    step = Step(file.read_text())
    change(step)
    file.write_text(step.text())
    done = bisect(stages)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"{file.name} differs: "), done.stdout + done.stderr


def test_refuses_what_it_cannot_run(tmp_path):
    done = bisect(tmp_path)
    assert done.returncode == 1 and "has no stages; write some with nd-opt --dump-stages=" in done.stderr
    (tmp_path / "00-input.mlir").write_text("module {")
    done = bisect(tmp_path)
    assert done.returncode == 1 and "00-input.mlir does not run" in done.stderr
