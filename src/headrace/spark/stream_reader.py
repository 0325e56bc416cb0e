"""A stream of micro-batches: the end of the next one, its limits, and records lost before it.

One process per query does the planning, beside the driver. Spark requests the initial offset more than once and keeps
no result, so it is a constant; the first `latestOffset` determines the starts and writes them into the end of the first
batch, where a replay finds them again (see offset_vectors.py).
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from headrace.spark.offset_vectors import CheckpointOffsetError, from_json, initial_offset, is_initial
from headrace.spark.option_names import OptionError
from headrace.spark.range_planner import ranges_between, split_ranges
from headrace.spark.range_reader import RangePartition, read_range
from headrace.spark.source_options import SourceOptions
from headrace.spark.stream_planner import StreamPlanner

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, schema: "StructType") -> None:
        self._options = options
        self._schema = schema
        self._planner: StreamPlanner | None = None
        """Created by the first call that plans; executors get this object without one."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_planner": None}

    def initialOffset(self) -> dict[str, Any]:
        return initial_offset()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return no limit: Spark supports one limit at a time; the planner knows all of them, and drops them when Spark
        wants everything.
        """
        options = self._options
        if options.offsets_max is not None:
            return ReadMaxRows(options.offsets_max)
        if options.bytes_max is not None:
            return ReadMaxBytes(options.bytes_max)
        if options.offsets_min is not None:
            return ReadMinRows(options.offsets_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._planning().fix_ends()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return self._planning().next_offset(start, is_limited=not isinstance(limit, ReadAllAvailable))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._planning().newest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan from the two offsets and the options alone, so that a replay reads the same or reports what it
        cannot.
        """
        if start == end or is_initial(end):
            return []
        after = from_json(end)
        starts = {**({} if is_initial(start) else from_json(start).ends), **after.starts}
        unknown = sorted(each for each in after.ends if each not in starts)
        if unknown:
            raise CheckpointOffsetError(
                f"the checkpoint does not contain the start of {', '.join(map(str, unknown))}: its first "
                "batch was planned by Spark's Kafka connector and never finished; finish it there, or use a "
                "new checkpoint"
            )
        gone = self._planning().lost_topics(end)
        ranges = [each for each in ranges_between(starts, after.ends) if each.partition.topic not in gone]
        pieces = split_ranges(
            ranges,
            partitions_min=self._options.partitions_min,
            records_max=self._options.partition_records_max,
        )
        return [RangePartition(each, after.topic_ids.get(each.partition.topic, "")) for each in pieces]

    def read(self, partition: InputPartition) -> "Iterator[pyarrow.RecordBatch]":
        if not isinstance(partition, RangePartition):
            return iter(())  # Spark adds a partition of its own if there are none.
        return read_range(partition, self._options, self._schema)

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()

    def _planning(self) -> StreamPlanner:
        if self._planner is None:
            self._planner = StreamPlanner(self._options)
        return self._planner


class RefusingReader(DataSourceStreamReader):
    """Stands for a stream that cannot be read, and raises the reason at every call."""

    def __init__(self, error: OptionError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, Any]:
        raise self._error

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        raise self._error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        raise self._error

    def read(self, partition: InputPartition) -> "Iterator[pyarrow.RecordBatch]":
        raise self._error
