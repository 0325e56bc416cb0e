"""Jobs behind the Spawner port: in a process of their own, and in the virtual world."""

import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headrace.ports.real.helper import NICENESS, STARVED_SECONDS, Priority, paced
from headrace.ports.real.spawner import ThreadSpawner
from headrace.ports.spawner import BytesProcessed, JobDied, RunningJob
from headrace.sim.entropy import SeededEntropy
from headrace.sim.spawner import VirtualSpawner
from headrace.sim.trace import Trace

from .job_functions import counting, describing_itself, dying, endless, failing, failing_oddly

pytestmark = pytest.mark.process

WAIT_SECONDS = 100
PARENT = """
import functools, sys, threading
from tests.compaction.job_functions import endless
from tests.compaction.test_jobs import Heard

heard = Heard()
heard.start(functools.partial(endless, sys.argv[1]))
heard.until(lambda: heard.results)
print(heard.results[0], flush=True)
threading.Event().wait()
"""


class Heard:
    """Runs a job to its end as a loop would, and keeps what was heard of it."""

    def __init__(self) -> None:
        self.woken = threading.Event()
        self.spawner = ThreadSpawner(self.woken.set)
        self.results: list[Any] = []
        self.ends: list[BaseException | None] = []

    def start(self, job: Callable[[], Iterator[Any]], rate: float = float("inf")) -> RunningJob:
        return self.spawner.start_job(job, self.results.append, self.ends.append, bytes_per_second=rate)

    def until(self, reached: Callable[[], object]) -> None:
        while not reached():
            assert self.woken.wait(WAIT_SECONDS)
            self.woken.clear()
            self.spawner.run_completions()


@pytest.fixture(autouse=True)
def _jobs_of_the_tests_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    yield heard
    heard.spawner.close()


def test_results_come_one_by_one_and_then_the_end(heard: Heard) -> None:
    heard.start(functools.partial(counting, 5))
    assert heard.spawner.in_flight() == 1
    heard.until(lambda: heard.ends)
    assert heard.results == [0, 1, 2, 3, 4]
    assert heard.ends == [None]
    assert heard.spawner.in_flight() == 0


def test_a_result_that_cannot_be_taken_ends_nothing_else(heard: Heard) -> None:
    def refuse(result: Any) -> None:
        heard.results.append(result)
        raise ValueError("refused")

    heard.spawner.start_job(functools.partial(counting, 3), refuse, heard.ends.append, bytes_per_second=float("inf"))
    while not heard.ends:
        assert heard.woken.wait(WAIT_SECONDS)
        heard.woken.clear()
        with suppress(ValueError, ExceptionGroup):
            heard.spawner.run_completions()
    assert heard.results == [0, 1, 2]
    assert heard.spawner.in_flight() == 0


def test_a_job_has_an_idle_process_of_its_own(heard: Heard) -> None:
    heard.start(describing_itself)
    heard.until(lambda: heard.ends)
    ((process, parent, scheduler),) = heard.results
    assert process != os.getpid()
    assert parent == os.getpid()
    assert scheduler == os.SCHED_IDLE


@pytest.mark.parametrize("job", [failing, failing_oddly])
def test_what_a_job_raises_is_its_end(heard: Heard, job: Callable[[], Iterator[int]]) -> None:
    heard.start(job)
    heard.until(lambda: heard.ends)
    assert heard.results == [1]
    assert "on purpose" in str(heard.ends[0]) or "odd" in str(heard.ends[0])


def test_a_process_that_dies_is_the_end_of_its_job(heard: Heard) -> None:
    heard.start(dying)
    heard.until(lambda: heard.ends)
    assert heard.results == [1]
    assert isinstance(heard.ends[0], JobDied)
    assert "7" in str(heard.ends[0])


def test_a_cancelled_job_is_killed_and_not_heard_of(heard: Heard, tmp_path) -> None:
    job = heard.start(functools.partial(endless, str(tmp_path / "file")))
    heard.until(lambda: heard.results)
    job.cancel()
    heard.until(lambda: not heard.spawner.in_flight())
    assert heard.ends == []
    with pytest.raises(ProcessLookupError):
        os.kill(heard.results[0], 0)


def test_closing_the_spawner_ends_its_jobs(tmp_path) -> None:
    heard = Heard()
    heard.start(functools.partial(endless, str(tmp_path / "file")))
    heard.until(lambda: heard.results)
    heard.spawner.close()
    with pytest.raises(ProcessLookupError):
        os.kill(heard.results[0], 0)


def test_a_job_ends_with_a_parent_that_is_killed(tmp_path) -> None:
    """Another process starts the job and is killed; the job must not go on writing."""
    command = [sys.executable, "-c", PARENT, str(tmp_path / "file")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        job = int(parent.stdout.readline())
        os.kill(job, 0)
        parent.kill()
    for _ in range(WAIT_SECONDS * 100):
        if not alive(job):
            break
        threading.Event().wait(0.01)
    assert not alive(job)


def alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_job_rests_when_it_has_spent_too_much() -> None:
    now = 0.0
    rests: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        rests.append(seconds)
        now += seconds

    steps = iter([BytesProcessed(1000), "a", BytesProcessed(500), BytesProcessed(0), "b"])
    results = list(paced(steps, 1000.0, now=lambda: now, sleep=sleep))
    assert results == ["a", "b"]
    assert rests == [1.0, 0.5]


def test_a_starving_job_is_idle_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    schedulers: list[int] = []
    nices: list[int] = []
    monkeypatch.setattr(os, "sched_setscheduler", lambda process, policy, parameters: schedulers.append(policy))
    monkeypatch.setattr(os, "nice", nices.append)
    now, spent = 0.0, 0.0
    priority = Priority(now=lambda: now, spent=lambda: spent)
    now, spent = STARVED_SECONDS, STARVED_SECONDS / 2
    priority.look()
    assert priority.is_idle
    now += STARVED_SECONDS - 1
    priority.look()
    assert priority.is_idle
    now += 1
    priority.look()
    priority.look()
    assert not priority.is_idle
    assert schedulers == [os.SCHED_IDLE, os.SCHED_OTHER]
    assert nices == [NICENESS]


def test_a_job_without_its_parent_stops() -> None:
    with pytest.raises(SystemExit):
        list(paced(iter([BytesProcessed(1), "never"]), float("inf"), parent_is_there=lambda: False))


def test_virtual_jobs_take_turns() -> None:
    spawner = VirtualSpawner(SeededEntropy(1), Trace())
    results: list[int] = []
    ends: list[BaseException | None] = []
    spawner.start_job(functools.partial(counting, 10), results.append, ends.append, bytes_per_second=1)
    turns = 0
    while spawner.in_flight():
        spawner.run_completions()
        turns += 1
    assert results == list(range(10))
    assert ends == [None]
    assert turns > 4


def test_virtual_jobs_fail_and_are_cancelled() -> None:
    spawner = VirtualSpawner(SeededEntropy(1), Trace())
    results: list[int] = []
    ends: list[BaseException | None] = []
    spawner.start_job(failing, results.append, ends.append, bytes_per_second=1)
    cancelled = spawner.start_job(functools.partial(counting, 10), results.append, ends.append, bytes_per_second=1)
    cancelled.cancel()
    while spawner.in_flight():
        spawner.run_completions()
    assert results == [1]
    assert [str(end) for end in ends] == ["on purpose"]
