"""A job whose ranks die, stop or are interrupted ends within seconds, says why, and leaves nothing behind."""

import pathlib
import signal
import subprocess
import time

import pytest
from support import run


@pytest.fixture(scope="module")
def program(imported, tmp_path_factory):
    folder = tmp_path_factory.mktemp("launcher")
    run("nd-opt", "--shard=dp2", imported("gpt2", 4, 8), "-o", folder / "step.mlir")
    run("nd-compile", folder / "step.mlir", "--target=host", "-o", folder / "prog")
    return folder / "prog"


def children(pid):
    """Process ids of a process's children."""
    return [int(c) for c in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Job:
    """A training run that would last for hours."""

    def __init__(self, program, tokens, metrics):
        command = [
            "nd-run",
            program,
            "--data",
            tokens,
            "--data-dtype=uint16",
            "--steps=100000000",
            "--metrics",
            metrics,
        ]
        self.process = subprocess.Popen(
            [str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") >= 2)
        self.ranks = children(self.process.pid)

    def wait_until(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.process.stdout.read()
            assert time.monotonic() < end, "the job did not start"
            time.sleep(0.05)

    def ends(self, seconds):
        """The output, once the job has ended by itself with a code that is not 0, and all its processes with it."""
        output, _ = self.process.communicate(timeout=seconds)
        assert self.process.returncode != 0
        time.sleep(0.2)
        assert not [r for r in self.ranks if pathlib.Path(f"/proc/{r}").exists()], "a rank lives on"
        return output


@pytest.fixture
def job(program, tokens, tmp_path):
    job = Job(program, tokens[0], tmp_path / "metrics.jsonl")
    yield job
    if job.process.poll() is None:
        job.process.kill()
        job.process.wait()


def test_two_ranks_run(job):
    assert len(job.ranks) == 2


def test_a_killed_rank_takes_the_job_down(job):
    subprocess.run(["kill", "-KILL", str(job.ranks[1])], check=True)
    output = job.ends(10)
    assert "rank 1" in output and "signal 9" in output.lower().replace("sigkill", "signal 9"), output


def test_a_stopped_rank_takes_the_job_down(job):
    subprocess.run(["kill", "-STOP", str(job.ranks[0])], check=True)
    output = job.ends(45)
    assert "rank 0" in output, output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all(job, number):
    job.process.send_signal(number)
    job.ends(10)


def test_ranks_die_with_a_killed_launcher(job):
    job.process.kill()
    job.process.wait()
    end = time.monotonic() + 5
    while any(pathlib.Path(f"/proc/{r}").exists() for r in job.ranks):
        assert time.monotonic() < end, "a rank outlived its launcher"
        time.sleep(0.05)


def test_no_shared_memory_is_left(program, tokens):
    before = set(pathlib.Path("/dev/shm").iterdir())
    run("nd-run", program, "--data", tokens[0], "--data-dtype=uint16", "--steps=2")
    assert set(pathlib.Path("/dev/shm").iterdir()) == before
