"""Fetch, min_bytes: a fetch waits for records that are not there yet, and never for those that are."""

import functools
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.limits import FETCH_PARTITIONS_PER_SLICE
from headrace.wire.apis import ApiKey
from headrace.wire.records.header import BASE_OFFSET, HEADER, LAST_OFFSET_DELTA
from headrace.wire.records.reader import batches
from tests.broker.virtual import LONG_MS, MANY_BYTES, VirtualBroker, values_of

SEGMENT_BYTES = 64 << 10
VALUE = bytes(900)
READ_COMMITTED = 1


def write(client, topic, partition, count, value=VALUE):
    for _ in range(count):
        assert client.produce_error(topic, partition, client.batch(value)) == 0


def is_answered_now(broker, client, asked):
    """Return whether the answer comes without time passing: virtual time stops while a node has turns to take."""
    before = broker.machine.clock.monotonic_ms()
    client.wait(asked)
    return broker.machine.clock.monotonic_ms() - before < LONG_MS / 2


# Old segments


@pytest.mark.parametrize("isolation", [0, READ_COMMITTED])
def test_a_topic_of_small_segments_is_read_without_waiting(isolation):
    broker = VirtualBroker().with_topic("t", segment_bytes=SEGMENT_BYTES)
    writer, reader = broker.client(), broker.client()
    write(writer, "t", 0, 300)
    log = broker.partition("t").log
    assert len(log.segments) > 3
    offset, began = 0, broker.machine.clock.monotonic_ms()
    while offset < log.active.base_offset:
        answer = reader.fetch("t", offset=offset, bytes_min=MANY_BYTES, wait_ms=LONG_MS, isolation=isolation)
        assert answer.records
        offset += len(values_of(answer.records, offset))
    assert broker.machine.clock.monotonic_ms() - began < LONG_MS / 2
    assert broker.metrics.parked_fetches == 0


def test_a_fetch_whose_segment_was_closed_behind_it_is_answered_at_once():
    broker = VirtualBroker().with_topic("t", segment_bytes=SEGMENT_BYTES)
    writer, reader = broker.client(), broker.client()
    write(writer, "t", 0, 3)
    broker.partition("t").log.roll()
    asked = reader.send_fetch(("t", 0, 0), bytes_min=MANY_BYTES, wait_ms=LONG_MS)
    assert is_answered_now(broker, reader, asked)


def test_one_partition_on_an_old_segment_is_enough_for_the_whole_fetch():
    broker = VirtualBroker().with_topic("t", partitions=3, segment_bytes=SEGMENT_BYTES)
    writer, reader = broker.client(), broker.client()
    write(writer, "t", 1, 100)
    wanted = [("t", partition, 0) for partition in range(3)]
    assert is_answered_now(broker, reader, reader.send_fetch(*wanted, bytes_min=MANY_BYTES, wait_ms=LONG_MS))


def test_a_fetch_on_the_newest_segment_still_waits_for_its_minimum():
    broker = VirtualBroker().with_topic("t", segment_bytes=SEGMENT_BYTES)
    writer, reader = broker.client(), broker.client()
    write(writer, "t", 0, 100)
    offset = broker.partition("t").log.active.base_offset
    asked = reader.send_fetch(("t", 0, offset), bytes_min=MANY_BYTES, wait_ms=LONG_MS)
    broker.steps()
    assert not reader.has_answer(asked)
    assert broker.metrics.parked_fetches == 1


# Limits


def test_the_minimum_is_at_most_the_maximum():
    broker = VirtualBroker().with_topic("t")
    writer, reader = broker.client(), broker.client()
    size = len(writer.batch(VALUE))
    write(writer, "t", 0, 3)
    asked = reader.send_fetch(("t", 0, 0), bytes_min=MANY_BYTES, bytes_max=2 * size, wait_ms=LONG_MS)
    assert is_answered_now(broker, reader, asked)


def test_the_minimum_is_at_most_the_brokers_own_maximum():
    broker = VirtualBroker(settings={"fetch.max.bytes": "2048"}).with_topic("t")
    writer, reader = broker.client(), broker.client()
    write(writer, "t", 0, 3)
    asked = reader.send_fetch(("t", 0, 0), bytes_min=MANY_BYTES, wait_ms=LONG_MS)
    assert is_answered_now(broker, reader, asked)


def test_a_limit_between_two_batches_counts_as_reached():
    broker = VirtualBroker().with_topic("t")
    writer, reader = broker.client(), broker.client()
    size = len(writer.batch(VALUE))
    write(writer, "t", 0, 3)
    most = 2 * size + size // 2
    asked = reader.send_fetch(("t", 0, 0), bytes_min=most, bytes_max=most, wait_ms=LONG_MS)
    assert is_answered_now(broker, reader, asked)


