"""The partitions being read: their order, their errors and pending notices."""

from collections import deque
from collections.abc import Iterable, Iterator

from headrace.client.core.admin.routing import LEADER_ERRORS
from headrace.client.core.cluster import Cluster
from headrace.client.core.partition_reader import PartitionReading
from headrace.client.errors import BrokerError, ClientError
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.model.ids import TopicPartition

ERRORS_MAX = 100
"""Errors that wait for the application; more are not kept."""


class Readings(dict[TopicPartition, PartitionReading]):
    """Ordered by the next fetch: partitions that got records move to the end."""

    def __init__(self, cluster: Cluster, *, reset_to: int | None, retry_pause_ms: float) -> None:
        super().__init__()
        self.errors: deque[ClientError] = deque()
        self.retry_pause_ms = retry_pause_ms
        self._cluster = cluster
        self._reset_to = reset_to

    def tell(self, error: ClientError) -> None:
        """Keep an error that the application must get before more records."""
        if len(self.errors) < ERRORS_MAX:
            self.errors.append(error)

    def ask(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        asked: dict[TopicPartition, int] = {}
        for partition in partitions:
            reading = self[partition]
            reading.is_asking = True
            asked[partition] = reading.generation
        return asked

    def answered(self, asked: dict[TopicPartition, int]) -> Iterator[tuple[TopicPartition, PartitionReading]]:
        """Yield the partitions whose position has not changed since the request."""
        for partition, generation in asked.items():
            reading = self.get(partition)
            if reading is not None and reading.generation == generation:
                reading.is_asking = False
                yield partition, reading

    def pause(self, reading: PartitionReading, now_ms: float) -> None:
        reading.resume_ms = now_ms + self.retry_pause_ms

    def handle_partition_error(
        self, partition: TopicPartition, reading: PartitionReading, code: int, now_ms: float
    ) -> None:
        """Handle an error of one partition: refresh metadata, reset the position, or report it."""
        self.pause(reading, now_ms)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and self._reset_to is not None:
            reading.move(None, self._reset_to)
        elif code in LEADER_ERRORS or code in RETRIABLE:
            self._cluster.mark_wrong()
        else:
            self.tell(BrokerError(code, f"{partition} cannot be read at offset {reading.position}"))
