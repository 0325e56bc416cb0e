"""Offsets of times, of a partition that is written to while it is asked about."""

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.model.ids import TopicPartition
from headrace.spark.bounds import resolve
from headrace.spark.source_options import Bound
from headrace.spark.topic_view import NO_OFFSET

PLACE = TopicPartition("t", 0)
TIME_MS = 1_000


class BusyView:
    """Five old records, and behind every answer a new one of the time that is asked for."""

    def __init__(self) -> None:
        self.end = self.first_new = 5

    def at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return dict.fromkeys(times, self._answered(self.first_new if self.end > self.first_new else NO_OFFSET))

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self._answered(self.end))

    def _answered(self, offset: int) -> int:
        self.end += 1
        return offset


def test_what_comes_while_a_time_is_looked_up_is_not_passed_over() -> None:
    busy: Any = BusyView()
    bound = Bound(option="startingTimestamp", place="time", time_ms=TIME_MS, else_latest=True)
    assert resolve(bound, [PLACE], busy) == {PLACE: 5}
