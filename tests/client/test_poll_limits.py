"""Limits of a poll that fall anywhere within a batch: never more records than asked for, and positions that match.

The core reads logs that hypothesis draws. Every front reads a topic of a real broker, through one short-lived member
after the other.
"""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client import Consumer, ConsumerRecord, Producer, TopicPartition
from headrace.client.config import ConsumerConfig
from headrace.client.consumer_base import PendingRecords
from headrace.client.errors import DeserializationError
from headrace.client.types import IsolationLevel
from headrace.testing import EmbeddedBroker
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.markers import control_batch

from .fronts import EVERY_FRONT
from .test_consumer_core import World

FRONTS = EVERY_FRONT
WAIT_MS = 60_000
PARTITIONS = 2
PRODUCER_IDS = 2
POLLS_MAX = 500
MEMBERS = 4

Batch = tuple[str, int, int]
"""Kind, number of records, producer."""

BATCHES = st.lists(
    st.tuples(
        st.sampled_from(("plain", "gzip", "transactional", "abort", "commit")),
        st.integers(1, 9),
        st.integers(0, PRODUCER_IDS - 1),
    ),
    max_size=12,
)
LIMITS = st.lists(st.integers(1, 12), min_size=1, max_size=8)


class DrawnLog:
    """The batches of one partition, the records that a reader may see, and the transactions that were aborted."""

    def __init__(self, drawn: Sequence[Batch]) -> None:
        self.batches: list[bytes] = []
        self.end = 0
        self.aborted: list[tuple[int, int]] = []
        self._visible: list[int] = []
        self._open: dict[int, list[int]] = {}
        self._hidden: set[int] = set()
        for kind, count, producer in drawn:
            self._append(kind, count, producer)
        for producer in list(self._open):
            self._append("abort", 1, producer)

    def offsets(self, isolation: IsolationLevel) -> list[int]:
        hidden = self._hidden if isolation == IsolationLevel.READ_COMMITTED else ()
        return [offset for offset in self._visible if offset not in hidden]

    def _append(self, kind: str, count: int, producer: int) -> None:
        if kind in ("abort", "commit"):
            offsets = self._open.pop(producer, [])
            if kind == "abort" and offsets:
                self.aborted.append((producer, offsets[0]))
                self._hidden.update(offsets)
            marker = control_batch(
                producer_id=producer, producer_epoch=0, commit=kind == "commit", coordinator_epoch=0, timestamp=1
            )
            marker[:8] = self.end.to_bytes(8, "big")
            self.batches.append(bytes(marker))
            self.end += 1
            return
        offsets = list(range(self.end, self.end + count))
        options: dict[str, Any] = {"compression": Compression.GZIP} if kind == "gzip" else {}
        if kind == "transactional":
            options = {"transactional": True, "producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
            self._open.setdefault(producer, []).extend(offsets)
        new = [NewRecord(1, None, b"%d" % offset) for offset in offsets]
        self.batches.append(bytes(build_batch(new, base_offset=self.end, **options)))
        self._visible += offsets
        self.end += count


@given(drawn=BATCHES, limits=LIMITS, isolation=st.sampled_from(IsolationLevel), begin=st.integers(0, 20))
def test_the_core_gives_at_most_what_is_asked_for_and_its_position_is_behind_that(
    drawn: list[Batch], limits: list[int], isolation: IsolationLevel, begin: int
) -> None:
    log = DrawnLog(drawn)
    place = TopicPartition("t", 0)
    world = World(isolation=isolation)
    world.logs[0], world.aborted = log.batches, log.aborted
    for _ in range(3):
        world.step()
    world.core.seek(place, begin := min(begin, log.end))
    expected = [offset for offset in log.offsets(isolation) if offset >= begin]
    given: list[int] = []
    for number in range(POLLS_MAX):
        limit = limits[number % len(limits)]
        world.step()
        taken = [record.offset for record in world.core.take(limit)]
        assert len(taken) <= limit
        given += taken
        position = world.core.position(place)
        assert position is not None
        assert given == [offset for offset in expected if offset < position], "the position is behind what was given"
        if position == log.end:
            break
    assert given == expected


@given(count=st.integers(1, 30), bad=st.sets(st.integers(0, 29)), limits=LIMITS)
def test_records_behind_one_that_cannot_be_deserialized_keep_to_the_limit(
    count: int, bad: set[int], limits: list[int]
) -> None:
    def read(value: bytes) -> int:
        if int(value) in bad:
            raise ValueError(value)
        return int(value)

    handover = PendingRecords(ConsumerConfig(value_deserializer=read))
    taken = [ConsumerRecord("t", 0, offset, 1, None, b"%d" % offset, ()) for offset in range(count)]
    seen: list[int] = []
    for number in range(2 * count + 1):
        limit = limits[number % len(limits)]
        try:
            given = handover.ready(taken) if not number else handover.waiting(limit)
        except DeserializationError as error:
            seen.append(error.record.offset)
            continue
        assert not number or len(given) <= limit
        seen += [record.offset for record in given]
        assert handover.held() == ({TopicPartition("t", 0): len(seen)} if len(seen) < count else {})
    assert seen == list(range(count))


def fill(broker: EmbeddedBroker, topic: str, draw: random.Random) -> list[list[bytes | None]]:
    """Batches of many sizes, some of them aborted; what committed readers see of each partition."""
    expected: list[list[bytes | None]] = [[] for _ in range(PARTITIONS)]
    number = 0
    with Producer(broker.bootstrap_servers, transactional_id=f"t-{topic}", linger_ms=WAIT_MS) as producer:
        for _ in range(14):
            values = [b"%d" % (number + each) for each in range(draw.randrange(1, 40))]
            partition, is_aborted = draw.randrange(PARTITIONS), draw.random() < 0.3
            number += len(values)
            try:
                with producer.transaction():
                    for value in values:
                        producer.send(topic, value, partition=partition)
                    if is_aborted:
                        raise ZeroDivisionError
            except ZeroDivisionError:
                continue
            expected[partition] += values
    return expected


@pytest.mark.process
@pytest.mark.record_integrity
@pytest.mark.usefixtures("front")
@pytest.mark.parametrize("seed", range(2))
def test_members_that_read_a_few_records_each_read_the_topic(
    any_broker: EmbeddedBroker, request: pytest.FixtureRequest, seed: int
) -> None:
    draw = random.Random(seed)
    topic = any_broker.create_topic(any_broker.unused_topic_name(request.node.name), partitions=PARTITIONS)
    expected = fill(any_broker, topic, draw)
    total = sum(map(len, expected))
    seen: list[list[bytes | None]] = [[] for _ in range(PARTITIONS)]
    for member in range(MEMBERS):
        with Consumer(
            topic,
            bootstrap_servers=any_broker.bootstrap_servers,
            group_id=f"g-{topic}",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            enable_auto_commit=bool(seed),
            fetch_max_wait_ms=50,
        ) as consumer:
            while sum(map(len, seen)) < total:
                limit = draw.choice((1, 7, 45, 90))
                records = consumer.poll(timeout_ms=WAIT_MS, max_records=limit)
                assert 0 < len(records) <= limit
                for record in records:
                    seen[record.partition].append(record.value)
                if not seed:
                    consumer.commit()
                if member < MEMBERS - 1 and draw.random() < 0.3:
                    break
    assert seen == expected
