"""Requests with an Idempotency-Key: their records are stored once, however often and wherever the request is repeated.

The records of a request and its result go in one transaction: the records to their topic, the result to a partition of
the compacted topic `__headrace_idempotency` that the key chooses. One transactional id per partition orders the
managers: the one that takes it over fences the others, waits for the end of their transaction, and reads their results.
A manager that was fenced can commit nothing, so it takes over again and looks the key up before it writes.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from headrace.client import Admin
from headrace.client.aio.producer import Producer
from headrace.client.errors import BrokerError, ClientError, InvalidArgument
from headrace.client.types import ConsumerRecord, NewTopic, RecordMetadata
from headrace.manager.cluster_address import ClusterAddress
from headrace.manager.cluster_calls import ClusterCalls
from headrace.manager.limits import (
    IDEMPOTENCY_KEYS_MAX,
    IDEMPOTENCY_PARTITIONS,
    IDEMPOTENCY_SECONDS,
    IDEMPOTENT_REQUESTS_PER_COMMIT_MAX,
    IDEMPOTENT_REQUESTS_WAITING_MAX,
    IDEMPOTENT_SECONDS_MAX,
    IDEMPOTENT_TAKEOVER_WAIT_MS_MAX,
    PRODUCE_TIMEOUT_MS,
    REQUEST_BODY_BYTES_MAX,
)
from headrace.manager.problems import ApiProblem
from headrace.manager.readers import Readers
from headrace.manager.writers import REQUEST_BYTES_MAX, Outcome, Writers, WrittenRecord, send_records
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.ports.real.entropy import RealEntropy

logger = logging.getLogger("headrace.manager")
TOPIC = "__headrace_idempotency"
TRANSACTIONAL_ID = "headrace-idempotency-{}"
DIGEST_BYTES = 16
BROKER_DEFAULT = -1
SEGMENT_MS = 600_000
POLL_MS = 50
CLOSE_TIMEOUT_MS = 1_000
PRODUCER_TIMEOUT_MS = 10_000
CONFIGS = {
    "cleanup.policy": "compact,delete",
    "retention.ms": str(IDEMPOTENCY_SECONDS * 2_000),
    "segment.ms": str(SEGMENT_MS),
}


class StoredResult(msgspec.Struct, array_like=True):
    """The value of a record of the topic: the digest of the request, and the position of each of its records."""

    request: bytes
    places: list[tuple[int, int, int]]
    """Partition, offset and timestamp."""


class KnownKey(NamedTuple):
    request: bytes
    offset: int
    """Of its result in the partition of the topic."""
    time_s: float


class KeyedOutcome(NamedTuple):
    places: Sequence[tuple[int, int, int]]
    is_repeat: bool


@dataclass(slots=True, eq=False)
class KeyedRequest:
    key: bytes
    """Digest of the user and the Idempotency-Key."""
    request: bytes
    """Digest of everything that a repeat must have in common with the first request."""
    topic: str
    records: Sequence[WrittenRecord]
    ended: asyncio.Future[KnownKey | Sequence[tuple[int, int, int]]]
    began_s: float = field(default_factory=time.monotonic)

    def end(self, outcome: KnownKey | Sequence[tuple[int, int, int]]) -> None:
        if not self.ended.done():
            self.ended.set_result(outcome)

    def fail(self, error: Exception) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)


def digest(*parts: bytes) -> bytes:
    """Return a digest of the parts, which cannot run into each other."""
    made = blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        made.update(len(part).to_bytes(8))
        made.update(part)
    return made.digest()


class KeyedWrites:
    def __init__(self, address: ClusterAddress, *, cluster: ClusterCalls, readers: Readers, writers: Writers) -> None:
        self._address = address
        self._cluster = cluster
        self._readers = readers
        self._writers = writers
        self._lanes: list[KeyLane] = []
        self._opening = asyncio.Lock()

    async def write(self, *, key: bytes, request: bytes, topic: str, records: Sequence[WrittenRecord]) -> KeyedOutcome:
        """Store the records once for this key, and return their positions: now, or those of the first request."""
        await self._open()
        await self._writers.check(topic, records)
        if sum(len(lane.known) for lane in self._lanes) >= IDEMPOTENCY_KEYS_MAX:
            raise ApiProblem(
                503, f"the manager remembers {IDEMPOTENCY_KEYS_MAX} keys of the last {IDEMPOTENCY_SECONDS} s, which is "
                "its limit: send more records per request, or leave Idempotency-Key out"
            )  # fmt: skip
        lane = self._lanes[int.from_bytes(key[:4]) % len(self._lanes)]
        found = await lane.write(key, request, topic, records)
        if not isinstance(found, KnownKey):
            return KeyedOutcome(found, False)
        if found.request != request:
            raise ApiProblem(
                422,
                "this Idempotency-Key was used for another request: repeat that one unchanged, or use a new key",
            )
        return KeyedOutcome(await lane.stored_places(found.offset), True)

    async def _open(self) -> None:
        """Create the topic unless it exists, and a lane for each of its partitions."""
        async with self._opening:
            if not self._lanes:
                count = await self._cluster.run(ensure_topic)
                self._lanes = [KeyLane(self._address, self._readers, partition) for partition in range(count)]

    async def close(self) -> None:
        await asyncio.gather(*(lane.close() for lane in self._lanes))


def ensure_topic(admin: Admin) -> int:
    """Create the topic of the results unless it exists, and return the number of its partitions."""
    (found,) = admin.topics([TOPIC])
    if found.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        outcome = admin.create_topics([NewTopic(TOPIC, IDEMPOTENCY_PARTITIONS, BROKER_DEFAULT, CONFIGS)])[TOPIC]
        if outcome.error != ErrorCode.TOPIC_ALREADY_EXISTS:
            outcome.check(f"topic {TOPIC} cannot be created")
        (found,) = admin.topics([TOPIC])
    if found.error or not found.partitions:
        raise ApiProblem(503, f"topic {TOPIC} is not known to the brokers yet: try again in a moment")
    return len(found.partitions)


def encoded_result(request: bytes, places: list[tuple[int, int, int]]) -> bytes:
    return msgspec.msgpack.encode(StoredResult(request, places))


def position(outcome: Outcome) -> RecordMetadata:
    """Return the position of a sent record; raise its error."""
    if isinstance(outcome, ClientError):
        raise outcome
    return outcome


FENCED = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
"""Errors of a producer whose transaction another manager, or the coordinator, has ended."""


def is_lasting(error: ClientError) -> bool:
    """Tell whether a request would fail again, as a record that is too large does."""
    if isinstance(error, BrokerError):
        return error.code not in FENCED and not error.is_retriable
    return isinstance(error, InvalidArgument)


class KeyLane:
    """The keys of one partition: one transaction at a time commits all requests that wait."""

    def __init__(self, address: ClusterAddress, readers: Readers, partition: int) -> None:
        self._address = address
        self._readers = readers
        self._place = TopicPartition(TOPIC, partition)
        self._entropy = RealEntropy()
        self._waiting: list[KeyedRequest] = []
        self._worker: asyncio.Task[None] | None = None
        self._producer: Producer | None = None
        self._next_offset: int | None = None
        """Results below it are known; None before the first look."""
        self._turn = 0
        self.known: dict[bytes, KnownKey] = {}
        """In the order of their results."""

    async def write(
        self, key: bytes, request: bytes, topic: str, records: Sequence[WrittenRecord]
    ) -> KnownKey | Sequence[tuple[int, int, int]]:
        """Return the positions of the stored records, or the earlier request with this key."""
        known = self.known.get(key)
        if known is not None:
            return known
        if len(self._waiting) >= IDEMPOTENT_REQUESTS_WAITING_MAX:
            raise ApiProblem(
                503, f"{IDEMPOTENT_REQUESTS_WAITING_MAX} requests wait to be committed: try again in a moment"
            )
        wanted = KeyedRequest(key, request, topic, records, asyncio.get_running_loop().create_future())
        self._waiting.append(wanted)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await wanted.ended

    async def _work(self) -> None:
        while self._waiting:
            group = self._next_group()
            try:
                await self._commit(group)
            except Exception as error:
                logger.exception("a group of requests with keys could not be committed")
                await self._drop_producer()
                for each in group:
                    each.fail(error)

    def _next_group(self) -> list[KeyedRequest]:
        """Take the oldest requests, of about one request body in all."""
        size = count = 0
        for request in self._waiting[:IDEMPOTENT_REQUESTS_PER_COMMIT_MAX]:
            size += sum(len(record.value or b"") for record in request.records)
            if count and size > REQUEST_BODY_BYTES_MAX:
                break
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    async def _commit(self, group: list[KeyedRequest]) -> None:
        """Commit the requests, or end each with its error."""
        deadline_s = group[0].began_s + IDEMPOTENT_SECONDS_MAX
        while group:
            try:
                await self._attempt(group)
                return
            except ClientError as error:
                failure = error
                await self._drop_producer()
            if is_lasting(failure):
                if len(group) == 1:
                    group[0].fail(failure)
                    return
                for each in group:  # Only the request that cannot be stored is to fail.
                    await self._commit([each])
                return
            if time.monotonic() >= deadline_s:
                text = f"{failure}; repeat the request with the same key, which stores its records once"
                for each in group:
                    each.fail(ApiProblem(503, text))
                return
            await asyncio.sleep(self._pause_s())
            group = [each for each in group if not each.ended.done()]

    async def _attempt(self, group: list[KeyedRequest]) -> None:
        """Write and commit in one transaction what no manager has committed before."""
        is_new = self._producer is None
        producer = self._producer = self._producer or self._created()
        async with producer.transaction():  # The first one takes the transactional id over.
            if is_new:
                await self._read_results()
            self._forget_old()
            first: dict[bytes, KeyedRequest] = {}
            for each in group:
                if each.key in self.known:
                    each.end(self.known[each.key])
                else:
                    first.setdefault(each.key, each)
            written = [*first.values()]
            places = await asyncio.gather(*(self._sent(producer, each) for each in written))
            results = [
                WrittenRecord(encoded_result(each.request, found), each.key, (), self._place.partition)
                for each, found in zip(written, places, strict=True)
            ]
            stored = [position(each) for each in await send_records(producer, TOPIC, results, turn=0)]
        now_s = time.time()
        for each, found, at in zip(written, places, stored, strict=True):
            self.known[each.key] = KnownKey(each.request, at.offset, now_s)
            self._next_offset = max(self._next_offset or 0, at.offset + 1)
            each.end(found)
        for each in group:  # The others repeat a request of the same group.
            if not each.ended.done():
                each.end(self.known[each.key])

    async def _sent(self, producer: Producer, request: KeyedRequest) -> list[tuple[int, int, int]]:
        self._turn += 1
        outcomes = await send_records(producer, request.topic, request.records, turn=self._turn)
        return [position(each)[1:] for each in outcomes]

    async def _read_results(self) -> None:
        """Read what other managers have committed: all of it is visible once the transactional id is taken over."""
        async with self._readers.lend() as consumer:
            consumer.assign([self._place])
            end = (await consumer.end_offsets([self._place]))[self._place]
            begin = self._next_offset
            if begin is None:
                since_ms = int((time.time() - IDEMPOTENCY_SECONDS) * 1000)
                at = (await consumer.offsets_for_time(since_ms, [self._place]))[self._place]
                begin = end if at < 0 else at
            await consumer.seek(self._place, begin)
            while await consumer.position(self._place) < end:
                for record in await consumer.poll(timeout_ms=POLL_MS):
                    self._know(record)
            self._next_offset = end

    def _know(self, record: ConsumerRecord) -> None:
        if record.value is not None and record.key is not None:
            result = msgspec.msgpack.decode(record.value, type=StoredResult)
            self.known[record.key] = KnownKey(result.request, record.offset, record.timestamp / 1000)

    def _forget_old(self) -> None:
        oldest_s = time.time() - IDEMPOTENCY_SECONDS
        while self.known:
            key = next(iter(self.known))
            if self.known[key].time_s >= oldest_s:
                return
            del self.known[key]

    async def stored_places(self, offset: int) -> Sequence[tuple[int, int, int]]:
        """Read the result at this offset of the partition."""
        async with self._readers.lend() as consumer:
            consumer.assign([self._place])
            await consumer.seek(self._place, offset)
            for record in await consumer.poll(timeout_ms=PRODUCER_TIMEOUT_MS, max_records=1):
                if record.offset == offset and record.value is not None:
                    return msgspec.msgpack.decode(record.value, type=StoredResult).places
        raise ApiProblem(503, "the result of the first request with this key cannot be read: try again in a moment")

    def _created(self) -> Producer:
        return Producer(
            **self._address.options(),
            transactional_id=TRANSACTIONAL_ID.format(self._place.partition),
            linger_ms=0,
            max_request_size=REQUEST_BYTES_MAX,
            max_block_ms=PRODUCER_TIMEOUT_MS,
            delivery_timeout_ms=PRODUCE_TIMEOUT_MS,
        )

    async def _drop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            try:
                await producer.close(timeout_ms=CLOSE_TIMEOUT_MS)
            except ClientError:
                pass  # The next one takes its transactional id over.

    def _pause_s(self) -> float:
        """Return a random pause, so that managers that fence each other do not do so for ever."""
        return self._entropy.below(IDEMPOTENT_TAKEOVER_WAIT_MS_MAX) / 1000

    async def close(self) -> None:
        if self._worker is not None:
            await asyncio.wait([self._worker], timeout=CLOSE_TIMEOUT_MS / 1000)
        await self._drop_producer()
