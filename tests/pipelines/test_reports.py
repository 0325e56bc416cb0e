"""Facts read from Spark's answers: progress, plans, and why a query ended."""

from pathlib import Path

import pytest

from headrace.spark.pipelines.definition import Pipeline
from headrace.spark.pipelines.definition_reader import read_pipeline
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
        {"endOffset": {"orders": {"0": 12, "1": 20}}},
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
        "Traceback (most recent call):\n  File x\nheadrace.spark.data_loss.DataLost: records are lost: t-0\n\tat y",
        "DataLost: records are lost: t-0",
        True,
    ),
    (
        "Traceback (most recent call):\n  File x\nheadrace.spark.option_names.OptionError: the column `n` is int\n",
        "OptionError: the column `n` is int",
        True,
    ),
    (
        "[STREAM_FAILED] Query [1] terminated with exception: [CAST_INVALID_INPUT] no number SQLSTATE: 22018\nmore",
        "no number",
        True,
    ),
    (
        "[STREAM_FAILED] Query [1] terminated with exception: [UNRESOLVED_COLUMN] no column SQLSTATE: 42703\nmore",
        "no column",
        True,
    ),
    (
        "[STREAM_FAILED] Query [1] terminated with exception: [SOME_CLASS] the table is gone SQLSTATE: 42P01\nmore",
        "the table is gone",
        False,
    ),
]


PIPELINE = """\
name: n
source: {topic: a, format: string}
transform:
  sql: |

    SELECT value,
      cast(value AS INT) AS n
    FROM input
sinks:
  - topic_from: "CASE WHEN n > 1 THEN 'b' END"
    topics: [b]
    key: |
      1 / n
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    (tmp_path / "pipeline.yml").write_text(PIPELINE)
    return read_pipeline(tmp_path)


@pytest.mark.parametrize(("message", "said", "final"), FAILURES)
def test_the_line_that_matters_is_found(pipeline: Pipeline, message: str, said: str, final: bool) -> None:
    failure = failure_of(message, pipeline)
    assert failure.said.startswith(said)
    assert failure.is_final is final
    assert not is_stop(message)
    assert is_stop("headrace.spark.pipelines.micro_batch_writer.StoppedAtBoundary\n")


SPARKS_ERROR = (
    'Traceback (most recent call last):\n  File "/somewhere/pyspark/sql/utils.py", line 166, in call\n    raise e\n'
    "pyspark.errors.exceptions.captured.NumberFormatException: [CAST_INVALID] it cannot be cast. SQLSTATE: 22018\n"
    "== SQL (line {line}, position 3) ==\n{shown}\n^^^^\n\n\n=== Streaming Query ===\nIdentifier: n-1\n"
)
PYTHON_ERROR = (
    'Traceback (most recent call last):\n  File "/somewhere/pyspark/sql/utils.py", line 166, in call\n    raise e\n'
    "pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:\n"
    'Traceback (most recent call last):\n  File "{folder}/code.py", line 6, in f\n    return int(n)\n'
    '  File "/somewhere/decimal.py", line 1, in g\nValueError: no number\n\n=== Streaming Query ===\n'
)
NO_TOPIC = "Traceback (most recent call last):\nheadrace.spark.sink.rows.RowError: a row has no topic: set the option\n"


@pytest.mark.parametrize(
    ("message", "file", "line", "said"),
    [
        (SPARKS_ERROR.format(line=2, shown="  cast(value AS INT) AS n"), "pipeline.yml", 7, "transform.sql: it cannot"),
        (SPARKS_ERROR.format(line=1, shown="1 / n"), "pipeline.yml", 13, "sinks[0].key: it cannot be cast."),
        (PYTHON_ERROR, "code.py", 6, "ValueError: no number"),
        (NO_TOPIC, "pipeline.yml", 10, "sinks[0].topic_from: RowError: a row has no topic"),
    ],
)
def test_what_fails_on_a_row_is_reported_by_its_place_in_the_files(
    pipeline: Pipeline, message: str, file: str, line: int, said: str
) -> None:
    failure = failure_of(message.replace("{folder}", str(pipeline.folder)), pipeline)
    assert failure.said.startswith(f"{pipeline.folder / file}:{line}: {said}"), failure.said


def test_what_is_not_of_the_users_files_has_no_place(pipeline: Pipeline) -> None:
    strange = SPARKS_ERROR.format(line=1, shown="SELECT something else")
    assert failure_of(strange, pipeline).said == "it cannot be cast."
