"""A runner that is killed at a named place, and what is there after the next run: every row once, in every sink."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.spark.pipelines.failpoints import FILE_VARIABLE, VARIABLE
from headrace.spark.pipelines.records import RunState
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.pipelines.helpers import read_records, run_once, send, values, write_pipeline

pytestmark = pytest.mark.record_integrity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILL_SECONDS_MAX = 300
BASE, MINUTES, PER_MINUTE = 1_750_000_000, 6, 50
WINDOWS = """\
name: {name}
source:
  topic: {name}
  format: json
  schema: id INT NOT NULL, at TIMESTAMP, country STRING
  rows_per_batch: 100
  watermark: {{column: at, delay: 10 minutes, window: 1 minute}}
transform:
  sql: |
    SELECT unix_seconds(window.start) AS begin, country, count(*) AS n
    FROM input WHERE country <> 'marker' GROUP BY window(at, '1 minute'), country
bad_records: {{topic: {name}-dead}}
sinks:
  - {{topic: {name}-out, key: country}}
  - {{parquet: files}}
restart: {{attempts: 0}}
"""
PLAIN = """\
name: {name}
source: {{topic: {name}, format: json, schema: "id INT NOT NULL"}}
sink: {{topic: {name}-out}}
bad_records: {{topic: {name}-dead}}
"""


@pytest.fixture
def name(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    return broker.create_topic(broker.unused_topic_name(request.node.name[:40]), partitions=2)


def killed(failpoint: str, folder: Path, *arguments: str, status: int = -signal.SIGKILL) -> str:
    """Run a command of ours that is killed there; one that ends in another way has not come to that place.

    A run is a process below the command, which ends with another status then and says what died.
    """
    reached = folder / "reached"
    environment = {**os.environ, VARIABLE: failpoint, FILE_VARIABLE: str(reached)}
    ran = subprocess.run(
        [sys.executable, "-m", "headrace", "pipeline", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=KILL_SECONDS_MAX,
    )
    assert ran.returncode == status, ran.stdout + ran.stderr
    assert reached.exists()
    return ran.stderr


def orders() -> tuple[list[object], Counter[tuple[int, str]]]:
    """Orders in the order of their times, a bad one now and then, and what their windows must be."""
    found: list[object] = []
    windows: Counter[tuple[int, str]] = Counter()
    for number in range(MINUTES * PER_MINUTE):
        at = BASE + number * 60 // PER_MINUTE
        country = "de" if number % 3 else "fr"
        found.append(b"broken" if number % 25 == 7 else {"id": number, "at": at, "country": country})
        if number % 25 != 7:
            windows[at - at % 60, country] += 1
    marker = {"id": -1, "at": BASE + 100_000, "country": "marker"}
    return [*found, marker, marker], windows


@pytest.mark.parametrize(
    "failpoint", ["claimed", "batch-planned:2", "between-sinks:2", "sinks-written:2", "batch-done:2"]
)
def test_a_killed_run_continues_without_loss_or_repetition(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path, failpoint: str
) -> None:
    folder = write_pipeline(tmp_path, WINDOWS.format(name=name))
    sent, windows = orders()
    send(broker.bootstrap_servers, name, sent)
    run = ("run", str(folder), "--once", "--bootstrap", broker.bootstrap_servers, "--master", "local[2]")
    said = killed(failpoint, tmp_path, *run, status=1)
    assert re.search(r"the process that drives Spark \(pid \d+\) was killed by SIGKILL", said), said
    outcome = run_once(folder, spark, broker.bootstrap_servers)
    assert outcome.state is RunState.DONE, outcome.message
    told = [
        (row["begin"], row["country"], row["n"])
        for row in values(read_records(broker.bootstrap_servers, f"{name}-out"))
    ]
    assert Counter(told) == Counter((begin, country, n) for (begin, country), n in windows.items())
    stored = spark.read.parquet(str(folder / "files")).collect()
    assert Counter((row.begin, row.country, row.n) for row in stored) == Counter(told)
    dead = read_records(broker.bootstrap_servers, f"{name}-dead")
    assert [record.value for record in dead] == [b"broken"] * sent.count(b"broken")


@pytest.mark.parametrize("failpoint", ["handing-over", "chunk-written:2"])
def test_a_killed_backfill_continues_without_loss_or_repetition(
    spark: "SparkSession",
    broker: EmbeddedBroker,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failpoint: str,
) -> None:
    folder = write_pipeline(tmp_path, PLAIN.format(name=name))
    monkeypatch.setattr("headrace.cli.pipeline_rewind.spark_session", lambda *_: spark)
    send(broker.bootstrap_servers, name, ({"id": n} for n in range(300)))
    call = ["backfill", str(folder), "--chunk-records", "100", "--bootstrap", broker.bootstrap_servers]
    killed(failpoint, tmp_path, *call, "--master", "local[2]")
    send(broker.bootstrap_servers, name, ({"id": n} for n in range(300, 340)))
    resumed = CliRunner().invoke(cli, ["pipeline", *call])
    assert resumed.exit_code == 0, (resumed.output, resumed.exception)
    assert run_once(folder, spark, broker.bootstrap_servers).state is RunState.DONE
    found = sorted(row["id"] for row in values(read_records(broker.bootstrap_servers, f"{name}-out")))
    assert found == list(range(340))


@pytest.mark.process
def test_a_killed_replay_sends_each_letter_once(broker: EmbeddedBroker, name: str, tmp_path: Path) -> None:
    from headrace.client import Producer

    folder = write_pipeline(tmp_path, PLAIN.format(name=name))
    dead = broker.create_topic(f"{name}-dead", partitions=2)
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(50):
            origin = [("trace", b"%d" % number), ("hr-dead-topic", name.encode()), ("hr-dead-timestamp", b"1234567")]
            producer.send(dead, b"value %d" % number, key=b"key %d" % number, headers=origin)
    call = ["replay-dlq", str(folder), "--bootstrap", broker.bootstrap_servers]
    killed("letters-sent", tmp_path, *call)
    done = CliRunner().invoke(cli, ["pipeline", *call])
    assert "sent 50 letters again" in done.output, (done.output, done.exception)
    found = read_records(broker.bootstrap_servers, name)
    assert sorted(record.value for record in found) == sorted(b"value %d" % number for number in range(50))
    for record in found:
        number = record.value.rpartition(b" ")[2]
        assert (record.key, record.timestamp) == (b"key " + number, 1234567)
        assert record.headers == (("trace", number), ("hr-replayed", b"1"))
