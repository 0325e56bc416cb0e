"""A run that is told to end while Spark starts says so, and leaves no Java behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.testing import EmbeddedBroker

WAIT_S_MAX = 120
SPARKS_JAVA = "org.apache.spark.deploy.SparkSubmit"
PIPELINE = "name: {name}\nsource: {{topic: {name}}}\nsink: {{topic: {name}-out}}\n"


@contextmanager
def starting(folder: Path, broker: EmbeddedBroker, topic: str) -> Iterator[subprocess.Popen[str]]:
    """A run in a process group of its own, whose Java is there and has not told its address yet."""
    folder.joinpath("pipeline.yml").write_text(PIPELINE.format(name=topic))
    command = ["pipeline", "run", str(folder), "--bootstrap", broker.bootstrap_servers]
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", *command],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # the tests may run in the background
    )
    try:
        wait_until(lambda: SPARKS_JAVA in words_of_children(process.pid), "Java")
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def words_of_children(process_id: int) -> list[str]:
    found: list[str] = []
    for child in psutil.Process(process_id).children():
        with suppress(psutil.NoSuchProcess):  # it has just ended
            found += child.cmdline()
    return found


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def is_left(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_while_spark_starts(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, number: signal.Signals
) -> None:
    """By a kill it ended without a word, and by Ctrl-C Java waited for ever."""
    with starting(tmp_path, broker, topic) as process:
        process.send_signal(number)
        _, said = process.communicate(timeout=WAIT_S_MAX)
        wait_until(lambda: not is_left(process.pid), "a process stays")
    told = [f'headrace: pipeline "{topic}" was stopped before it started'] if number == signal.SIGTERM else []
    assert said.splitlines()[-1 - len(told) :] == ["starting Spark", *told]
    assert process.returncode == 128 + number
    status = CliRunner().invoke(cli, ["pipeline", "status", topic, "--bootstrap", broker.bootstrap_servers])
    assert f"{topic}: stopped before it started" in status.stdout
