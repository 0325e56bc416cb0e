"""Batches as bytes, both ways: encoded ones produced, ranges fetched without decoding; against a real broker."""

import asyncio
from functools import partial
from typing import Any

import pytest

from headrace import aio
from headrace.client import EARLIEST, LATEST, Admin, Consumer, IsolationLevel, Producer, TopicPartition
from headrace.client.blocking.raw import FetchedBytes, RawFetcher
from headrace.client.core.partition_reader import AbortedTransactions
from headrace.client.errors import (
    BrokerError,
    ClientClosed,
    ClientError,
    DeadlineExceeded,
    InvalidArgument,
    OffsetOutOfRange,
)
from headrace.client.types import EARLIEST_LOCAL
from headrace.model.errors import ErrorCode
from headrace.testing import EmbeddedBroker
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import HEADER
from headrace.wire.records.reader import batches, check_batch, records

from .patience import retry_until_deadline

pytestmark = pytest.mark.process

WAIT_MS = 60_000
PARTITIONS = 3


@pytest.fixture(scope="module")
def broker(any_broker: EmbeddedBroker) -> EmbeddedBroker:
    return any_broker


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    return broker.create_topic(broker.unused_topic_name(request.node.name), partitions=PARTITIONS)


def encoded(*values: bytes, compression: int = Compression.NONE, **options: int) -> bytearray:
    return build_batch([NewRecord(1_000, b"k", value) for value in values], compression=compression, **options)


def values_in(piece: FetchedBytes) -> list[bytes | None]:
    """The records of a piece that are asked for, as its reader finds them."""
    aborted = AbortedTransactions(piece.aborted) if piece.aborted is not None else None
    found = []
    for batch in batches(piece.data):
        fields = check_batch(batch)
        if aborted is not None and aborted.hides(batch, fields):
            continue
        found += [record.value for record in records(batch) if piece.begin <= record.offset < piece.end]
    return found


def fetched(
    broker: EmbeddedBroker, ranges: dict[tuple[str, int], tuple[int, int]], **options: object
) -> list[bytes | None]:
    with RawFetcher(broker.bootstrap_servers, **options) as fetcher:
        return [value for piece in fetcher.fetch(ranges, timeout_ms=WAIT_MS) for value in values_in(piece)]


@pytest.mark.parametrize("codec", list(Compression))
def test_an_encoded_batch_arrives_as_it_is(broker: EmbeddedBroker, topic: str, codec: Compression) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        assert producer.partition_count(topic) == PARTITIONS
        first = producer.send_batch(topic, 1, encoded(b"a", b"b", compression=codec))
        producer.send(topic, b"c", partition=1)
        last = producer.send_batch(topic, 1, bytes(encoded(b"d", b"e", compression=codec, base_offset=77)))
        assert (first.result(timeout_ms=WAIT_MS).offset, last.result(timeout_ms=WAIT_MS).offset) == (0, 3)
        assert first.result().timestamp == 1_000
    assert fetched(broker, {(topic, 1): (0, 5)}) == [b"a", b"b", b"c", b"d", b"e"]
    with Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 1)])
        assert [record.value for record in (next(consumer) for _ in range(5))] == [b"a", b"b", b"c", b"d", b"e"]


def test_many_batches_stay_in_order(broker: EmbeddedBroker, topic: str) -> None:
    told: list[int] = []
    with Producer(broker.bootstrap_servers, buffer_memory=20_000) as producer:
        for number in range(200):
            batch = encoded(b"%d" % number + bytes(500))
            producer.send_batch(topic, number % 2, batch, on_delivery=lambda done: told.append(done.result().offset))
    assert sorted(told) == sorted([*range(100), *range(100)])
    with RawFetcher(broker.bootstrap_servers, max_partition_fetch_bytes=3_000) as fetcher:
        pieces = list(fetcher.fetch({(topic, 0): (10, 100), (topic, 1): (0, 90), (topic, 2): (0, 0)}))
    by_partition: dict[int, list[bytes | None]] = {0: [], 1: []}
    for piece in pieces:
        by_partition[piece.partition.partition] += values_in(piece)
    assert by_partition[0] == [b"%d" % number + bytes(500) for number in range(20, 200, 2)]
    assert by_partition[1] == [b"%d" % number + bytes(500) for number in range(1, 180, 2)]
    assert len(pieces) > 20


def test_ranges_within_batches_and_what_is_aborted(broker: EmbeddedBroker, topic: str) -> None:
    with Producer(broker.bootstrap_servers, transactional_id=f"t-{topic}") as producer:
        with producer.transaction():
            producer.send_batch(topic, 0, encoded(b"0", b"1", b"2"))
        with producer.transaction() as transaction:
            producer.send_batch(topic, 0, encoded(b"4", b"5")).result(timeout_ms=WAIT_MS)
            transaction.abort()
        with producer.transaction():
            producer.send_batch(topic, 0, encoded(b"7", b"8"))
    place = (topic, 0)
    assert fetched(broker, {place: (1, 8)}, isolation_level="read_committed") == [b"1", b"2", b"7"]
    assert fetched(broker, {place: (4, 10)}, isolation_level="read_committed") == [b"7", b"8"]
    assert fetched(broker, {place: (3, 7)}, isolation_level="read_committed") == []
    with RawFetcher(broker.bootstrap_servers) as fetcher:
        pieces = list(fetcher.fetch({place: (1, 5)}))
        assert {(piece.partition, piece.aborted) for piece in pieces} == {(TopicPartition(topic, 0), None)}
        assert (pieces[0].begin, pieces[-1].end) == (1, 5)
        bases = [HEADER.unpack_from(batch)[0] for piece in pieces for batch in batches(piece.data)]
        assert bases == [0, 3, 4]
        (again,) = fetcher.fetch({place: (9, 10)})
        assert (again.begin, again.end) == (9, 10)


