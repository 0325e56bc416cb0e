"""A supervisor and small children in Spark's place: restarts, who hears a stop meanwhile, and signals."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headrace.client import Admin
from headrace.spark.pipelines.claims import new_run
from headrace.spark.pipelines.definition import Restart
from headrace.spark.pipelines.records import Known, RunState, run_message, stop_message
from headrace.spark.pipelines.spark_process import is_lost_connection, java_death
from headrace.spark.pipelines.status_topic import make_topic, opened
from headrace.spark.pipelines.supervision import Supervisor
from headrace.testing import EmbeddedBroker
from tests.process_groups import wait_until

pytestmark = pytest.mark.process

PROLOGUE = """
import os, signal, sys, time
from pathlib import Path
from headrace.spark.pipelines.supervision import supervised
child, tries = supervised(), Path({tries!r})
tries.open("a").write("x")
"""
LONG_S = 600


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    with EmbeddedBroker() as broker:
        found = {"bootstrap.servers": broker.bootstrap_servers}
        with Admin(config=found) as admin:
            make_topic(admin)
        yield found


@dataclass
class Watched:
    """A supervisor with all that it and its children say."""

    supervisor: Supervisor
    tries: Path
    said: list[str] = field(default_factory=list)

    def count(self) -> int:
        return len(self.tries.read_text()) if self.tries.exists() else 0


def watched(settings: dict[str, Any], folder: Path, script: str, **policy: int) -> Watched:
    tries, said = folder / "tries", list[str]()
    supervisor = Supervisor(
        command=[sys.executable, "-c", PROLOGUE.format(tries=str(tries)) + script],
        record=new_run(folder.name),
        settings=settings,
        policy=Restart(**policy),
        on_output=said.append,
        on_error=said.append,
        on_state=said.append,
    )
    return Watched(supervisor, tries, said)


def known(settings: dict[str, Any], pipeline: str) -> Known:
    with opened(settings) as bulletin:
        return bulletin.catch_up().pipelines.get(pipeline, Known())


def test_a_child_that_ends_by_itself_is_not_started_again(settings: dict[str, Any], tmp_path: Path) -> None:
    found = watched(settings, tmp_path, "print('done'); sys.exit(3)", attempts=3, backoff_ms=1)
    assert found.supervisor.run() == (3, "")
    assert (found.said, found.count()) == (["done"], 1)


def test_what_died_is_reported_and_started_again_until_the_attempts_are_over(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    script = """
if len(tries.read_text()) == 1:
    child.die("Java is gone")
os.kill(os.getpid(), signal.SIGKILL)
"""
    found = watched(settings, tmp_path, script, attempts=2, backoff_ms=1)
    status, said = found.supervisor.run()
    assert (status, found.count()) == (1, 3)
    assert said.startswith("the process that drives Spark (pid ")
    assert said.endswith(" was killed by SIGKILL: the machine may have run out of memory")
    first, second = found.said
    assert first == "restart 1 of 2 in 0.001 s after: Java is gone"
    assert second.startswith("restart 2 of 2 in 0.001 s after: the process that drives Spark")
    holder = known(settings, tmp_path.name).holder
    assert holder is not None
    assert (holder.state, holder.message) == (RunState.FAILED, said)


def test_batches_and_restarts_reach_the_page(settings: dict[str, Any], tmp_path: Path) -> None:
    script = """
assert child.restarts == len(tries.read_text()) - 1
from headrace.spark.pipelines.progress import batch_report
from headrace.spark.pipelines.totals import no_totals, with_batch
report = batch_report({"batchId": 1, "observedMetrics": {"headrace_x": {"read": 5}}}, {})
child.publish_batch(report | {"totals": with_batch(no_totals(), report)})
if child.restarts == 0:
    child.die("Java is gone")
