"""The sink with its failpoints: the same writers, which look at the plans on their way."""

from collections.abc import Iterator, MutableMapping
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter
from pyspark.sql.types import StructType

from headrace.spark.sink.identity import BATCH_ID
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.reports import TaskReport
from headrace.spark.sink.writers import Messages, TopicStreamWriter, topic_stream_writer
from tests.spark.kills.points import Points, in_task

POINTS_OPTION = "points"


class FailingStreamWriter(TopicStreamWriter):
    def __init__(self, options: SinkOptions, folder: str) -> None:
        super().__init__(options)
        self._points = Points(folder)

    def write(self, iterator: Iterator[Any]) -> TaskReport:
        task = TaskContext.get()
        assert task is not None
        with in_task(self._points, int(task.getLocalProperty(BATCH_ID) or -1)):
            return super().write(iterator)

    def commit(self, messages: Messages, batchId: int) -> None:
        self._points.arm_markers(batchId)
        self._points.reach("before commit", batchId)
        super().commit(messages, batchId)
        if self._points.reach("after commit", batchId):
            super().commit(messages, batchId)  # as a client does that was not answered


class FailingSource(DataSource):
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._folder = options[POINTS_OPTION]
        self._given = {name: value for name, value in options.items() if name != POINTS_OPTION}

    @classmethod
    def name(cls) -> str:
        return "headrace-failing"

    def schema(self) -> str:
        return "key STRING, value STRING"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return FailingStreamWriter(topic_stream_writer(self._given, schema)._options, self._folder)