def test_a_batch_there_is_no_room_for_in_the_answer_counts_too():
    broker = VirtualBroker().with_topic("t", partitions=2)
    writer, reader = broker.client(), broker.client()
    size = len(writer.batch(VALUE))
    for partition in (0, 1):
        write(writer, "t", partition, 1)
    most = size + size // 2
    asked = reader.send_fetch(("t", 0, 0), ("t", 1, 0), bytes_min=most, bytes_max=most, wait_ms=LONG_MS)
    assert is_answered_now(broker, reader, asked)


def test_partitions_that_are_read_up_to_their_limits_are_not_waited_for():
    broker = VirtualBroker().with_topic("t", partitions=2)
    writer, reader = broker.client(), broker.client()
    for partition in (0, 1):
        write(writer, "t", partition, 4)
    wanted = [("t", partition, 0) for partition in (0, 1)]
    asked = reader.send_fetch(*wanted, bytes_min=MANY_BYTES, partition_bytes=1500, wait_ms=LONG_MS)
    assert is_answered_now(broker, reader, asked)


@pytest.mark.parametrize("partition_bytes", [0, -5])
def test_without_room_for_any_record_an_empty_partition_is_still_waited_for(partition_bytes):
    broker = VirtualBroker().with_topic("t")
    reader = broker.client()
    asked = reader.send_fetch(("t", 0, 0), partition_bytes=partition_bytes, wait_ms=LONG_MS)
    broker.steps()
    assert not reader.has_answer(asked)


# Fetches of more partitions than one turn reads


def is_reading(broker):
    """Return whether a fetch was read in part."""
    return any(connection.parked for connection in broker.node.loop.connections.all())


@pytest.mark.parametrize("isolation", [0, READ_COMMITTED])
def test_a_record_that_arrives_between_two_slices_is_not_a_wait_late(isolation):
    broker = VirtualBroker().with_topic("t", partitions=2)
    writer, reader = broker.client(), broker.client()
    wanted = [("t", 0, 0), *[("t", 1, 0)] * (20 * FETCH_PARTITIONS_PER_SLICE)]
    asked = reader.send_fetch(*wanted, wait_ms=LONG_MS, isolation=isolation)
    broker.run_until(lambda: is_reading(broker))
    assert writer.produce_error("t", 0, writer.batch(b"between")) == 0
    assert broker.metrics.parked_fetches == 0, "not all of it was read when the record came"
    before = broker.machine.clock.monotonic_ms()
    answers = reader.wait(asked).responses[0].partitions
    assert values_of(answers[0].records) == [b"between"]
    assert broker.machine.clock.monotonic_ms() - before < LONG_MS / 2
    assert all(broker.partition("t", index)._waiters.count == 0 for index in (0, 1))


@pytest.mark.parametrize("turn", range(8))
@pytest.mark.parametrize("partition", [0, 3, 6])
def test_in_whichever_turn_a_record_arrives_the_fetch_is_answered(monkeypatch, turn, partition):
    monkeypatch.setattr("headrace.broker.partitions.reader.FETCH_PARTITIONS_PER_SLICE", 1)
    broker = sliced_broker()
    reader = broker.client()
    ends = [broker.partition("sliced", index).log.end_offset for index in range(7)]
    wanted = [("sliced", index, end) for index, end in enumerate(ends)]
    before = broker.metrics.requests[ApiKey.FETCH]
    asked = reader.send_fetch(*wanted, wait_ms=LONG_MS)
    broker.run_until(lambda: broker.metrics.requests[ApiKey.FETCH] > before)
    broker.steps(turn)
    led, batch = broker.partition("sliced", partition), bytearray(reader.batch(b"now"))
    led.append_own(batch, reader.now())  # written when the turn ends, as what a client sent
    began = broker.machine.clock.monotonic_ms()
    answer = reader.wait(asked).responses[0].partitions[partition]
    assert values_of(answer.records) == [b"now"]
    assert broker.machine.clock.monotonic_ms() - began < LONG_MS / 2


@functools.cache
def sliced_broker():
    return VirtualBroker(seed=3).with_topic("sliced", partitions=7)


def test_a_fetch_that_many_partitions_wake_reads_them_again_over_several_turns(monkeypatch):
    monkeypatch.setattr("headrace.broker.partitions.reader.FETCH_PARTITIONS_PER_SLICE", 2)
    broker = VirtualBroker().with_topic("t", partitions=7)
    writer, reader = broker.client(), broker.client()
    size = len(writer.batch(VALUE))
    asked = reader.send_fetch(*[("t", index, 0) for index in range(7)], bytes_min=7 * size, wait_ms=LONG_MS)
    broker.run_until(lambda: broker.metrics.parked_fetches == 1)
    for index in range(7):
        assert not reader.has_answer(asked)
        write(writer, "t", index, 1)
    answers = reader.wait(asked).responses[0].partitions
    assert [values_of(answer.records) for answer in answers] == [[VALUE]] * 7


