"""Owner of a pipeline, on which all readers of the same records agree."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.pipelines.metrics import prometheus_text
from headrace.spark.pipelines.records import (
    BATCHES_KEPT,
    ENDED,
    LEASE_MS,
    Known,
    Ledger,
    RunRecord,
    RunState,
    batch_message,
    run_message,
    stop_message,
)


def told(run: str, state: RunState) -> bytes:
    record = RunRecord(pipeline="p", run=run, state=state, host="h", process_id=1, started_ms=0)
    return run_message(record)[1]


def known(records: Iterable[tuple[int, bytes | None]]) -> Known:
    ledger = Ledger()
    ledger.apply_all(records)
    return ledger.pipelines["p"]


def test_the_first_claim_counts_and_the_second_is_refused() -> None:
    found = known(
        [(0, told("a", RunState.STARTING)), (1, told("b", RunState.STARTING)), (2, told("a", RunState.RUNNING))]
    )
    assert found.holder is not None
    assert (found.holder.run, found.holder.state, found.refused) == ("a", RunState.RUNNING, {"b"})


@pytest.mark.parametrize("end", sorted(ENDED - {RunState.REFUSED}))
def test_a_run_that_ended_leaves_the_pipeline_to_the_next(end: RunState) -> None:
    found = known([(0, told("a", RunState.RUNNING)), (1, told("a", end)), (2, told("b", RunState.STARTING))])
    assert found.holder is not None
    assert found.holder.run == "b"


def test_a_silent_run_is_overtaken_after_its_lease_and_does_not_come_back() -> None:
    records = [(0, told("a", RunState.RUNNING)), (LEASE_MS + 1, told("b", RunState.STARTING))]
    found = known([*records, (LEASE_MS + 2, told("a", RunState.RUNNING))])
    assert found.holder is not None
    assert found.holder.run == "b"
    within = known([(0, told("a", RunState.RUNNING)), (LEASE_MS, told("b", RunState.STARTING))])
    assert within.holder is not None
    assert within.holder.run == "a"


@pytest.mark.parametrize("end", sorted(ENDED - {RunState.REFUSED}))
def test_of_runs_whose_ends_alone_survived_compaction_the_last_counts(end: RunState) -> None:
    found = known([(0, told("a", RunState.STOPPED)), (1, told("b", RunState.DONE)), (LEASE_MS, told("c", end))])
    assert found.holder is not None
    assert (found.holder.run, found.holder.state, found.seen_ms) == ("c", end, LEASE_MS)
    lost = known([(0, told("a", RunState.RUNNING)), (LEASE_MS + 1, told("b", end))])
    assert lost.holder is not None
    assert lost.holder.run == "b"
    alive = known([(0, told("a", RunState.RUNNING)), (LEASE_MS, told("b", end))])
    assert alive.holder is not None
    assert alive.holder.run == "a"


def test_a_refused_claim_never_becomes_one_later() -> None:
    records = [(0, told("a", RunState.RUNNING)), (1, told("b", RunState.STARTING)), (2, told("a", RunState.DONE))]
    found = known([*records, (3, told("b", RunState.RUNNING)), (4, told("b", RunState.REFUSED))])
    assert found.holder is not None
    assert (found.holder.run, found.holder.state) == ("a", RunState.DONE)


def test_stops_and_batches_are_kept_by_run_and_number() -> None:
    batches = [(n, batch_message("p", "a", {"batch": n})[1]) for n in range(BATCHES_KEPT + 5)]
    found = known([(0, told("a", RunState.RUNNING)), *batches, (9, stop_message("p", "a")[1])])
    assert found.stops == {"a"}
    assert len(found.batches) == BATCHES_KEPT
    assert found.last_batch() == {"kind": "batch", "pipeline": "p", "run": "a", "batch": BATCHES_KEPT + 4}
    assert batch_message("p", "a", {"batch": BATCHES_KEPT})[0] == batch_message("p", "b", {"batch": 0})[0]


def test_after_a_rewind_the_batches_before_it_are_not_the_newest() -> None:
    before = [batch_message("p", "a", {"batch": n, "ends": "old"})[1] for n in range(10)]
    after = [batch_message("p", "b", {"batch": n, "ends": "new"})[1] for n in range(2)]
    found = known([(0, told("a", RunState.RUNNING)), *((1, each) for each in before), *((2, each) for each in after)])
    assert [(n, batch["ends"]) for n, batch in found.batches.items()] == [(0, "new"), (1, "new")]
    last = found.last_batch()
    assert last is not None
    assert last["batch"] == 1


def test_foreign_records_are_passed_over() -> None:
    ledger = Ledger()
    for value in (None, b"", b"nothing", b"[]", b"{}", json.dumps({"kind": "run", "pipeline": "p"}).encode()):
        ledger.apply(0, value)
    assert ledger.pipelines.get("p", Known()).holder is None


RUNS = st.lists(st.tuples(st.integers(0, LEASE_MS * 2), st.sampled_from("abc"), st.sampled_from(list(RunState))))


@given(RUNS)
def test_a_claim_is_taken_only_when_it_is_free(events: list[tuple[int, str, RunState]]) -> None:
    ledger, now = Ledger(), 0
    for gap, run, state in events:
        now += gap
        before = ledger.pipelines.get("p", Known())
        holder, alive = before.holder, before.is_alive(now)
        ledger.apply(now, told(run, state))
        after = ledger.pipelines["p"].holder
        if holder is not None and alive:
            assert after is not None
            assert after.run == holder.run


def test_prometheus_text_has_what_was_reported() -> None:
    report = {
        "batch": 7,
        "seconds": 0.5,
        "rows_per_second": 20.0,
        "state_rows": 3,
        "rows": dict.fromkeys(("read", "written", "late", "bad", "dead", "quarantined", "drifted"), 10),
        "times_ms": {"plan": 10, "read": 20, "process": 400, "commit": 70},
        "lag": {"partitions": [{"topic": 'a"b', "partition": 1, "records": 4, "seconds": None}]},
    }
    found = known([(0, told("a", RunState.RUNNING)), (1, batch_message("p", "a", report)[1])])
    text = prometheus_text({"p": found}, now_ms=2)
    assert 'headrace_pipeline_up{pipeline="p"} 1' in text
    assert 'headrace_pipeline_batch_rows{pipeline="p",kind="late"} 10' in text
    assert 'headrace_pipeline_batch_part_seconds{pipeline="p",part="process"} 0.4' in text
    assert 'headrace_pipeline_lag_records{pipeline="p",topic="a\\"b",partition="1"} 4' in text
    assert "headrace_pipeline_lag_seconds{" not in text