def test_a_transaction_is_ended_by_another(broker: EmbeddedBroker, topic: str) -> None:
    place = TopicPartition(topic, 0)
    with Admin(broker.bootstrap_servers) as admin:
        for commit in (True, False):
            with Producer(broker.bootstrap_servers, transactional_id=f"t-{topic}-{commit}") as producer:
                transaction = producer.transaction()
                producer.send_batch(topic, 0, encoded(b"%d" % commit))
                prepared = transaction.hand_over()
                with pytest.raises(InvalidArgument, match="handed over"):
                    producer.transaction()
            assert prepared.partitions == (place,)
            stable = admin.offsets({place: LATEST}, isolation=IsolationLevel.READ_COMMITTED)[place].offset
            assert stable + 1 == admin.offsets({place: LATEST})[place].offset
            admin.end_transaction(prepared, commit=commit)
            admin.end_transaction(prepared, commit=commit)
            with pytest.raises(BrokerError):
                admin.end_transaction(prepared, commit=not commit)
        with Producer(broker.bootstrap_servers, transactional_id=f"t-{topic}-nothing") as producer:
            admin.end_transaction(producer.transaction().hand_over(), commit=True)
        end = admin.offsets({place: LATEST}, isolation=IsolationLevel.READ_COMMITTED)[place].offset
    assert end == 4
    assert fetched(broker, {(topic, 0): (0, end)}, isolation_level="read_committed") == [b"1"]


def test_the_same_on_a_loop(broker: EmbeddedBroker, topic: str) -> None:
    asyncio.run(hand_over_on_a_loop(broker, topic))
    assert fetched(broker, {(topic, 0): (0, 4)}, isolation_level="read_committed") == [b"a", b"b", b"c", b"d"]


async def hand_over_on_a_loop(broker: EmbeddedBroker, topic: str) -> None:
    options: dict[str, Any] = {"transactional_id": f"t-{topic}", "max_block_ms": WAIT_MS}
    async with aio.Producer(broker.bootstrap_servers, **options) as producer:
        assert await producer.partition_count(topic) == PARTITIONS
        transaction = await producer.begin_transaction()
        sent = [await producer.send_batch(topic, 0, encoded(b"a", b"b")), await producer.send(topic, b"c", partition=0)]
        sent.append(await producer.send_batch(topic, 0, encoded(b"d")))
        assert [(await delivery).offset for delivery in sent] == [0, 2, 3]
        prepared = await transaction.hand_over()
        with pytest.raises(InvalidArgument, match="not one batch"):
            await producer.send_batch(topic, 0, b"")
    async with aio.Admin(broker.bootstrap_servers) as admin:
        await admin.end_transaction(prepared, commit=True)


def test_where_the_log_on_a_leaders_disk_begins(broker: EmbeddedBroker, topic: str) -> None:
    """Requests before an empty answer counts as the end of a range; without remote storage, the log's start."""
    place = TopicPartition(topic, 0)
    with Producer(broker.bootstrap_servers) as producer:
        producer.send_batch(topic, 0, encoded(b"a", b"b", b"c")).result(timeout_ms=WAIT_MS)
    with Admin(broker.bootstrap_servers) as admin:
        assert admin.offsets({place: EARLIEST_LOCAL})[place].offset == 0
        admin.delete_records({place: 2})
        found = {time: admin.offsets({place: time})[place].offset for time in (EARLIEST, EARLIEST_LOCAL)}
    assert found == {EARLIEST: 2, EARLIEST_LOCAL: 2}


def beyond_the_end(fetcher: RawFetcher, topic: str, timeout_ms: float) -> None:
    with pytest.raises(DeadlineExceeded, match=rf"{topic}-0 from 1 to 2: the log ends before"):
        list(fetcher.fetch({(topic, 0): (0, 2)}, timeout_ms=timeout_ms))


def test_what_cannot_be_produced_or_fetched(broker: EmbeddedBroker, topic: str) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        damaged = encoded(b"v")
        damaged[-1] ^= 1
        for wrong in (b"", b"bytes", bytes(encoded(b"v")) * 2, damaged, encoded(b"v", control=True)):
            with pytest.raises(InvalidArgument, match="not one batch"):
                producer.send_batch(topic, 0, wrong)
        with pytest.raises(InvalidArgument, match="not 3"):
            producer.send_batch(topic, 3, encoded(b"v"))
        with pytest.raises(InvalidArgument, match="max_request_size"):
            producer.send_batch(topic, 0, encoded(bytes(2_000_000)))
        producer.send_batch(topic, 0, encoded(b"v")).result(timeout_ms=WAIT_MS)
    with pytest.raises(ClientClosed):
        producer.send_batch(topic, 0, encoded(b"v"))
    with RawFetcher(broker.bootstrap_servers, fetch_max_wait_ms=50) as fetcher:
        with pytest.raises(InvalidArgument, match="2 to 1 does not"):
            fetcher.fetch({(topic, 0): (2, 1)})
        with pytest.raises(OffsetOutOfRange) as raised:
            list(fetcher.fetch({(topic, 0): (7, 9)}))
        assert (raised.value.partition, raised.value.offset) == (TopicPartition(topic, 0), 7)
        assert raised.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
        retry_until_deadline(partial(beyond_the_end, fetcher, topic))
        with pytest.raises(ClientError):
            list(fetcher.fetch({("nowhere", 0): (0, 2)}, timeout_ms=300))
        left = fetcher.fetch({(topic, 0): (0, 1)})
        assert values_in(next(left)) == [b"v"]
    with pytest.raises(ClientClosed):
        fetcher.fetch({(topic, 0): (0, 1)})
