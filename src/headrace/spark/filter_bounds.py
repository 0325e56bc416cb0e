"""Turn the filters of a query into bounds on partitions, offsets and start times.

Spark applies every filter again to the rows, so a bound may be wider than its filter but never narrower.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from headrace.model.ids import TopicPartition
from headrace.spark.option_values import INT64_MAX
from headrace.spark.range_planner import OffsetRange
from headrace.spark.topic_view import NO_OFFSET, TopicView

_MILLISECONDS = 1_000


@dataclass(slots=True)
class Bounds:
    """The ranges that the filters allow; None stands for everything."""

    topics: frozenset[Any] | None = None
    partitions: frozenset[Any] | None = None
    first_offset: int = 0
    end_offset: int = INT64_MAX
    time_ms_min: int | None = None

    def narrow(self, filters: Iterable[Filter]) -> None:
        for each in filters:
            if isinstance(each, EqualTo | In | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
                self._narrow(each.attribute, each)

    def _narrow(self, attribute: tuple[str, ...], filter_: Any) -> None:
        values = filter_.value if isinstance(filter_, In) else (filter_.value,)
        is_equal = isinstance(filter_, EqualTo | In)
        if attribute == ("topic",) and is_equal:
            self.topics = _both(self.topics, values)
        elif attribute == ("partition",) and is_equal:
            self.partitions = _both(self.partitions, values)
        elif attribute == ("offset",) and all(type(value) is int for value in values):
            self._narrow_offsets(filter_, values)
        elif attribute == ("timestamp",) and not isinstance(filter_, LessThan | LessThanOrEqual):
            self._narrow_times(values)

    def _narrow_offsets(self, filter_: Any, values: Sequence[int]) -> None:
        if isinstance(filter_, EqualTo | In | GreaterThanOrEqual | GreaterThan):
            least = min(values) + (1 if isinstance(filter_, GreaterThan) else 0)
            self.first_offset = max(self.first_offset, least)
        if isinstance(filter_, EqualTo | In | LessThanOrEqual | LessThan):
            end = max(values) + (0 if isinstance(filter_, LessThan) else 1)
            self.end_offset = min(self.end_offset, end)

    def _narrow_times(self, values: Sequence[Any]) -> None:
        """Narrow only the lower bound: records are not ordered by time, so no record is known to be the last."""
        if values and all(isinstance(value, datetime) and value.tzinfo is not None for value in values):
            least = int(min(values).timestamp() * _MILLISECONDS) - 1
            self.time_ms_min = max(least, self.time_ms_min or 0)

    def chosen(self, partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        return tuple(
            each
            for each in partitions
            if (self.topics is None or each.topic in self.topics)
            and (self.partitions is None or each.partition in self.partitions)
        )

    def cut(self, ranges: Sequence[OffsetRange], view: TopicView) -> list[OffsetRange]:
        first = self._first_by_time(ranges, view)
        cut = [
            OffsetRange(
                each.partition,
                max(each.begin, self.first_offset, first.get(each.partition, 0)),
                min(each.end, self.end_offset),
            )
            for each in ranges
        ]
        return [each for each in cut if each.begin < each.end]

    def _first_by_time(self, ranges: Sequence[OffsetRange], view: TopicView) -> Mapping[TopicPartition, int]:
        if self.time_ms_min is None:
            return {}
        found = view.at({each.partition: max(0, self.time_ms_min) for each in ranges})
        return {each: INT64_MAX if offset == NO_OFFSET else offset for each, offset in found.items()}


def _both(known: frozenset[Any] | None, values: Iterable[Any]) -> frozenset[Any]:
    found = frozenset(values)
    return found if known is None else known & found
