"""What clients sent, what they were told of it, and what they were shown: one history per partition.

A batch is known by the number in its first key, so that no record is opened: what is stored is compared with what was
sent byte by byte. A history holds what the node has promised; an end of the process may take nothing of it, a power cut
only what no sync had covered.
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
    from headrace.sim.checkers.transactions import Transaction

NUMBER_AT = HEADER_SIZE + 5
"""Behind the one-byte length, attributes, time, offset and key length of the first record."""
NUMBER_BYTES = 8
NOT_SYNCED = -1

_OFFSET_DELTA_AT = 23
_MAX_TIMESTAMP_AT = 35
_PRODUCER_AT = 43

ONE_SEQUENCE = "one sequence per partition: an offset never changes its value"
NO_DOUBLE = "no record is there twice"
NOTHING_FOREIGN = "nobody is shown what was not sent to that partition of that topic"
SYNCED_STAYS = "what was synced, or acknowledged after a sync, survives a power cut"
WRITTEN_STAYS = "what was acknowledged or shown survives the end of the process"
BELOW_HIGH_WATERMARK = "nobody reads above the high watermark"
NO_GAP = "a reader sees whole batches without gap or damage"
KEPT = "only retention and DeleteRecords take records away"
EPOCH_GROWS = "the leader epoch grows at each start"


class Producer(NamedTuple):
    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return f"producer {self.producer_id}" + (f" epoch {self.epoch}" if self.epoch else "")


NOBODY = Producer(-1, -1)


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
        producer: Producer,
        sequence: int,
        transaction: "Transaction | None" = None,
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
        """Where it is known to be."""
        self.was_stored = False

    def forget(self) -> None:
        """It is gone by right, with the power or with retention."""
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
        """It may be deleted: clients name it by its id, or they could mean another of its name."""
        self.certain = True
        """Whether it exists beyond doubt: no deletion of it is under way."""
        self.sync_level = 1 if synced else NOT_SYNCED
        """Another number after each change of flush.messages; NOT_SYNCED unless it is surely 1."""
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
        """The batch of every offset that was promised."""
        self.markers: dict[int, Producer] = {}
        """Whose transaction ends at an offset."""
        self.known_end = 0
        self.durable_end = 0
        """Everything below survives a power cut."""
        self.start = 0
        """The lowest offset that must still be there."""
        self.synced_from = 0
        """What is below was there before the topic was synced, so that being shown it promises nothing."""
        self.losses = 0
        """How often a power cut took something that was not synced."""
        self.leader_epoch = -1
        self.power_cuts = 0
        """How many there had been when the partition was last opened."""

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.index}"

    def place(self, batch: SentBatch, base_offset: int) -> None:
        """The batch is there, as an acknowledgement or a read has told."""
        if batch.partition is not self:
            raise Violation(NOTHING_FOREIGN, f"{batch} is at offset {base_offset} of {self}")
        if batch.offset != base_offset:
            if batch.offset is not None:
                raise Violation(NO_DOUBLE, f"{batch} is at offsets {batch.offset} and {base_offset}")
            batch.offset = base_offset
            batch.was_stored = True
        entries = self.entries
        if base_offset + batch.count <= self.start:
            batch.forget()  # a late answer: retention has taken it since
            return
        for offset in range(base_offset, base_offset + batch.count):
            known = entries.setdefault(offset, batch)
            if known is not batch:
                raise Violation(ONE_SEQUENCE, f"offset {offset} of {self} held {known}, now {batch}")
        self.reaches(base_offset + batch.count)

    def mark(self, offset: int, producer: Producer) -> None:
        """A marker is there, as a read has told."""
        if self.markers.setdefault(offset, producer) != producer or offset in self.entries:
            raise Violation(ONE_SEQUENCE, f"offset {offset} of {self} now holds a marker of {producer}")
        self.reaches(offset + 1)

    def reaches(self, offset: int) -> None:
        """A client was told that the log ends there or behind."""
        self.known_end = max(self.known_end, offset)

    def promised_durable(self, end_offset: int, sync_level: int) -> None:
        """Told to a client who asked at `sync_level`; worth something if the topic was synced all the time since."""
        if sync_level != NOT_SYNCED and sync_level == self.topic.sync_level and end_offset > self.synced_from:
            self.durable_end = max(self.durable_end, end_offset)

    def starts_at(self, offset: int) -> None:
        """A client was told that the log begins there."""
        if offset <= self.start:
            return
        self.reaches(offset)
        require(not self.topic.keeps_all, KEPT, f"{self} begins at offset {offset}")
        for gone in range(self.start, offset):
            batch = self.entries.pop(gone, None)
            if batch is not None:
                batch.forget()  # and so may the log forget its producer, who may then send it again
        self.start = offset

    def opened(self, end_offset: int, leader_epoch: int, *, power_cuts: int) -> None:
        """After a start the log ends here: what is missing, and may it be?"""
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
        """A clean stop syncs everything."""
        self.durable_end = max(self.durable_end, self.known_end)


class ShownBatch(NamedTuple):
    base_offset: int
    end_offset: int
    batch: SentBatch | None
    producer: Producer


class Histories:
    def __init__(self) -> None:
        self.topics: dict[TopicId, TopicHistory] = {}
        self.sent: list[SentBatch] = []
        self.acknowledged = 0
        """Batches."""

    def add(self, topic: TopicHistory) -> None:
        self.topics[topic.topic_id] = topic

    def acknowledge(self, batch: SentBatch, base_offset: int) -> None:
        batch.partition.place(batch, base_offset)
        batch.partition.promised_durable(base_offset + batch.count, batch.sync_level)
        self.acknowledged += 1

    def stored(self) -> int:
        """Batches that are known to have been appended."""
        return sum(batch.was_stored for batch in self.sent)

    def show(
        self, partition: PartitionHistory, records: bytes, *, offset: int, high_watermark: int, sync_level: int
    ) -> tuple[list[SentBatch], int]:
        """A reader who asked from `offset` was given these bytes; the batches in them, checked, and where they end."""
        found: list[SentBatch] = []
        expected = offset
        for base_offset, end, batch, producer in self.batches_in(partition, records):
            follows = base_offset <= expected < end if expected == offset else base_offset == expected
            if not follows:
                detail = f"{partition}: a batch of offsets {base_offset} to {end} where {expected} was due"
                raise Violation(NO_GAP, detail)
            if batch is None:
                partition.mark(base_offset, producer)
            else:
                partition.place(batch, base_offset)
                found.append(batch)
            expected = end
        if expected > offset:
            detail = f"{partition}: shown up to {expected}, high watermark {high_watermark}"
            require(expected <= high_watermark, BELOW_HIGH_WATERMARK, detail)
            partition.promised_durable(expected, sync_level)
        return found, expected

    def batches_in(self, partition: PartitionHistory, records: bytes) -> Iterator[ShownBatch]:
        """What was sent, by the number in it; None for a marker."""
        position = 0
        while position < len(records):
            fields, stored = self._stored_at(partition, memoryview(records)[position:])
            base_offset, producer = fields[BASE_OFFSET], Producer(fields[PRODUCER_ID], fields[PRODUCER_EPOCH])
            end = base_offset + fields[LAST_OFFSET_DELTA] + 1
            batch = None if fields[ATTRIBUTES] & CONTROL_BIT else self._sent_as(partition, fields, stored)
            yield ShownBatch(base_offset, end, batch, producer)
            position += len(stored)

    def _stored_at(self, partition: PartitionHistory, content: memoryview) -> tuple[HeaderFields, memoryview]:
        if len(content) < HEADER_SIZE:
            raise Violation(NO_GAP, f"{partition}: {len(content)} bytes are no batch")
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
                NOTHING_FOREIGN, f"{partition} holds bytes at offset {fields[BASE_OFFSET]} that nobody sent"
            )
        assert fields[LAST_OFFSET_DELTA] == batch.count - 1
        return batch


def _same(sent: bytes, stored: memoryview, *, append_time: bool) -> bool:
    """All but what the leader stamps: offset and epoch, and with LogAppendTime the time and its mark."""
    if not append_time:
        return stored[LOG_OVERHEAD + 4 :] == sent[LOG_OVERHEAD + 4 :]
    return (
        stored[_OFFSET_DELTA_AT:_MAX_TIMESTAMP_AT] == sent[_OFFSET_DELTA_AT:_MAX_TIMESTAMP_AT]
        and stored[_PRODUCER_AT:] == sent[_PRODUCER_AT:]
    )
