"""`headrace pipeline status` and its like as people see them: all fits 80 columns, and errors say what is so."""

import json
import time
from dataclasses import replace

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.cli.pipeline_status import _show
from headrace.client import Admin
from headrace.spark.pipelines.progress import ROW_COUNTS
from headrace.spark.pipelines.records import Known, RunRecord, RunState, run_message, stop_message
from headrace.spark.pipelines.status_topic import make_topic, opened
from headrace.testing import EmbeddedBroker

pytestmark = pytest.mark.process

WIDTH = 80


def told(batch: int) -> dict[str, object]:
    return {
        "batch": batch,
        "began": "2026-05-31T12:00:01.250Z",
        "rows": dict.fromkeys(ROW_COUNTS, 250_000),
        "rows_per_second": 123_456.7,
        "seconds": 12.345,
        "times_ms": {"plan": 1_234, "read": 123, "process": 23_456, "commit": 1_234},
        "watermark": "2026-05-31T11:00:00.000Z",
        "lag": {"records": 12_345_678, "seconds": 1_234.567, "partitions": []},
    }


@pytest.fixture
def known() -> dict[str, Known]:
    record = RunRecord(
        pipeline="orders-by-country",
        run="c13a571dfb02",
        state=RunState.RUNNING,
        host="worker-17",
        process_id=21658,
        started_ms=0,
    )
    return {
        record.pipeline: Known(
            holder=record, seen_ms=round(time.time() * 1000), batches={n: told(n) for n in (998_999, 999_000)}
        )
    }


def test_the_tables_fit_a_terminal(known: dict[str, Known], capsys: pytest.CaptureFixture[str]) -> None:
    _show(known, as_json=False, prometheus=False, with_batches=True)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= WIDTH, lines
    assert lines[0].split() == ["PIPELINE", "STATE", "HEARD", "BATCH", "ROWS/S", "LAG", "LAG", "S"]
    assert lines[3:5] == [
        "orders-by-country: run c13a571dfb02 on worker-17:21658",
        "watermark: 2026-05-31T11:00:00.000Z",
    ]
    assert lines[7].split() == ["999000", "12:00:01", *["250000"] * 6, "123456.7"]
    assert lines[11].split() == ["999000", "12.345", "1234", "123", "23456", "1234"]


def test_programs_get_numbers_and_nulls(known: dict[str, Known], capsys: pytest.CaptureFixture[str]) -> None:
    (name,) = known
    for batches, expected in ((known[name].batches, [999_000, 123_456.7, 12_345_678, 1_234.567]), ({}, [None] * 4)):
        _show({name: replace(known[name], batches=batches)}, as_json=True, prometheus=False, with_batches=False)
        (told,) = json.loads(capsys.readouterr().out)
        assert [told[key] for key in ("batch", "rows_per_second", "lag_records", "lag_seconds")] == expected
        assert (told["state"], told["host"]) == ("running", "worker-17:21658")
        assert isinstance(told["heard_ms_ago"], int)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("status", 'pipeline "{}" is unknown to the broker'),
        ("stop", 'pipeline "{}" is not running'),
        ("lag", 'pipeline "{}" has not completed a batch yet'),
    ],
)
def test_a_misspelt_name_is_met_with_the_nearest(known: dict[str, Known], command: str, said: str) -> None:
    ((name, told_of),) = known.items()
    assert told_of.holder is not None
    with EmbeddedBroker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            make_topic(admin)
        with opened({"bootstrap.servers": broker.bootstrap_servers}) as bulletin:
            bulletin.publish_and_wait(run_message(told_of.holder))
        call = ["pipeline", command, f"{name}s", "--bootstrap", broker.bootstrap_servers]
        asked = CliRunner().invoke(cli, call)
    assert asked.exit_code == 1
    assert asked.stderr == f'headrace: {said.format(f"{name}s")}, did you mean "{name}"?\n'


@pytest.mark.parametrize(
    ("is_replaced", "said"),
    [
        (False, "run c13a571dfb02 has not stopped within 1 s: its batch takes longer, or its process is gone"),
        (True, "run c13a571dfb02 is gone, and run d24 has replaced it: stop that one"),
    ],
)
def test_a_run_that_is_not_heard_of_has_not_stopped(
    known: dict[str, Known], monkeypatch: pytest.MonkeyPatch, is_replaced: bool, said: str
) -> None:
    """A silence longer than its lease once counted as its end, also of one that only had much to do."""
    ((name, told_of),) = known.items()
    holder = told_of.holder
    assert holder is not None
    looks = iter([True])
    monkeypatch.setattr(Known, "is_alive", lambda _known, _now_ms: next(looks, False))
    monkeypatch.setattr("headrace.spark.pipelines.records.LEASE_MS", -1)
    monkeypatch.setattr("headrace.cli.pipeline_run.STOP_SECONDS_MAX", 60.0 if is_replaced else 1.0)
    with EmbeddedBroker() as broker:
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        with Admin(broker.bootstrap_servers) as admin:
            make_topic(admin)
        with opened(settings) as bulletin:
            bulletin.publish_and_wait(run_message(holder))

            def replaced(pipeline: str, run: str) -> tuple[str, bytes]:
                if is_replaced:
                    bulletin.publish_and_wait(run_message(replace(holder, run="d24")))
                return stop_message(pipeline, run)

            monkeypatch.setattr("headrace.spark.pipelines.records.stop_message", replaced)
            asked = CliRunner().invoke(cli, ["pipeline", "stop", name, "--bootstrap", broker.bootstrap_servers])
    assert (asked.exit_code, asked.stderr) == (1, f"headrace: {said}\n")
