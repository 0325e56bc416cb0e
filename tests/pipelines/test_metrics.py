"""The counters of a run: they only grow, survive a restart of Spark, and are served to Prometheus."""

import urllib.error
import urllib.request
from typing import Any

import pytest

from headrace.spark.pipelines.lag import SourceLag, summary
from headrace.spark.pipelines.metrics import run_page
from headrace.spark.pipelines.progress import FIELD_SEPARATOR, ROW_COUNTS, batch_report
from headrace.spark.pipelines.records import RunRecord, RunState
from headrace.spark.pipelines.scrape import serving
from headrace.spark.pipelines.totals import DRIFTED_FIELDS_MAX, OTHER_FIELDS, no_totals, totals_of_run, with_batch

pytestmark = pytest.mark.process

RECORD = RunRecord(pipeline="p", run="r", state=RunState.STARTING, host="h", process_id=1, started_ms=0)


def report(number: int, *, dead: int, fields: dict[str, int]) -> dict[str, Any]:
    items = [{"item": name, "count": count} for name, count in fields.items()]
    observed = {"headrace_input_a": {"read": 10, "failed_0": 1, "drifted_fields": items}, "headrace_x": {"dead": dead}}
    return batch_report({"batchId": number, "observedMetrics": observed}, {"failed_0": "paid"})


def test_totals_add_up_batches_and_fields_by_name() -> None:
    totals = no_totals()
    for number in range(3):
        together = FIELD_SEPARATOR.join(("coupon", "colour"))
        totals = with_batch(totals, report(number, dead=2, fields={"": 7, "coupon": 1, together: 2}))
    assert (totals["batches"], totals["rows"]["read"], totals["rows"]["dead"]) == (3, 30, 6)
    assert totals["failed_expectations"] == {"paid": 3}
    assert totals["drifted_fields"] == {"coupon": 9, "colour": 6}


def test_names_of_fields_are_bounded_whatever_records_have() -> None:
    totals = no_totals()
    for number in range(DRIFTED_FIELDS_MAX + 50):
        totals = with_batch(totals, report(number, dead=0, fields={f"f{number}": 1}))
    assert len(totals["drifted_fields"]) == DRIFTED_FIELDS_MAX + 1
    assert totals["drifted_fields"][OTHER_FIELDS] == 50


def test_a_run_that_was_started_again_continues_counting() -> None:
    before = with_batch(no_totals(), report(0, dead=1, fields={}))
    told = {"run": "r", "totals": before}
    assert totals_of_run(told, "r") == before
    assert totals_of_run(told, "other") == totals_of_run(None, "r") == no_totals()


def test_what_is_not_reported_of_a_run_of_a_project_stays_unknown() -> None:
    told = {"rows": dict.fromkeys(ROW_COUNTS), "failed_expectations": {}}
    assert with_batch(with_batch(no_totals(), told), told)["rows"] == dict.fromkeys(ROW_COUNTS)


def test_the_lag_has_what_the_kafka_connector_reports() -> None:
    lags = [SourceLag("t", 0, 5, 5, 0.0), SourceLag("t", 1, 0, 9, 3.0)]
    assert summary(lags)["behind_latest"] == {"min": 0, "avg": 4.5, "max": 9}
    assert summary([])["behind_latest"] == {"min": 0, "avg": 0, "max": 0}


def test_counters_are_served() -> None:
    found = report(4, dead=2, fields={"coupon": 3})
    found["totals"] = with_batch(no_totals(), found)
    found["lag"] = summary([SourceLag("t", 0, 5, 9, 1.5)])
    pages = [run_page(RECORD, found, is_alive=True)]
    with serving("127.0.0.1", 0, lambda: pages[0]) as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            page = answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other", timeout=60)
    lines = page.splitlines()
    for line in (
        'headrace_pipeline_up{pipeline="p"} 1',
        "# TYPE headrace_pipeline_rows_total counter",
        'headrace_pipeline_rows_total{pipeline="p",kind="dead"} 2',
        'headrace_pipeline_drifted_fields_total{pipeline="p",field="coupon"} 3',
        'headrace_pipeline_failed_expectations_total{pipeline="p",expectation="paid"} 1',
        'headrace_pipeline_offsets_behind_latest{pipeline="p",of="max"} 4',
        'headrace_pipeline_lag_seconds{pipeline="p",topic="t",partition="0"} 1.5',
        'headrace_pipeline_restarts_total{pipeline="p"} 0',
    ):
        assert line in lines, page
    assert 'headrace_pipeline_up{pipeline="p"} 0' in run_page(RECORD, None, is_alive=False)


def test_an_address_that_is_taken_is_reported() -> None:
    with serving("127.0.0.1", 0, str) as port, pytest.raises(OSError, match="in use"), serving("127.0.0.1", port, str):
        pass