"""
    found = watched(settings, tmp_path, script, attempts=1, backoff_ms=1)
    assert found.supervisor.run() == (0, ""), found.said
    page = found.supervisor.page()
    assert f'headrace_pipeline_rows_total{{pipeline="{tmp_path.name}",kind="read"}} 5' in page
    assert f'headrace_pipeline_up{{pipeline="{tmp_path.name}"}} 0' in page


@pytest.mark.parametrize("by", ["a stop from elsewhere", "a signal"])
def test_a_run_is_stopped_while_it_waits_for_a_restart(settings: dict[str, Any], tmp_path: Path, by: str) -> None:
    found = watched(settings, tmp_path, "child.die('Java is gone')", attempts=3, backoff_ms=LONG_S * 1000)
    ends: list[tuple[int, str]] = []
    thread = threading.Thread(target=lambda: ends.append(found.supervisor.run()))
    thread.start()
    name, run = tmp_path.name, found.supervisor.record.run

    def waits() -> bool:
        holder = known(settings, name).holder
        return holder is not None and holder.message == "restarting after: Java is gone"

    wait_until(waits, "the supervisor tells of the restart")
    if by == "a signal":
        found.supervisor.forward(signal.SIGTERM)
    else:
        with opened(settings) as bulletin:
            bulletin.publish_and_wait(stop_message(name, run))
    thread.join(60)
    assert (ends, found.count()) == ([(0, "")], 1)
    holder = known(settings, name).holder
    assert holder is not None
    assert (holder.state, holder.run) == (RunState.STOPPED, run)


def test_a_signal_is_handed_to_the_child(settings: dict[str, Any], tmp_path: Path) -> None:
    script = f"""
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
print("ready")
time.sleep({LONG_S})
"""
    found = watched(settings, tmp_path, script, attempts=3, backoff_ms=1)
    ends: list[tuple[int, str]] = []
    thread = threading.Thread(target=lambda: ends.append(found.supervisor.run()))
    thread.start()
    wait_until(lambda: "ready" in found.said, "the child is ready")
    found.supervisor.forward(signal.SIGTERM)
    thread.join(60)
    assert (ends, found.count()) == ([(143, "")], 1)


def test_a_child_without_its_supervisor_stops(settings: dict[str, Any], tmp_path: Path) -> None:
    """The line between them closes with the supervisor; here the child closes its own end of it."""
    script = """
import socket, threading
stop = threading.Event()
child.watch(stop)
child.line.shutdown(socket.SHUT_RDWR)
sys.exit(0 if stop.wait(60) else 1)
"""
    found = watched(settings, tmp_path, script, attempts=0, backoff_ms=1)
    assert found.supervisor.run() == (0, ""), found.said


def test_the_run_of_another_is_not_taken_while_waiting(settings: dict[str, Any], tmp_path: Path) -> None:
    """A run that was overtaken while its Spark was dead ends, and does not start again beside the other."""
    from headrace.spark.pipelines.claims import AlreadyRunning

    other = new_run(tmp_path.name)
    with opened(settings) as bulletin:
        bulletin.publish_and_wait(run_message(other))
    found = watched(settings, tmp_path, "child.die('Java is gone')", attempts=3, backoff_ms=1)
    with pytest.raises(AlreadyRunning, match=f"run {other.run}"):
        found.supervisor.run()
    assert found.count() == 1


def test_the_end_of_java_is_reported_by_how_it_ended() -> None:
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

    with subprocess.Popen(["sleep", "600"]) as process:
        assert java_death(process, is_suspected=False) is None
        process.kill()
        said = f"Spark's Java process (pid {process.pid}) was killed by SIGKILL: the machine may have run out of memory"
        assert java_death(process, is_suspected=True) == said
    with subprocess.Popen(["false"]) as process:
        assert (
            java_death(process, is_suspected=True) == f"Spark's Java process (pid {process.pid}) ended with exit code 1"
        )
    assert java_death(None, is_suspected=True) is None
    assert is_lost_connection(ConnectionRefusedError())
    assert is_lost_connection(Py4JNetworkError("no answer"))
    assert not is_lost_connection(ValueError())
