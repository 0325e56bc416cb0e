"""`headrace pipeline run --once` for schedulers: exit codes and the last line. Small children run in Spark's place."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.cli import pipeline_run
from headrace.cli.main import cli
from headrace.client import Admin
from headrace.spark.pipelines.records import RunRecord, RunState, run_message
from headrace.spark.pipelines.status_topic import make_topic, opened
from headrace.testing.embedded import EmbeddedBroker

pytestmark = pytest.mark.process

FILE = """\
name: {name}
source: {{topic: orders, options: {{kafka.client.id: "${{env:ONCE_SECRET}}"}}}}
sink: {{topic: out}}
restart: {{attempts: 1, backoff: 1 ms}}
"""
CHILD = """
import sys
from headrace.spark.pipelines.progress import batch_report
from headrace.spark.pipelines.supervision import supervised
from headrace.spark.pipelines.totals import no_totals, with_batch
child = supervised()
report = batch_report({"batchId": 1, "observedMetrics": {"headrace_x": {"read": 5}}}, {})
child.publish_batch(report | {"totals": with_batch(no_totals(), report), "lag": {"records": 0, "seconds": 0.0}})
print("batch 1", flush=True)
"""
SECRET = "secret-of-a-scheduler"


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as started:
        started.create_topic("orders", partitions=1)
        with Admin(started.bootstrap_servers) as admin:
            make_topic(admin)
        yield started


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONCE_SECRET", SECRET)
    (tmp_path / "pipeline.yml").write_text(FILE.format(name=tmp_path.name))
    return tmp_path


def ran(broker: EmbeddedBroker, folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the last line of output."""
    call = ["pipeline", "run", str(folder), "--bootstrap", broker.bootstrap_servers, "--once", *arguments]
    told = CliRunner().invoke(cli, call)
    assert SECRET not in told.output
    return told.exit_code, json.loads(told.stdout.splitlines()[-1])


ENDS = [
    ("child.publish_end('done', '')", 0, "done", ""),
    (f"child.publish_end('failed', 'no {SECRET}'); sys.exit(1)", 1, "failed", "no ***"),
    ("child.publish_end('stopped', '')", 4, "stopped", ""),
    ("sys.exit(143)", 143, "stopped", ""),
]


@pytest.mark.parametrize(("end", "code", "state", "message"), ENDS)
def test_how_a_run_ended(
    broker: EmbeddedBroker,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    end: str,
    code: int,
    state: str,
    message: str,
) -> None:
    monkeypatch.setattr(pipeline_run, "_command", lambda *_: [sys.executable, "-c", CHILD + end])
    status, line = ran(broker, folder)
    assert (status, line["exit_code"], line["state"], line["message"]) == (code, code, state, message)
    assert (line["pipeline"], line["environment"], line["batches"], line["restarts"]) == (folder.name, None, 1, 0)
    assert (line["rows"]["read"], line["lag"]["records"]) == (5, 0)


def test_a_run_whose_spark_dies_too_often_failed(
    broker: EmbeddedBroker, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        pipeline_run, "_command", lambda *_: [sys.executable, "-c", f"{CHILD}child.die('Java is gone')"]
    )
    status, line = ran(broker, folder)
    assert (status, line["state"], line["restarts"]) == (1, "failed", 1)
    assert line["message"] == f'pipeline "{folder.name}" failed: Java is gone (more in {folder}/checkpoint/run.log)'


def test_a_wrong_file_is_invalid(broker: EmbeddedBroker, folder: Path) -> None:
    (folder / "pipeline.prod.yml").write_text("trigger: sometimes\n")
    status, line = ran(broker, folder, "--env", "prod")
    assert (status, line["state"], line["run"], line["rows"]) == (2, "invalid", None, None)
    assert 'pipeline.prod.yml:1: trigger: "sometimes" is not a trigger' in line["message"]


def test_a_run_beside_another_is_refused_with_a_code_of_its_own(broker: EmbeddedBroker, folder: Path) -> None:
    other = RunRecord(
        pipeline=folder.name, run="other", state=RunState.RUNNING, host="elsewhere", process_id=7, started_ms=0
    )
    with opened({"bootstrap.servers": broker.bootstrap_servers}) as bulletin:
        bulletin.publish_and_wait(run_message(other))
    status, line = ran(broker, folder)
    assert (status, line["state"]) == (3, "in use")
    assert line["message"].startswith(f'pipeline "{folder.name}" is run by process 7 on elsewhere (run other)')


def test_a_checkpoint_that_cannot_be_written_is_a_failure(broker: EmbeddedBroker, folder: Path) -> None:
    (folder / "checkpoint").write_text("a file in its place")
    status, line = ran(broker, folder)
    assert (status, line["state"]) == (1, "failed")
    assert "cannot be written" in line["message"]


def test_other_runs_print_no_such_line(broker: EmbeddedBroker, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_run, "_command", lambda *_: [sys.executable, "-c", CHILD])
    call = ["pipeline", "run", str(folder), "--bootstrap", broker.bootstrap_servers, "--continuous"]
    told = CliRunner().invoke(cli, call)
    assert (told.exit_code, told.stdout.splitlines()) == (0, ["batch 1"])
