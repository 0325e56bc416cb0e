"""Histories of partitions: what clients sent, which responses they got, and what they were shown.

A batch is identified by the number in its first key, so no record is decoded: stored bytes are compared with sent
bytes. A history holds what the node has promised; a kill may take nothing of it, a power cut only what no sync had
covered.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from headrace.model.ids import TopicId
from headrace.sim.checkers.violation import Violation, require
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_OFFSET,
    CONTROL_BIT,
    CRC,
    HEADER,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LENGTH,
    LOG_OVERHEAD,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    HeaderFields,
    checksum,
)

if TYPE_CHECKING:
    from headrace.sim.checkers.transactions import TransactionHistory

NUMBER_AT = HEADER_SIZE + 5
"""Position of the number: after the one-byte length, attributes, time, offset and key length of the first record."""
NUMBER_BYTES = 8
NOT_SYNCED = -1

_OFFSET_DELTA_AT = 23
_MAX_TIMESTAMP_AT = 35
_PRODUCER_AT = 43

ONE_SEQUENCE = "one sequence per partition: an offset never changes its value"
NO_DOUBLE = "no record is there twice"
NOTHING_FOREIGN = "a reader sees only records that were sent to that partition of that topic"
SYNCED_STAYS = "synced records, and those acknowledged after a sync, survive a power cut"
WRITTEN_STAYS = "acknowledged or shown records survive the end of the process"
BELOW_HIGH_WATERMARK = "a reader never reads above the high watermark"
NO_GAP = "a reader sees whole batches without gap or damage"
KEPT = "only retention and DeleteRecords remove records"
EPOCH_GROWS = "the leader epoch grows at each start"


class SendingProducer(NamedTuple):
    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return f"producer {self.producer_id}" + (f" epoch {self.epoch}" if self.epoch else "")


NO_PRODUCER = SendingProducer(-1, -1)


class SentBatch:
    __slots__ = (
        "content",
        "count",
        "number",
        "offset",
        "partition",
        "producer",
        "sequence",
        "sync_level",
        "timestamp",
        "transaction",
        "was_stored",
    )

    def __init__(
        self,
        number: int,
        content: bytes,
        count: int,
        partition: "PartitionHistory",
        *,
        timestamp: int,
        producer: SendingProducer,
        sequence: int,
        transaction: "TransactionHistory | None" = None,
    ) -> None:
        self.number = number
        self.content = content
        self.count = count
        self.partition = partition
        self.timestamp = timestamp
        self.producer = producer
        self.sequence = sequence
        self.transaction = transaction
        self.sync_level = partition.topic.sync_level
        self.offset: int | None = None
        """The known offset."""
        self.was_stored = False

    def forget(self) -> None:
        """Forget the offset: the batch was lost legitimately, by a power cut or retention."""
        self.offset = None

    def __str__(self) -> str:
        return f"batch {self.number} of {self.producer} sequence {self.sequence} for {self.partition}"


class TopicHistory:
    """One topic from its creation to its deletion; another one of the same name has another history."""

    __slots__ = ("append_time", "certain", "keeps_all", "mortal", "name", "partitions", "sync_level", "topic_id")

    def __init__(
        self,
        name: str,
        topic_id: TopicId,
        *,
        partitions: int,
        synced: bool,
        keeps_all: bool,
        append_time: bool = False,
        mortal: bool = False,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.keeps_all = keeps_all
        self.append_time = append_time
        self.mortal = mortal
        """True if it may be deleted: clients name it by its id, because another topic could get its name."""
        self.certain = True
        """True if it exists for sure: no deletion of it is in progress."""
        self.sync_level = 1 if synced else NOT_SYNCED
        """Changes with each change of flush.messages; NOT_SYNCED unless it is surely 1."""
        self.partitions: list[PartitionHistory] = []
        self.grow(partitions)

    def grow(self, count: int) -> None:
        self.partitions += [PartitionHistory(self, index) for index in range(len(self.partitions), count)]


class PartitionHistory:
    __slots__ = (
        "durable_end",
        "entries",
        "index",
        "known_end",
        "leader_epoch",
        "losses",
        "markers",
        "power_cuts",
        "start",
        "synced_from",
        "topic",
    )

    def __init__(self, topic: TopicHistory, index: int) -> None:
        self.topic = topic
        self.index = index
        self.entries: dict[int, SentBatch] = {}
        """The batch at every promised offset."""
        self.markers: dict[int, SendingProducer] = {}
        """The producer whose transaction ends at an offset."""
        self.known_end = 0
        self.durable_end = 0
        """Everything below survives a power cut."""
        self.start = 0
        """The lowest offset that must still exist."""
        self.synced_from = 0
        """Records below existed before the topic was synced, so showing them promises nothing."""
        self.losses = 0
        """Number of power cuts that removed unsynced records."""
        self.leader_epoch = -1
        self.power_cuts = 0
        """Their number when the partition was last opened."""

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.index}"

    def place(self, batch: SentBatch, base_offset: int) -> None:
        """Note the offset of the batch, from an acknowledgement or a read."""
        if batch.partition is not self:
            raise Violation(NOTHING_FOREIGN, f"{batch} is at offset {base_offset} of {self}")
        if batch.offset != base_offset:
            if batch.offset is not None:
                raise Violation(NO_DOUBLE, f"{batch} is at offsets {batch.offset} and {base_offset}")
            batch.offset = base_offset
            batch.was_stored = True
        entries = self.entries
        if base_offset + batch.count <= self.start:
            batch.forget()  # a late response: retention has removed it since
            return
        for offset in range(base_offset, base_offset + batch.count):
            known = entries.setdefault(offset, batch)
            if known is not batch:
                raise Violation(ONE_SEQUENCE, f"offset {offset} of {self} held {known}, now {batch}")
        self.reaches(base_offset + batch.count)

    def mark(self, offset: int, producer: SendingProducer) -> None:
        """Note a marker that a read has shown."""
        if self.markers.setdefault(offset, producer) != producer or offset in self.entries:
            raise Violation(ONE_SEQUENCE, f"offset {offset} of {self} now holds a marker of {producer}")
        self.reaches(offset + 1)

    def reaches(self, offset: int) -> None:
        """Note that a client was informed that the log ends there or later."""
        self.known_end = max(self.known_end, offset)

    def promised_durable(self, end_offset: int, sync_level: int) -> None:
        """Note a promise to a client that asked at `sync_level`; it counts if the topic was synced all the time
        since.
        """
        if sync_level != NOT_SYNCED and sync_level == self.topic.sync_level and end_offset > self.synced_from:
            self.durable_end = max(self.durable_end, end_offset)

    def starts_at(self, offset: int) -> None:
        """Note that a client was informed that the log begins there."""
        if offset <= self.start:
            return
        self.reaches(offset)
        require(not self.topic.keeps_all, KEPT, f"{self} begins at offset {offset}")
        for gone in range(self.start, offset):
            batch = self.entries.pop(gone, None)
            if batch is not None:
                batch.forget()  # the log may forget its producer too, which may then send it again
        self.start = offset

    def opened(self, end_offset: int, leader_epoch: int, *, power_cuts: int) -> None:
        """Check the log end after a start: whether records are missing, and whether they may be."""
        require(leader_epoch > self.leader_epoch, EPOCH_GROWS, f"{self} had {self.leader_epoch}, now {leader_epoch}")
        self.leader_epoch = leader_epoch
        power_lost, self.power_cuts = power_cuts != self.power_cuts, power_cuts
        required, invariant = (
            (self.durable_end, SYNCED_STAYS) if power_lost else (max(self.known_end, self.durable_end), WRITTEN_STAYS)
        )
        require(end_offset >= required, invariant, f"{self} ends at offset {end_offset}, but {required} was promised")
        if end_offset < self.known_end:
            self._forget_from(end_offset)

    def _forget_from(self, end_offset: int) -> None:
        self.losses += 1
        for offset in range(end_offset, self.known_end):
            self.markers.pop(offset, None)
            batch = self.entries.pop(offset, None)
            if batch is not None:
                batch.forget()
        self.known_end = end_offset
        self.start = min(self.start, end_offset)

    def closed_cleanly(self) -> None:
        """Note a clean stop, which syncs everything."""
        self.durable_end = max(self.durable_end, self.known_end)


class ShownBatch(NamedTuple):
    base_offset: int
    end_offset: int
    batch: SentBatch | None
    producer: SendingProducer


class Histories:
    def __init__(self) -> None:
        self.topics: dict[TopicId, TopicHistory] = {}
        self.sent: list[SentBatch] = []
        self.acknowledged = 0
        """Sent batches."""

    def add(self, topic: TopicHistory) -> None:
        self.topics[topic.topic_id] = topic

    def acknowledge(self, batch: SentBatch, base_offset: int) -> None:
        batch.partition.place(batch, base_offset)
        batch.partition.promised_durable(base_offset + batch.count, batch.sync_level)
        self.acknowledged += 1

    def stored(self) -> int:
        """Count the batches that are known to be appended."""
        return sum(batch.was_stored for batch in self.sent)

    def show(
        self, partition: PartitionHistory, records: bytes, *, offset: int, high_watermark: int, sync_level: int
    ) -> tuple[list[SentBatch], int]:
        """Check the bytes that a reader got from `offset` on; return their batches and their end."""
        found: list[SentBatch] = []
        expected = offset
        for base_offset, end, batch, producer in self.batches_in(partition, records):
            follows = base_offset <= expected < end if expected == offset else base_offset == expected
            if not follows:
                detail = f"{partition}: a batch of offsets {base_offset} to {end} where {expected} was expected"
                raise Violation(NO_GAP, detail)
            if batch is None:
                partition.mark(base_offset, producer)
            else:
                partition.place(batch, base_offset)
                found.append(batch)
            expected = end
        if expected > offset:
            detail = f"{partition}: shown up to {expected}, but the high watermark is {high_watermark}"
            require(expected <= high_watermark, BELOW_HIGH_WATERMARK, detail)
            partition.promised_durable(expected, sync_level)
        return found, expected

    def batches_in(self, partition: PartitionHistory, records: bytes) -> Iterator[ShownBatch]:
        """Find the sent batches by their numbers; None for a marker."""
        position = 0
        while position < len(records):
            fields, stored = self._stored_at(partition, memoryview(records)[position:])
            base_offset, producer = fields[BASE_OFFSET], SendingProducer(fields[PRODUCER_ID], fields[PRODUCER_EPOCH])
            end = base_offset + fields[LAST_OFFSET_DELTA] + 1
            batch = None if fields[ATTRIBUTES] & CONTROL_BIT else self._sent_as(partition, fields, stored)
            yield ShownBatch(base_offset, end, batch, producer)
            position += len(stored)

    def _stored_at(self, partition: PartitionHistory, content: memoryview) -> tuple[HeaderFields, memoryview]:
        if len(content) < HEADER_SIZE:
            raise Violation(NO_GAP, f"{partition}: {len(content)} bytes are not a batch")
        fields: HeaderFields = HEADER.unpack_from(content)
        size = fields[LENGTH] + LOG_OVERHEAD
        stored = content[:size]
        if len(stored) != size or checksum(stored) != fields[CRC]:
            raise Violation(NO_GAP, f"{partition}: the batch at offset {fields[BASE_OFFSET]} is damaged")
        return fields, stored

    def _sent_as(self, partition: PartitionHistory, fields: HeaderFields, stored: memoryview) -> SentBatch:
        number = int.from_bytes(stored[NUMBER_AT : NUMBER_AT + NUMBER_BYTES], "big")
        batch = self.sent[number] if number < len(self.sent) else None
        if batch is None or not _same(batch.content, stored, append_time=batch.partition.topic.append_time):
            raise Violation(
                NOTHING_FOREIGN, f"{partition} holds bytes at offset {fields[BASE_OFFSET]} that were never sent"
            )
        assert fields[LAST_OFFSET_DELTA] == batch.count - 1
        return batch


def _same(sent: bytes, stored: memoryview, *, append_time: bool) -> bool:
    """Compare everything except what the leader sets: offset and epoch, and with LogAppendTime the time and its
    flag.
    """
    if not append_time:
        return stored[LOG_OVERHEAD + 4 :] == sent[LOG_OVERHEAD + 4 :]
    return (
        stored[_OFFSET_DELTA_AT:_MAX_TIMESTAMP_AT] == sent[_OFFSET_DELTA_AT:_MAX_TIMESTAMP_AT]
        and stored[_PRODUCER_AT:] == sent[_PRODUCER_AT:]
    )
