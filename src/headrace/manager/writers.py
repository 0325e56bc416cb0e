"""Producers of the manager: one for each level of acknowledgement, shared by all requests."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from headrace.client.aio.producer import Delivery, Producer
from headrace.client.core.partitioners import partition_for_key
from headrace.client.errors import ClientError, InvalidArgument
from headrace.client.types import RecordMetadata
from headrace.manager.cluster_address import ClusterAddress
from headrace.manager.limits import PRODUCE_TIMEOUT_MS, REQUEST_BODY_BYTES_MAX
from headrace.manager.metrics import ManagerMetrics
from headrace.wire.records.builder import BatchBuilder

Acks = Literal["all", 1, 0]
Outcome = RecordMetadata | ClientError
BATCH_BYTES = 256 << 10
REQUEST_BYTES_MAX = REQUEST_BODY_BYTES_MAX + (64 << 10)
"""Size of a request to a broker: the largest body as one record, so that the topic's own limit decides."""
LINGER_MS = 1.0
MAX_BLOCK_MS = 5_000
"""Time that a record waits for an unknown topic or for space in the buffer."""
BATCHED_RECORDS_MIN = 20
"""A request with at least this many records writes them as batches of its own; smaller requests share batches."""
RECORD_OVERHEAD_BYTES = 32
NOT_WRITTEN = ClientError("the record was not written")


class WrittenRecord(NamedTuple):
    """A record to send; None leaves the partition and the timestamp to the producer."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


class Writers:
    def __init__(self, cluster: ClusterAddress, metrics: ManagerMetrics) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._producers: dict[Acks, Producer] = {}
        self._turn = 0
        """Chooses the partition of the next request whose records have no key."""

    async def write(self, topic: str, records: Sequence[WrittenRecord], *, acks: Acks) -> list[Outcome]:
        """Send the records and return the position or the error of each, in order."""
        producer = self._producer(acks)
        self._turn += 1
        outcomes = await send_records(producer, topic, records, turn=self._turn)
        self._metrics.records_produced += sum(isinstance(each, RecordMetadata) for each in outcomes)
        return outcomes

    async def check(self, topic: str, records: Sequence[WrittenRecord]) -> None:
        """Raise the error of a topic that does not exist, or of a partition that it does not have."""
        count = await self._producer("all").partition_count(topic)
        for record in records:
            if record.partition is not None and record.partition >= count:
                raise no_partition(topic, record.partition, count)

    def _producer(self, acks: Acks) -> Producer:
        found = self._producers.get(acks)
        if found is None:
            found = self._producers[acks] = Producer(
                **self._cluster.options(),
                acks=acks,
                linger_ms=LINGER_MS,
                batch_size=BATCH_BYTES,
                max_request_size=REQUEST_BYTES_MAX,
                max_block_ms=MAX_BLOCK_MS,
                delivery_timeout_ms=PRODUCE_TIMEOUT_MS,
                request_timeout_ms=PRODUCE_TIMEOUT_MS,
            )
        return found

    async def close(self) -> None:
        producers, self._producers = [*self._producers.values()], {}
        await asyncio.gather(*(producer.close() for producer in producers), return_exceptions=True)


async def send_records(producer: Producer, topic: str, records: Sequence[WrittenRecord], *, turn: int) -> list[Outcome]:
    """Send the records and return the position or the error of each; `turn` chooses the partition where nothing else
    does.
    """
    if len(records) >= BATCHED_RECORDS_MIN:
        return await _write_batches(producer, topic, records, turn)
    return await _write_single(producer, topic, records)


async def _write_single(producer: Producer, topic: str, records: Sequence[WrittenRecord]) -> list[Outcome]:
    """Send record by record, so that requests at the same time share batches."""
    sent: list[Delivery | ClientError] = []
    for value, key, headers, partition, timestamp in records:
        try:
            sent.append(await producer.send(topic, value, key, headers, partition, timestamp))
        except ClientError as error:
            sent.append(error)
            if len(sent) == 1 and not isinstance(error, InvalidArgument):
                return [error] * len(records)  # It is about the topic or the brokers, so it holds for the others.
    return [each if isinstance(each, ClientError) else await _outcome(each) for each in sent]


async def _write_batches(producer: Producer, topic: str, records: Sequence[WrittenRecord], turn: int) -> list[Outcome]:
    """Send whole batches: many records of one request need not be collected one by one."""
    outcomes: list[Outcome] = [NOT_WRITTEN] * len(records)
    now_ms = time.time_ns() // 1_000_000
    sent: list[tuple[Sequence[int], Delivery]] = []
    try:
        count = await producer.partition_count(topic)
    except ClientError as error:
        return [error] * len(records)
    for partition, indexes in by_partition(records, count, turn % count).items():
        for part in parts_of_batch(records, indexes):
            try:
                if partition >= count:
                    raise no_partition(topic, partition, count)
                sent.append((part, await producer.send_batch(topic, partition, encoded(records, part, now_ms))))
            except ClientError as error:
                for index in part:
                    outcomes[index] = error
    for part, delivery in sent:
        first = await _outcome(delivery)
        for place, index in enumerate(part):
            outcomes[index] = _of_batch(first, place, records[index], now_ms)
    return outcomes


def no_partition(topic: str, partition: int, count: int) -> InvalidArgument:
    return InvalidArgument(f'topic "{topic}" has partitions 0 to {count - 1}, not {partition}')


def by_partition(records: Sequence[WrittenRecord], count: int, turn: int) -> dict[int, list[int]]:
    """Return the indexes of the records by partition: the given one, that of the key, or `turn`."""
    found: dict[int, list[int]] = {}
    for index, (_value, key, _headers, partition, _timestamp) in enumerate(records):
        if partition is None:
            partition = turn if key is None else partition_for_key(key, count)
        found.setdefault(partition, []).append(index)
    return found


def parts_of_batch(records: Sequence[WrittenRecord], indexes: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield consecutive parts of about BATCH_BYTES, each of at least one record."""
    begin = size = 0
    for place, index in enumerate(indexes):
        value, key = records[index][:2]
        length = RECORD_OVERHEAD_BYTES + len(value or b"") + len(key or b"")
        if place > begin and size + length > BATCH_BYTES:
            yield indexes[begin:place]
            begin, size = place, 0
        size += length
    yield indexes[begin:]


def encoded(records: Sequence[WrittenRecord], indexes: Sequence[int], now_ms: int) -> bytearray:
    """Return the batch of these records."""
    builder = BatchBuilder()
    for index in indexes:
        value, key, headers, _partition, timestamp = records[index]
        builder.append(now_ms if timestamp is None else timestamp, key, value, headers)
    return builder.build()


def _of_batch(first: Outcome, place: int, record: WrittenRecord, now_ms: int) -> Outcome:
    """Return the outcome of a record of a batch from that of its first record."""
    if place == 0 or not isinstance(first, RecordMetadata):
        return first
    offset = first.offset + place if first.offset >= 0 else -1
    return RecordMetadata(
        first.topic, first.partition, offset, now_ms if record.timestamp is None else record.timestamp
    )


async def _outcome(delivery: Delivery) -> Outcome:
    try:
        return await delivery
    except ClientError as error:
        return error
