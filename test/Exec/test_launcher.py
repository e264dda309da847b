"""A job whose ranks die, stop or are interrupted ends within seconds, says why, and leaves nothing behind."""

import contextlib
import os
import pathlib
import signal
import socket
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

    def __init__(self, program, tokens, metrics, *options):
        command = [
            "nd-run",
            program,
            "--data",
            tokens,
            "--data-dtype=uint16",
            "--steps=100000000",
            "--metrics",
            metrics,
            *options,
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


class Claims:
    """All cores that are free, as another job that has bound its threads to them holds them."""

    def __enter__(self):
        self.sockets = []
        for core in os.sched_getaffinity(0):
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            with contextlib.suppress(OSError):  # a job has it
                claim.bind(f"\0nd-core-{core}")
            self.sockets.append(claim)

    def __exit__(self, *_):
        for claim in self.sockets:
            claim.close()


def cores_of(job):
    """The cores of each rank's threads."""
    return [
        {frozenset(os.sched_getaffinity(int(thread.name))) for thread in pathlib.Path(f"/proc/{r}/task").iterdir()}
        for r in job.ranks
    ]


@pytest.fixture
def bound_job(program, tokens, tmp_path):
    jobs = []

    def start(*options):
        jobs.append(Job(program, tokens[0], tmp_path / f"{len(jobs)}.jsonl", "--threads=1", *options))
        return jobs[-1]

    yield start
    for job in jobs:
        job.process.kill()
        job.process.wait()


def test_ranks_have_cores_of_their_own(bound_job):
    """Two jobs at once never share a core; who finds too few runs anywhere, as without --bind."""
    anywhere = [{frozenset(os.sched_getaffinity(0))}] * 2
    with Claims():
        assert cores_of(bound_job("--bind=auto")) == anywhere
    assert cores_of(bound_job()) == anywhere
    seen = [cores_of(bound_job("--bind=auto")) for _ in range(2)]
    assert (seen[0] == anywhere) == (len(os.sched_getaffinity(0)) < 2)
    bound = [core for job in seen if job != anywhere for rank in job for threads in rank for core in threads]
    assert len(bound) == len(set(bound)), seen
    assert (seen[1] == anywhere) == (len(os.sched_getaffinity(0)) < 4)


def test_a_lost_job_gives_its_cores_back(bound_job):
    first = bound_job("--bind=auto")
    cores = cores_of(first)
    first.process.kill()
    first.process.wait()
    assert cores_of(bound_job("--bind=auto")) == cores
