"""Look up start positions by time, and check that a new leader has the records read so far (KIP-320)."""

from functools import partial
from typing import Any

from headrace.client.core.calls import PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.core.offset_lookups import list_offsets_call, offsets_in
from headrace.client.core.partition_reader import PartitionReading
from headrace.client.core.readings import Readings
from headrace.client.core.truncations import divergence, epoch_ends_call, epoch_ends_in
from headrace.client.errors import ClientError, LogTruncated, UnsupportedByBroker
from headrace.client.types import LATEST, IsolationLevel, OffsetAt
from headrace.model.ids import TopicPartition


class Positions:
    def __init__(
        self,
        readings: Readings,
        cluster: Cluster,
        *,
        reset_to: int | None,
        isolation: IsolationLevel,
        request_timeout_ms: int,
    ) -> None:
        self._readings = readings
        self._cluster = cluster
        self._reset_to = reset_to
        self._isolation = isolation
        self._request_timeout_ms = request_timeout_ms

    def lookup(self, leader: int, times: dict[TopicPartition, int]) -> PendingCall:
        call = list_offsets_call(
            self._cluster,
            leader,
            times,
            timeout_ms=self._request_timeout_ms,
            isolation=self._isolation,
        )
        return PendingCall(call, partial(self._looked_up, self._readings.ask(times)))

    def _looked_up(self, asked: dict[TopicPartition, int], reply: Any, now_ms: float) -> None:
        found = {} if isinstance(reply, ClientError) else offsets_in(reply)
        for partition, reading in self._readings.answered(asked):
            at = found.get(partition)
            if at is None:
                self._readings.pause(reading, now_ms)
            elif at.error:
                self._readings.handle_partition_error(partition, reading, at.error, now_ms)
            else:
                self._begin(reading, at)

    def _begin(self, reading: PartitionReading, at: OffsetAt) -> None:
        start, is_found = reading.start, at.offset >= 0
        if is_found and start == LATEST and reading.since is not None:
            # Records that arrived between the two lookups lie before this end: the time is looked up again.
            reading.end, reading.start = at.offset, reading.since
        elif is_found:
            reading.position = at.offset
        elif reading.end is not None:
            reading.position = reading.end
        else:  # No record is as new as the requested time.
            reading.since, reading.start = start if start is not None and start >= 0 else None, LATEST

    def needs_check(self, partition: TopicPartition, reading: PartitionReading) -> bool:
        epoch = self._cluster.leader_epoch(partition)
        if epoch <= reading.checked_epoch:
            return False
        if reading.fetched_epoch < 0:
            reading.checked_epoch = epoch  # Nothing was read, so nothing can be missing.
            return False
        return True

    def check(self, leader: int, epochs: dict[TopicPartition, int]) -> PendingCall:
        current = {partition: self._cluster.leader_epoch(partition) for partition in epochs}
        call = epoch_ends_call(self._cluster, leader, epochs)
        return PendingCall(call, partial(self._checked, current, self._readings.ask(epochs)))

    def _checked(
        self, current: dict[TopicPartition, int], asked: dict[TopicPartition, int], reply: Any, now_ms: float
    ) -> None:
        found = {} if isinstance(reply, ClientError) else epoch_ends_in(reply)
        for partition, reading in self._readings.answered(asked):
            result = found.get(partition)
            if isinstance(reply, UnsupportedByBroker):
                reading.checked_epoch = current[partition]  # An old broker does not support this request.
            elif result is None:
                self._cluster.mark_wrong()
                self._readings.pause(reading, now_ms)
            elif result.error_code:
                self._readings.handle_partition_error(partition, reading, result.error_code, now_ms)
            else:
                end = reading.fetch_position()
                assert end is not None
                diverged_at = divergence(result, end)
                if diverged_at == end:
                    reading.checked_epoch = current[partition]
                else:
                    self._truncated(partition, reading, diverged_at, now_ms)

    def _truncated(
        self, partition: TopicPartition, reading: PartitionReading, diverged_at: int | None, now_ms: float
    ) -> None:
        """Handle a leader that has less than was read: continue at the divergence, if the application allows that."""
        assert reading.position is not None
        if diverged_at is not None and diverged_at >= reading.position:
            reading.move(reading.position, None)  # The application has none of the truncated records.
        elif self._reset_to is None:
            self._readings.pause(reading, now_ms)
            self._readings.tell(LogTruncated(partition, reading.position, diverged_at))
        elif diverged_at is not None:
            reading.move(diverged_at, None)
        else:
            reading.move(None, self._reset_to)
