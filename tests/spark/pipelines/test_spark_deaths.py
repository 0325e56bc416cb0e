"""Spark's processes killed under a run: it says what died and goes on, and ends when its attempts are over."""

import os
import signal
import urllib.request
from functools import partial
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.testing.embedded import EmbeddedBroker
from tests.process_groups import wait_until
from tests.spark.conftest import TEST_SECONDS_MAX
from tests.spark.pipelines.commands import Running, running
from tests.spark.pipelines.helpers import read_records, send, values, write_pipeline

WAIT_S_MAX = 300
SPARKS_JAVA = "org.apache.spark.deploy.SparkSubmit"
PIPELINE = """\
name: {name}
source: {{topic: {name}, format: json, schema: "id INT NOT NULL"}}
sink: {{topic: {name}-out}}
trigger: 200 ms
restart: {{attempts: 1, backoff: 100 ms}}
"""


def started_by(command: Running, word: str) -> list[psutil.Process]:
    """The processes below a command with this word in their command line."""
    found = []
    for child in psutil.Process(command.process.pid).children(recursive=True):
        try:
            if word in child.cmdline():
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


def scraped(command: Running) -> list[str]:
    """The lines of the metrics that the run serves."""
    address = next(line for line in command.lines if line.startswith("metrics at ")).removeprefix("metrics at ")
    with urllib.request.urlopen(address, timeout=60) as answer:
        found: list[str] = answer.read().decode().splitlines()
    return found


def has_scraped(command: Running, lines: set[str]) -> bool:
    return lines <= set(scraped(command))


def has_said(command: Running, text: str) -> bool:
    return text in "\n".join(command.lines)


@pytest.mark.timeout(TEST_SECONDS_MAX)
@pytest.mark.spark
def test_a_run_says_what_died_starts_again_and_ends_when_its_attempts_are_over(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    name = broker.create_topic(broker.unused_topic_name("deaths"))
    folder = write_pipeline(tmp_path, PIPELINE.format(name=name))
    call = ("--bootstrap", broker.bootstrap_servers)

    def written() -> list[int]:
        return sorted(row["id"] for row in values(read_records(broker.bootstrap_servers, f"{name}-out")))

    def has_written(count: int) -> bool:
        return written() == list(range(count))

    with running("run", str(folder), "--master", "local[2]", "--metrics", "127.0.0.1:0", *call) as run:
        victims = [SPARKS_JAVA, "headrace"]
        for number, word in enumerate(victims):
            send(broker.bootstrap_servers, name, [{"id": number}])
            wait_until(partial(has_written, number + 1), "a row", WAIT_S_MAX)
            expected = {
                f'headrace_pipeline_rows_total{{pipeline="{name}",kind="written"}} {number + 1}',
                f'headrace_pipeline_restarts_total{{pipeline="{name}"}} {number}',
            }
            wait_until(partial(has_scraped, run, expected), "the counters", WAIT_S_MAX)
            (victim,) = started_by(run, word)[:1]
            os.kill(victim.pid, signal.SIGKILL)
            what = "Spark's Java process" if word == SPARKS_JAVA else "the process that drives Spark"
            run.wait_for(partial(has_said, run, f"{what} (pid {victim.pid}) was killed by SIGKILL"))
        assert run.end() == 1
    said = "\n".join(run.lines)
    assert "restart 1 of 1 in 0.1 s after: Spark's Java process" in said
    assert run.lines[-1].startswith(f'headrace: pipeline "{name}" failed: the process that drives Spark')
    assert "Traceback" not in said
    assert "Connection refused" not in said
    status = CliRunner().invoke(cli, ["pipeline", "status", name, *call])
    assert f"{name}: the process that drives Spark (pid" in status.stdout, status.stdout
    assert written() == [0, 1]
