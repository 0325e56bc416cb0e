"""Batches that wait for or are in flight to a broker, and the queue of each partition."""

import math
from collections import deque
from collections.abc import Callable, Sequence

from headrace.client.errors import ClientError
from headrace.model.ids import TopicPartition
from headrace.wire.records.builder import BatchBuilder
from headrace.wire.records.header import stamp_producer

RECORD_OVERHEAD_BYTES_MAX = 36
"""The lengths, deltas and counts of one record at their largest."""

HEADER_OVERHEAD_BYTES_MAX = 10
SEQUENCE_MASK = 0x7FFFFFFF
"""Sequence numbers wrap to zero after the largest 32-bit number."""


def record_bytes_bound(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> int:
    """Return an upper bound of the bytes that the record adds to a batch; TypeError or ValueError for invalid
    headers.
    """
    size = RECORD_OVERHEAD_BYTES_MAX + (len(key) if key else 0) + (len(value) if value else 0)
    if not headers:
        return size
    for name, content in headers:
        if not isinstance(name, str) or not isinstance(content, bytes | None):
            raise TypeError("a header is a string and bytes")
        size += HEADER_OVERHEAD_BYTES_MAX + 4 * len(name) + (len(content) if content else 0)
    return size


class ProducedBatch:
    """Records of one partition that are sent together; their deliveries read the result from it."""

    __slots__ = (
        "base_offset",
        "builder",
        "callbacks",
        "deadline_ms",
        "encoded",
        "error",
        "is_done",
        "is_full",
        "is_told",
        "is_uncertain",
        "last_error",
        "log_append_time_ms",
        "node",
        "number",
        "partition",
        "producer_id",
        "ready_ms",
        "redirected_ms",
        "sequence",
    )

    def __init__(self, partition: TopicPartition, number: int, *, ready_ms: float, deadline_ms: float) -> None:
        self.partition = partition
        self.number = number
        """Grows with every batch of the producer, so it defines their order."""
        self.builder = BatchBuilder()
        self.is_full = False
        """No more records are added; it is sent as soon as possible."""
        self.ready_ms = ready_ms
        """When it is sent even if it is not full, or retried."""
        self.deadline_ms = deadline_ms
        self.encoded: bytearray | None = None
        self.producer_id = -1
        self.sequence = -1
        self.node = -1
        """The broker that it was last sent to."""
        self.is_uncertain = False
        """It was sent, and it is unknown whether it was written."""
        self.last_error: ClientError | None = None
        self.redirected_ms = -math.inf
        """When a broker last named another leader."""
        self.is_done = False
        self.error: ClientError | None = None
        self.is_told = False
        """The application has read the error."""
        self.base_offset = -1
        self.log_append_time_ms = -1
        self.callbacks: list[Callable[[], None]] | None = None
        """Called once by the front when the batch is done."""

    def has_room(self, size: int, batch_bytes_max: int) -> bool:
        return not self.is_full and self.builder.plain_bytes + size <= batch_bytes_max

    def encode(
        self, *, compression: int, producer_id: int, producer_epoch: int, sequence: int, transactional: bool = False
    ) -> None:
        """Encode once: a retry sends the same bytes, so that the broker recognises them."""
        self.is_full = True
        self.producer_id = producer_id
        self.sequence = sequence
        self.encoded = self.builder.build(
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
        )

    def forget_identity(self) -> None:
        self.encoded = None
        self.producer_id = -1
        self.sequence = -1


class PreEncodedBatch(ProducedBatch):
    """A batch that was already encoded by the application: it only gets an identity, and its builder only counts."""

    __slots__ = ("_given",)

    def __init__(
        self, partition: TopicPartition, number: int, given: bytearray, *, count: int, now_ms: float, deadline_ms: float
    ) -> None:
        super().__init__(partition, number, ready_ms=now_ms, deadline_ms=deadline_ms)
        self.builder.count = count
        self.builder.plain_bytes = len(given)
        self.is_full = True
        self._given = given

    def encode(
        self, *, compression: int, producer_id: int, producer_epoch: int, sequence: int, transactional: bool = False
    ) -> None:
        """Write this identity into the header of the given bytes; the records stay compressed as they are."""
        self.producer_id = producer_id
        self.sequence = sequence
        stamp_producer(
            self._given,
            producer_id=producer_id,
            producer_epoch=producer_epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
        )
        self.encoded = self._given


class PartitionQueue:
    """The batches of one partition: those that wait, oldest first, and those in flight."""

    __slots__ = ("in_flight", "next_sequence", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[ProducedBatch] = deque()
        self.in_flight: list[ProducedBatch] = []
        self.next_sequence = 0

    def take_sequence(self, count: int) -> int:
        sequence = self.next_sequence
        self.next_sequence = (sequence + count) & SEQUENCE_MASK
        return sequence

    def put_back(self, batch: ProducedBatch) -> None:
        """Insert the batch at its old position, before every younger batch."""
        place = sum(1 for other in self.waiting if other.number < batch.number)
        self.waiting.insert(place, batch)

    def is_sent_elsewhere(self, node: int) -> bool:
        """Return whether a batch is in flight to another broker.

        A new leader that does not know the producer accepts any sequence as its first one. If it got a younger batch
        before the former leader has refused an older one, the older one could never be written.
        """
        return any(batch.node != node for batch in self.in_flight)

    def has_older(self, batch: ProducedBatch) -> bool:
        """Return whether an older batch is not complete yet."""
        return any(other.number < batch.number for other in (*self.waiting, *self.in_flight))
