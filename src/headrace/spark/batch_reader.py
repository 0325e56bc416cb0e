"""A batch read: the ranges are fixed when it is planned, and executors read them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from headrace.spark.bounds import resolve
from headrace.spark.filter_bounds import Bounds
from headrace.spark.option_names import OptionError
from headrace.spark.range_planner import OffsetRange, ranges_between, split_ranges
from headrace.spark.range_reader import RangePartition, read_range
from headrace.spark.source_options import Bound, SourceOptions, latest_is_not_a_start
from headrace.spark.topic_view import TopicsSeen, TopicView, require_topics

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType

EARLIEST_BOUND = Bound(option="startingOffsets", place="earliest")
LATEST_BOUND = Bound(option="endingOffsets", place="latest")


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: "StructType") -> None:
        self._options = options
        self._schema = schema
        self._bounds = Bounds()

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        view = TopicView(options)
        try:
            seen = view.topics()
            ranges = self._bounds.cut(self._ranges(view, seen), view)
        finally:
            view.close()
        if options.scan != "broker":
            from headrace.spark.scan_plan import plan_scan

            return plan_scan(ranges, options, seen.topic_ids)
        pieces = split_ranges(ranges, partitions_min=options.partitions_min, records_max=options.partition_records_max)
        return [RangePartition(each, seen.topic_ids.get(each.partition.topic, "")) for each in pieces]

    def read(self, partition: InputPartition) -> "Iterator[pyarrow.RecordBatch]":
        if isinstance(partition, RangePartition):
            return read_range(partition, self._options, self._schema)
        if partition.value is None:
            return iter(())  # Spark adds a partition of its own if there are none.
        from headrace.spark.scan_plan import ScanPiece
        from headrace.spark.scan_reader import read_piece

        assert isinstance(partition, ScanPiece)
        return read_piece(partition, self._options, self._schema)

    def _ranges(self, view: TopicView, seen: TopicsSeen) -> list[OffsetRange]:
        """Return the ranges between the two bounds, narrowed by the filters; every option is checked against all
        partitions.
        """
        options = self._options
        require_topics(seen, options.selection)
        starting, ending = options.starting or EARLIEST_BOUND, options.ending or LATEST_BOUND
        starts = resolve(starting, seen.partitions, view)
        ends = resolve(ending, seen.partitions, view)
        behind = next((each for each in sorted(ends) if starts[each] > ends[each]), None)
        places = {starting.place, ending.place}
        if behind is not None and ("offsets" in places or places == {"time"}):
            raise OptionError(
                f'options "{starting.option}" and "{ending.option}" contradict each other: {behind} would be '
                f"read from offset {starts[behind]} to {ends[behind]}"
            )
        chosen = self._bounds.chosen(seen.partitions)
        return ranges_between(starts, {each: ends[each] for each in chosen})


class PruningReader(BatchReader):
    """Used with `pushdown`: Spark passes the filters of the query first."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Return all filters, so that Spark applies them to the rows as well."""
        self._bounds.narrow(filters)
        return filters


def batch_reader(options: SourceOptions, schema: "StructType") -> BatchReader:
    latest_is_not_a_start(options.starting)
    return (PruningReader if options.is_pushed_down else BatchReader)(options, schema)
