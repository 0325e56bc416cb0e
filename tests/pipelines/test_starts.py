"""Where a pipeline begins, found out while records come."""

from collections.abc import Mapping
from typing import Any

import pytest

from headrace.client import LATEST, TopicPartition
from headrace.client.errors import BrokerError
from headrace.client.types import OffsetAt
from headrace.model.errors import ErrorCode
from headrace.spark.pipelines.rewind import vector_at

PLACE = TopicPartition("t", 0)
TIME_MS = 1_000


class BusyAdmin:
    """Of a partition with five old records; behind every answer comes a new one of the time that is asked for."""

    def __init__(self, *, end_error: ErrorCode = ErrorCode.NONE) -> None:
        self.end = self.first_new = 5
        self.end_error = end_error

    def offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAt]:
        if set(times.values()) == {LATEST}:
            at = OffsetAt(-1 if self.end_error else self.end, -1, -1, self.end_error)
        else:
            at = OffsetAt(self.first_new if self.end > self.first_new else -1, TIME_MS, -1, ErrorCode.NONE)
        if not self.end_error:
            self.end += 1
        return dict.fromkeys(times, at)


def test_what_comes_while_a_time_is_looked_up_is_not_passed_over() -> None:
    busy: Any = BusyAdmin()
    assert vector_at(busy, [PLACE], TIME_MS) == {"t": {"0": 5}}


def test_an_end_that_is_not_known_is_no_beginning() -> None:
    leaderless: Any = BusyAdmin(end_error=ErrorCode.LEADER_NOT_AVAILABLE)
    with pytest.raises(BrokerError, match="t-0"):
        vector_at(leaderless, [PLACE], TIME_MS)
