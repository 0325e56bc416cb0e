"""The identity that a task writes under, by what Spark tells it: in a query, a batch job, and on Spark Connect."""

from typing import Any

import pyspark
import pytest

from headrace.spark.option_names import OptionError
from headrace.spark.sink import identity
from headrace.spark.sink.identity import BATCH_ID, JOB_TAGS, QUERY_ID, RUN_ID, STREAM_SETTING, Identity, task_identity
from headrace.spark.sink.options import parse_sink_options
from headrace.spark.sink.tables.options import parse_table_options

STREAM = {QUERY_ID: "q", BATCH_ID: "7", RUN_ID: "r"}
CONNECT = {JOB_TAGS: "mine,SparkConnect_OperationTag_User__Session_1_Operation_2"}
IN_A_QUERY = {**CONNECT, STREAM_SETTING: "2"}


class Task:
    def __init__(self, told: dict[str, str]) -> None:
        self._told = told

    def getLocalProperty(self, name: str) -> str | None:
        return self._told.get(name)

    def taskAttemptId(self) -> int:
        return 5


def found(monkeypatch: pytest.MonkeyPatch, told: dict[str, str], **options: str) -> Identity | None:
    monkeypatch.setattr(identity.TaskContext, "get", lambda: Task(told))
    servers: dict[str, Any] = {"kafka.bootstrap.servers": "h:1", "topic": "t"}
    return task_identity(parse_sink_options({**servers, **options}), write_id="w")


def test_a_write_is_known_by_its_query_or_by_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, STREAM) == Identity("spark.q.sink", "r", 7, 5, "w")
    assert found(monkeypatch, {}) is None
    assert found(monkeypatch, {}, idempotenceKey="k") == Identity("spark.key.k.sink", "w", 0, 5, "w")
    named = found(monkeypatch, {}, idempotenceKey="k", idempotenceBatchId="3")
    assert named == Identity("spark.key.k.sink", "w", 3, 5, "w")


def test_a_key_without_a_batch_goes_by_the_batch_of_its_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batch 0 for every batch would drop all but the first."""
    assert found(monkeypatch, STREAM, idempotenceKey="k") == Identity("spark.key.k.sink", "w", 7, 5, "w")


@pytest.mark.parametrize("options", [{}, {"delivery": "exactly-once"}, {"idempotenceKey": "k"}])
def test_on_connect_a_write_of_a_query_is_refused_unless_it_says_what_it_is(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    with pytest.raises(OptionError, match=r"on Spark Connect .* idempotenceKey .* idempotenceBatchId .*batch id"):
        found(monkeypatch, IN_A_QUERY, **options)
    named = found(monkeypatch, IN_A_QUERY, idempotenceKey="k", idempotenceBatchId="3")
    assert named == Identity("spark.key.k.sink", "w", 3, 5, "w")
    assert found(monkeypatch, IN_A_QUERY, delivery="at-least-once") is None
    with pytest.raises(OptionError, match="on Spark Connect"):
        task_identity(parse_table_options({"path": "/x"}), write_id="w")


def test_on_connect_a_batch_job_is_recognised_where_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.3.0")
    assert found(monkeypatch, CONNECT) is None
    monkeypatch.setattr(pyspark, "__version__", "4.2.1")
    with pytest.raises(OptionError, match="on Spark Connect"):
        found(monkeypatch, CONNECT)
    assert found(monkeypatch, {**CONNECT, **STREAM}) == Identity("spark.q.sink", "r", 7, 5, "w")
