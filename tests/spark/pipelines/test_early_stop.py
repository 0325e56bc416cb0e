"""A run that is stopped while Spark starts says so, and leaves no Java behind."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.testing import EmbeddedBroker
from tests.process_groups import running, wait_until, wait_until_gone

pytestmark = pytest.mark.process

WAIT_S_MAX = 120
SPARKS_JAVA = "org.apache.spark.deploy.SparkSubmit"
PIPELINE = "name: {name}\nsource: {{topic: {name}}}\nsink: {{topic: {name}-out}}\n"


@contextmanager
def starting(folder: Path, broker: EmbeddedBroker, topic: str) -> Iterator[subprocess.Popen[str]]:
    """A run in a process group of its own, whose Java is there and has not told its address yet."""
    folder.joinpath("pipeline.yml").write_text(PIPELINE.format(name=topic))
    command = ["pipeline", "run", str(folder), "--bootstrap", broker.bootstrap_servers]
    with running(sys.executable, "-m", "headrace", *command) as process:
        wait_until(lambda: SPARKS_JAVA in words_of_children(process.pid), "Java", WAIT_S_MAX)
        yield process


def words_of_children(process_id: int) -> list[str]:
    found: list[str] = []
    for child in psutil.Process(process_id).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            found += child.cmdline()
    return found


@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_while_spark_starts(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, number: signal.Signals
) -> None:
    """By a kill it ended silently, and by Ctrl-C Java waited for ever."""
    with starting(tmp_path, broker, topic) as process:
        below = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        _, said = process.communicate(timeout=WAIT_S_MAX)
        wait_until_gone(process.pid, WAIT_S_MAX)
        assert psutil.wait_procs(below, WAIT_S_MAX)[1] == []
    told = [f'headrace: pipeline "{topic}" was stopped before it started'] if number == signal.SIGTERM else []
    assert said.splitlines()[-1 - len(told) :] == ["starting Spark", *told]
    assert process.returncode == 128 + number
    status = CliRunner().invoke(cli, ["pipeline", "status", topic, "--bootstrap", broker.bootstrap_servers])
    assert f"{topic}: stopped before it started" in status.stdout
