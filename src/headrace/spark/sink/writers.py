"""Spark's writers of topics: made on the driver, pickled to the tasks, and called on the driver to commit."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headrace.spark.option_names import OptionError
from headrace.spark.sink.commits import abort, commit
from headrace.spark.sink.identity import task_identity
from headrace.spark.sink.options import LANES, SinkOptions, parse_sink_options
from headrace.spark.sink.reports import TaskReport
from headrace.spark.sink.schemas import check_schema

Messages = Sequence[WriterCommitMessage | None]


def topic_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> "TopicWriter":
    """Return the writer for `df.write.format("headrace")`."""
    if overwrite:
        raise OptionError('a topic cannot be overwritten: use mode("append")')
    return TopicWriter(_checked(options, schema))


def topic_stream_writer(options: Mapping[str, str], schema: StructType) -> "TopicStreamWriter":
    """Return the writer for `df.writeStream.format("headrace")`; outputMode("complete") appends its rows as well."""
    return TopicStreamWriter(_checked(options, schema))


def _checked(options: Mapping[str, str], schema: StructType) -> SinkOptions:
    checked = parse_sink_options(options)
    check_schema(schema, has_topic=checked.topic is not None, has_lanes=checked.delivery == LANES)
    return checked


def _write(iterator: Iterator[Any], options: SinkOptions, write_id: str) -> TaskReport:
    """Write the rows of a task. Only tasks import the encoder: the driver makes this writer and commits."""
    from headrace.spark.sink.tasks import write_rows

    return write_rows(iterator, options, task_identity(options, write_id=write_id))


def _reports(messages: Messages) -> list[TaskReport]:
    return [message for message in messages if isinstance(message, TaskReport)]


class TopicWriter(DataSourceArrowWriter):
    """One write of a batch job, or of a function given to foreachBatch."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._write_id = uuid.uuid4().hex

    def write(self, iterator: Iterator[Any]) -> TaskReport:
        return _write(iterator, self._options, self._write_id)

    def commit(self, messages: Messages) -> None:
        commit(self._options, _reports(messages))

    def abort(self, messages: Messages) -> None:
        abort(self._options, _reports(messages))


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """One micro-batch of a query. Spark makes a new instance for the tasks and for the commit of each."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._write_id = uuid.uuid4().hex

    def write(self, iterator: Iterator[Any]) -> TaskReport:
        return _write(iterator, self._options, self._write_id)

    def commit(self, messages: Messages, batchId: int) -> None:
        commit(self._options, _reports(messages))

    def abort(self, messages: Messages, batchId: int) -> None:
        abort(self._options, _reports(messages))
