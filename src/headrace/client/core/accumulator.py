"""Collect records into batches: choose the partition and the batch, and limit the buffered bytes.

Every partition has a queue of batches. The youngest batch is filled until it is full or its linger time has passed;
this module does not decide when it is sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headrace.client.core.cluster import Cluster
from headrace.client.core.partitioners import Choose, partition_for_key
from headrace.client.core.produced_batches import PartitionQueue, PreEncodedBatch, ProducedBatch, record_bytes_bound
from headrace.client.errors import BufferFull, InvalidArgument
from headrace.model.ids import TopicPartition
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import HEADER_SIZE

ACKS_ALL = -1
NOW, NEVER = 0.0, float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    acks: int = ACKS_ALL
    idempotent: bool = True
    compression: Compression = Compression.NONE
    linger_ms: float = 5
    batch_bytes_max: int = 16 * 1024
    request_bytes_max: int = 1024 * 1024
    buffer_bytes_max: int = 32 * 1024 * 1024
    requests_in_flight_max: int = 5
    """Requests per broker, and batches per partition; an idempotent producer may have five (KIP-98)."""

    request_timeout_ms: int = 30_000
    delivery_timeout_ms: float = 120_000
    retry_pause_ms: float = 100


class Appended(NamedTuple):
    batch: ProducedBatch
    place: int
    due_ms: float
    """When `poll` has something to do for the batch: NOW if it is full, a time if it is new, or never."""


class Accumulator:
    """`choose` returns a number below its argument; it spreads records without a key over the partitions."""

    def __init__(
        self,
        settings: ProducerSettings,
        cluster: Cluster,
        choose: Callable[[int], int],
        *,
        partitioner: Choose | None = None,
    ) -> None:
        """`partitioner` is called for every record without a partition; None: by the key, or in sticky batches."""
        self.lines: dict[TopicPartition, PartitionQueue] = {}
        self.buffered_bytes = 0
        self._settings = settings
        self._cluster = cluster
        self._choose = choose
        self._partitioner = partitioner
        self._sticky: dict[str, int] = {}
        self._filling: dict[str, ProducedBatch] = {}
        """The batch of each topic that takes records without a key."""
        self._next_number = 0

    def append(
        self,
        topic: str,
        partition: int | None,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        now_ms: float,
    ) -> Appended | None:
        """Append the record; return its batch and its index there, or None if the topic is not known yet (it is
        requested).
        """
        try:
            size = record_bytes_bound(key, value, headers)
        except (TypeError, ValueError):
            raise InvalidArgument(f"headers are pairs of a string and bytes or None, not {headers!r}") from None
        settings = self._settings
        if key is None and partition is None:
            # The common case: another record without a key for the batch that is being filled.
            filling = self._filling.get(topic)
            if filling is not None and not filling.is_full and self.buffered_bytes + size <= settings.buffer_bytes_max:
                builder = filling.builder
                if builder.plain_bytes + size <= settings.batch_bytes_max:
                    return self._add(filling, size, timestamp, key, value, headers, NEVER)
        count = self._admit(topic, size)
        if not count:
            return None
        is_sticky = partition is None and key is None and self._partitioner is None
        if partition is None:
            partition = self._choose_partition(topic, key, count, size)
        place, line = self._line(topic, partition, count)
        batch = line.waiting[-1] if line.waiting else None
        due_ms = NEVER
        if batch is None or not batch.has_room(size, settings.batch_bytes_max):
            if batch is not None:
                batch.is_full = True
            batch = self._new_batch(place, now_ms)
            line.waiting.append(batch)
            due_ms = batch.ready_ms
        if is_sticky:
            self._filling[topic] = batch
        return self._add(batch, size, timestamp, key, value, headers, due_ms)

    def append_batch(self, topic: str, partition: int, given: bytearray, count: int, now_ms: float) -> Appended | None:
        """Append a finished batch of `count` records, which is not checked or copied here; otherwise as `append`."""
        partitions_count = self._admit(topic, len(given))
        if not partitions_count:
            return None
        place, line = self._line(topic, partition, partitions_count)
        self._next_number += 1
        batch = PreEncodedBatch(
            place,
            self._next_number,
            given,
            count=count,
            now_ms=now_ms,
            deadline_ms=now_ms + self._settings.delivery_timeout_ms,
        )
        if line.waiting:
            line.waiting[-1].is_full = True
        line.waiting.append(batch)
        self.buffered_bytes += len(given) - HEADER_SIZE
        return Appended(batch, 0, NOW)

    def _admit(self, topic: str, size: int) -> int | None:
        """Return the number of partitions of the topic, if known; raises if that many bytes cannot be accepted."""
        settings = self._settings
        if size > settings.request_bytes_max:
            raise InvalidArgument(
                f"a record of about {size} bytes is larger than "
                f"max_request_size={settings.request_bytes_max}: send it in parts, or raise this limit and "
                "max.message.bytes of the topic"
            )
        count = self._cluster.partition_count(topic)
        if not count:
            if not isinstance(topic, str) or not topic:
                raise InvalidArgument(f"a topic has a name, which is text, not {topic!r}")
            self._cluster.want((topic,))
            return None
        if self.buffered_bytes + size > settings.buffer_bytes_max:
            raise BufferFull(f"{self.buffered_bytes} bytes wait to be sent, buffer_memory={settings.buffer_bytes_max}")
        return count

    def _line(self, topic: str, partition: int, count: int) -> tuple[TopicPartition, PartitionQueue]:
        if not isinstance(partition, int) or not 0 <= partition < count:
            raise InvalidArgument(f"topic {topic!r} has partitions 0 to {count - 1}, not {partition!r}")
        place = TopicPartition(topic, partition)
        line = self.lines.get(place)
        if line is None:
            line = self.lines[place] = PartitionQueue()
        return place, line

    def _add(
        self,
        batch: ProducedBatch,
        size: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        due_ms: float,
    ) -> Appended:
        builder = batch.builder
        before = builder.plain_bytes
        builder.append(timestamp, key, value, headers)
        after = builder.plain_bytes
        self.buffered_bytes += after - before
        if after + size > self._settings.batch_bytes_max:
            # The next record of this size would not fit, so there is nothing to wait for.
            batch.is_full = True
            due_ms = NOW
        return tuple.__new__(Appended, (batch, builder.count - 1, due_ms))

    def _new_batch(self, place: TopicPartition, now_ms: float) -> ProducedBatch:
        self._next_number += 1
        return ProducedBatch(
            place,
            self._next_number,
            ready_ms=now_ms + self._settings.linger_ms,
            deadline_ms=now_ms + self._settings.delivery_timeout_ms,
        )

    def _choose_partition(self, topic: str, key: bytes | None, count: int, size: int) -> int:
        if self._partitioner is not None:
            chosen = self._partitioner(topic, key, count)
            if not isinstance(chosen, int):
                raise InvalidArgument(f"the partitioner returned {chosen!r} for topic {topic!r}, which is not a number")
            return chosen
        return self._sticky_partition(topic, count, size) if key is None else partition_for_key(key, count)

    def _sticky_partition(self, topic: str, count: int, size: int) -> int:
        """Return the partition whose batch is being filled; another one when that batch is gone (KIP-480)."""
        current = self._sticky.get(topic)
        if current is not None and current < count:
            line = self.lines.get(TopicPartition(topic, current))
            if line and line.waiting and line.waiting[-1].has_room(size, self._settings.batch_bytes_max):
                return current
        chosen = self._choose(count - 1) if current is not None and count > 1 else self._choose(count)
        if current is not None and count > 1 and chosen >= current:
            chosen += 1
        self._sticky[topic] = chosen
        return chosen

    def fill(self) -> None:
        """Stop lingering: every batch is sent as soon as possible."""
        for line in self.lines.values():
            if line.waiting:
                line.waiting[-1].is_full = True

    def release(self, batch: ProducedBatch) -> None:
        """Free the buffer space of a batch."""
        self.buffered_bytes -= batch.builder.plain_bytes - HEADER_SIZE