def test_a_node_that_stops_answers_a_fetch_that_is_read_in_part():
    broker = VirtualBroker().with_topic("t", partitions=2)
    reader = broker.client()
    wanted = [("t", index % 2, 0) for index in range(20 * FETCH_PARTITIONS_PER_SLICE)]
    asked = reader.send_fetch(*wanted, wait_ms=LONG_MS)
    broker.run_until(lambda: is_reading(broker))
    node, began = broker.node, broker.machine.clock.monotonic_ms()
    node.begin_stop()
    reader.wait(asked)
    broker.run_until(lambda: node.drained)
    assert broker.machine.clock.monotonic_ms() - began < LONG_MS / 2


# Any limits, any order


class Wish(NamedTuple):
    """One fetch, and what was sent before it without waiting for an answer."""

    produced: list[tuple[int, int]]
    """Partitions, and sizes of values."""
    offsets: list[int]
    bytes_min: int
    bytes_max: int
    partition_bytes: int
    turns: int
    """Between the records and the fetch."""


SIZES = st.sampled_from([1, 100, 300, 700, 1500])
LIMITS = st.sampled_from([0, 1, 150, 400, 800, 2_000, 5_000, MANY_BYTES])
WISHES = st.builds(
    Wish,
    produced=st.lists(st.tuples(st.integers(0, 2), SIZES), max_size=6),
    offsets=st.lists(st.integers(0, 4), min_size=3, max_size=3),
    bytes_min=LIMITS,
    bytes_max=LIMITS,
    partition_bytes=LIMITS,
    turns=st.integers(0, 6),
)


def readable_sizes(broker, log, offset):
    """Of the batches of all segments, from the one that contains the offset on."""
    sizes = []
    while offset < log.end_offset:
        part = log.read(offset, MANY_BYTES, log.end_offset, True)
        for batch in batches(broker.machine.disk.read(part.file, part.length, part.position)):
            sizes.append(len(batch))
            fields = HEADER.unpack_from(batch)
            offset = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1
    return sizes


@pytest.mark.slow
@settings(max_examples=25)
@given(wishes=st.lists(WISHES, min_size=1, max_size=3), slice_partitions=st.sampled_from([1, 2, 100]))
def test_no_fetch_waits_for_what_is_there(wishes, slice_partitions):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headrace.broker.partitions.reader.FETCH_PARTITIONS_PER_SLICE", slice_partitions)
        broker = VirtualBroker().with_topic("t", partitions=3, segment_bytes=1024)
        writers, reader = [broker.client() for _ in range(3)], broker.client()
        for wish in wishes:
            check(broker, writers, reader, wish)


def check(broker, writers, reader, wish):
    for partition, size in wish.produced:
        writers[partition].send_produce("t", partition, writers[partition].batch(bytes(size)))
    broker.steps(wish.turns)
    logs = [broker.partition("t", index).log for index in range(3)]
    wanted = [("t", index, min(offset, logs[index].end_offset)) for index, offset in enumerate(wish.offsets)]
    asked = reader.send_fetch(
        *wanted,
        bytes_min=wish.bytes_min,
        bytes_max=wish.bytes_max,
        partition_bytes=wish.partition_bytes,
        wait_ms=LONG_MS,
    )
    broker.run_until(lambda: reader.has_answer(asked) or broker.metrics.parked_fetches)
    broker.steps(30)
    there = [readable_sizes(broker, log, offset) for log, (_, _, offset) in zip(logs, wanted, strict=True)]
    within_limits = sum(min(sum(sizes), wish.partition_bytes) for sizes in there)
    if not reader.has_answer(asked):
        assert within_limits < min(wish.bytes_min, max(wish.bytes_max, 1))
        places = zip(logs, wanted, there, strict=True)
        assert all(log.bases[-1] <= offset for log, (_, _, offset), sizes in places if sizes), "none on an old segment"
    answers = reader.wait(asked).responses[0].partitions
    sizes_given = [len(answer.records or b"") for answer in answers]
    firsts = [sizes[0] for sizes in there if sizes]
    assert sum(sizes_given) <= max(wish.bytes_max, max(firsts, default=0))
    if wish.bytes_min > 0:
        assert any(sizes_given) == bool(firsts), "records that are there are given, whatever the limits"
