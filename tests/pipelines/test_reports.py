"""What is read off Spark's answers: progress, plans, and why a query ended."""

import pytest

from headrace.spark.pipelines.failures import failure_of, is_stop
from headrace.spark.pipelines.plans import stateful_operators
from headrace.spark.pipelines.progress import batch_report, totals

PROGRESS = {
    "id": "q",
    "runId": "r",
    "batchId": 4,
    "timestamp": "2026-05-31T12:00:00.250Z",
    "durationMs": {
        "addBatch": 800,
        "commitOffsets": 30,
        "getBatch": 1,
        "latestOffset": 9,
        "queryPlanning": 20,
        "triggerExecution": 1000,
        "walCommit": 40,
    },
    "eventTime": {"watermark": "2026-05-31T11:00:00.000Z"},
    "stateOperators": [{"numRowsTotal": 5}, {"numRowsTotal": 6}],
    "sources": [
        {"endOffset": {"orders": {"0": 10, "1": 20}, "hr:ids": {"orders": "x"}}},
        {"endOffset": {"orders": {"0": 10, "1": 20}}},
        {"endOffset": None},
    ],
    "observedMetrics": {
        "headrace_input_a": {"read": 100, "bad": 3, "late": 2, "failed_0": 7},
        "headrace_input_b": {"read": 50, "bad": 1},
        "headrace_output": {"written": 140, "quarantined": 1, "failed_1": 8},
        "headrace_rejected_0": {"dead": 4, "quarantined": 2},
        "mine": {"read": 1_000_000},
    },
}


def test_a_report_adds_up_what_the_parts_of_a_query_count() -> None:
    report = batch_report(PROGRESS, {"failed_0": "first", "failed_1": "second"})
    assert report["rows"] == {
        "read": 150, "written": 140, "late": 2, "bad": 4, "dead": 4, "quarantined": 3, "drifted": 0,
    }  # fmt: skip
    assert report["failed_expectations"] == {"first": 7, "second": 8}
    assert report["times_ms"] == {"plan": 60, "read": 10, "process": 800, "commit": 30}
    assert (report["seconds"], report["rows_per_second"], report["state_rows"]) == (1.0, 150.0, 11)
    assert report["began_ms"] == 1780228800250
    assert report["ends"] == {"orders": {"0": 10, "1": 20}}
    assert totals([report, report])["read"] == 300


WINDOWS = """\
Union false, false
:- Project [array(named_struct()) AS records#1]
:  +- CollectMetrics headrace_output, [count(1) AS written#2L]
:     +- Aggregate [window#3-T1000ms, country#4], [count(1) AS n#5L]
:        +- SubqueryAlias input
:           +- StreamingRelationV2 org.apache, headrace, [value#6]
+- Filter isnotnull(__error#7)
   +- StreamingRelationV2 org.apache, headrace, [value#6]
"""
JOIN = """\
Project [id#1]
+- Join Inner, (id#1 = id#2)
   :- SubqueryAlias a
   :  +- {left} headrace
   +- SubqueryAlias b
      +- Aggregate [key#3], [max_by(x#4, y#5)]
         +- {right} headrace
"""


def test_operators_with_state_are_those_above_streams() -> None:
    assert stateful_operators(WINDOWS) == ("Aggregate",)
    assert stateful_operators("Project [a]\n+- StreamingRelationV2 x\n") == ()
    assert stateful_operators(JOIN.format(left="StreamingRelationV2", right="RelationV2")) == ()
    streams = JOIN.format(left="StreamingRelationV2", right="StreamingRelationV2")
    assert stateful_operators(streams) == ("Join", "Aggregate")
    assert stateful_operators("DeduplicateWithinWatermark [id]\n+- ~StreamingRelationV2 x\n") == (
        "DeduplicateWithinWatermark",
    )


FAILURES = [
    (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted: [USER_RAISED_EXCEPTION] bad record in "
        'topic "orders" partition 0 offset 7: the value is null SQLSTATE: P0001\n\tat org.apache.spark',
        'bad record in topic "orders" partition 0 offset 7: the value is null',
        True,
    ),
    (
        'x\n[USER_RAISED_EXCEPTION] expectation "paid" does not hold for a row: amount > 0 SQLSTATE: P0001',
        'expectation "paid" does not hold for a row: amount > 0',
        True,
    ),
    (
        "[STREAM_FAILED] Query [1] terminated with exception: no route to host\n=== Streaming Query ===\nPlan:\n"
        'Filter raise_error(USER_RAISED_EXCEPTION, concat(bad record in topic ", topic#1))',
        "no route to host",
        False,
    ),
    (
        "[STREAM_FAILED] Query [1] terminated with exception: Job aborted:\nTraceback (most recent call last):\n"
        "OSError: the service is away\n\n\tat org.apache\n=== Streaming Query ===\nIdentifier: p-1 [id = 1]\n",
        "OSError: the service is away",
        False,
    ),
    ("java.io.IOException: No space left on device", "the disk is full: free some space, then run it again", True),
    (
        "Traceback (most recent call):\n  File x\nheadrace.client.errors.BrokerUnreachable: cannot reach it\n\tat y",
        "BrokerUnreachable: cannot reach it",
        False,
    ),
    (
        "[STREAM_FAILED] Query [1] terminated with exception: [SOME_CLASS] the table is gone SQLSTATE: 42P01\nmore",
        "the table is gone",
        False,
    ),
]


@pytest.mark.parametrize(("message", "said", "final"), FAILURES)
def test_the_line_that_matters_is_found(message: str, said: str, final: bool) -> None:
    failure = failure_of(message)
    assert failure.said.startswith(said)
    assert failure.is_final is final
    assert not is_stop(message)
    assert is_stop("headrace.spark.pipelines.writing.StoppedAtBoundary\n")
