"""A batch read: the ranges are fixed when it is planned, and executors read them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from headrace.spark.bounds import resolve
from headrace.spark.option_names import OptionError
from headrace.spark.planning import OffsetRange, ranges_between, split_ranges
from headrace.spark.range_reader import RangePartition, read_range
from headrace.spark.source_options import Bound, SourceOptions, latest_is_not_a_start
from headrace.spark.topic_view import TopicView, require_topics

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType

EARLIEST_BOUND = Bound(option="startingOffsets", place="earliest")
LATEST_BOUND = Bound(option="endingOffsets", place="latest")


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: "StructType") -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        view = TopicView(options)
        try:
            ranges = self._ranges(view)
        finally:
            view.close()
        pieces = split_ranges(ranges, partitions_min=options.partitions_min, records_max=options.partition_records_max)
        return [RangePartition(each) for each in pieces]

    def read(self, partition: InputPartition) -> "Iterator[pyarrow.RecordBatch]":
        if not isinstance(partition, RangePartition):
            return iter(())  # Spark makes one of its own where there are none.
        return read_range(partition, self._options, self._schema)

    def _ranges(self, view: TopicView) -> list[OffsetRange]:
        options = self._options
        seen = view.topics()
        require_topics(seen, options.selection)
        starts = resolve(options.starting or EARLIEST_BOUND, seen.partitions, view)
        ends = resolve(options.ending or LATEST_BOUND, seen.partitions, view)
        behind = next((each for each in sorted(ends) if starts[each] > ends[each]), None)
        if behind is not None and (options.starting or options.ending) is not None:
            raise OptionError(
                f'options "{(options.starting or EARLIEST_BOUND).option}" and '
                f'"{(options.ending or LATEST_BOUND).option}" contradict each other: {behind} would be read from '
                f"offset {starts[behind]} to {ends[behind]}"
            )
        return ranges_between(starts, ends)


def batch_reader(options: SourceOptions, schema: "StructType") -> BatchReader:
    latest_is_not_a_start(options.starting)
    return BatchReader(options, schema)
