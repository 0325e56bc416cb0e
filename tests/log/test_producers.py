"""Idempotent producers: what is new, what is a retry, what is refused, and what a snapshot keeps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log import producer_snapshot
from headrace.log.errors import CorruptFile, SequenceRejected
from headrace.log.producers import (
    APPEND,
    CACHED_BATCHES_MAX,
    EXPIRY_PRODUCERS_MAX,
    SEQUENCE_MAX,
    ProducerStates,
    sequence_after,
)
from headrace.log.uptime import DirectoryUptime
from headrace.model.errors import ErrorCode
from headrace.wire.checksum import crc32c
from headrace.wire.records.header import (
    MAX_TIMESTAMP,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    TRANSACTIONAL_BIT,
    HeaderFields,
)

from .world import NOW_MS, append, batch_of, open_log, virtual_disk

DAY_MS = 86_400_000


def batch(sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7, attributes: int = 0) -> HeaderFields:
    return (0, 100, -1, 2, 0, attributes, count - 1, NOW_MS, NOW_MS, producer_id, epoch, sequence, count)


def appended(states: ProducerStates, *batches: tuple[int, HeaderFields]) -> None:
    for offset, fields in batches:
        states.appended(fields, offset, NOW_MS + offset, NOW_MS + offset)


def refused(states: ProducerStates, fields: HeaderFields) -> ErrorCode:
    with pytest.raises(SequenceRejected) as rejected:
        states.admit(fields)
    return rejected.value.error


def test_a_producer_the_log_does_not_know_may_begin_anywhere() -> None:
    assert ProducerStates().admit(batch(17)) == APPEND


def test_the_next_sequence_is_taken_and_a_gap_or_an_overlap_refused() -> None:
    states = ProducerStates()
    appended(states, (0, batch(0, 3)))
    assert states.admit(batch(3)) == APPEND
    assert refused(states, batch(4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(states, batch(2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(states, batch(0, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 1), st.sampled_from([7, 8]), st.booleans()),
        max_size=30,
    ),
    st.sets(st.integers(0, 30), max_size=3),
)
def test_one_look_is_as_good_as_two(drawn: list[tuple[int, int, int, int, bool]], freezes: set[int]) -> None:
    """`advance` where it may, against `admit` and `appended`: retries, gaps, new epochs, transactions, snapshots."""
    slow, quick = ProducerStates(), ProducerStates()
    next_sequences = {7: 0, 8: SEQUENCE_MAX - 2}
    for offset, (back, count, epoch, producer_id, transactional) in enumerate(drawn):
        if offset in freezes:
            assert slow.freeze(offset).keys() == quick.freeze(offset).keys()
        sequence = max(next_sequences[producer_id] - back, 0)
        attributes = TRANSACTIONAL_BIT if transactional else 0
        fields = batch(sequence, count, epoch=epoch, producer_id=producer_id, attributes=attributes)
        outcomes = []
        for states in (slow, quick):
            if states is quick and states.advance(fields, offset, NOW_MS):
                outcomes.append((APPEND, None))
                continue
            try:
                outcomes.append((states.admit(fields), None))
            except SequenceRejected as rejected:
                outcomes.append((None, rejected.error))
            if outcomes[-1][0] == APPEND:
                states.appended(fields, offset, fields[MAX_TIMESTAMP], NOW_MS)
        assert outcomes[0] == outcomes[1]
        if outcomes[0][0] == APPEND:
            next_sequences[producer_id] = sequence_after(sequence, count)
        assert list(slow.describe()) == list(quick.describe())
        assert slow.open == quick.open


def test_the_last_five_batches_are_known_by_offset_and_time_and_older_ones_refused() -> None:
    states = ProducerStates()
    appended(states, *((10 * n, batch(2 * n, 2)) for n in range(7)))
    for n in range(2, 7):
        assert states.admit(batch(2 * n, 2)) == 10 * n
        assert states.duplicate_timestamp == NOW_MS + 10 * n
    assert refused(states, batch(2, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_old_epoch_is_fenced_and_a_new_one_begins_at_zero() -> None:
    states = ProducerStates()
    appended(states, (0, batch(0, epoch=3)))
    assert refused(states, batch(1, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(states, batch(1, epoch=4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.admit(batch(0, epoch=4)) == APPEND
    appended(states, (1, batch(0, epoch=4)))
    assert states.admit(batch(0, epoch=4)) == 1
    assert refused(states, batch(0, epoch=3)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_wrap_between_and_within_batches() -> None:
    states = ProducerStates()
    appended(states, (0, batch(SEQUENCE_MAX - 1, 2)))
    assert states.admit(batch(0)) == APPEND
    assert refused(states, batch(1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    within = ProducerStates()
    appended(within, (0, batch(SEQUENCE_MAX - 1, 5)))
    assert within.admit(batch(3)) == APPEND
    assert within.admit(batch(SEQUENCE_MAX - 1, 5)) == 0
    assert sequence_after(SEQUENCE_MAX - 1, 4) == 2


def test_silent_producers_are_forgotten_and_may_come_back_anywhere() -> None:
    uptime = DirectoryUptime()
    states = ProducerStates(uptime)
    appended(states, (0, batch(0)), (5, batch(0, producer_id=8)))
    uptime.ms = DAY_MS
    assert states.expire(NOW_MS + DAY_MS - 1, DAY_MS) == 0
    assert states.expire(NOW_MS + DAY_MS, DAY_MS) == 1
    assert [description.producer_id for description in states.describe()] == [8]
    assert states.admit(batch(99)) == APPEND


def test_a_producer_of_old_events_is_not_silent() -> None:
    uptime = DirectoryUptime()
    states = ProducerStates(uptime)
    states.appended(batch(0), 0, NOW_MS - 300 * DAY_MS, NOW_MS)
    uptime.ms = DAY_MS
    assert states.expire(NOW_MS + DAY_MS - 1, DAY_MS) == 0
    assert states.admit(batch(0)) == 0
    assert states.describe()[0].last_timestamp == NOW_MS - 300 * DAY_MS
    assert states.expire(NOW_MS + DAY_MS, DAY_MS) == 1


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 2 * DAY_MS), st.integers(-9 * DAY_MS, 9 * DAY_MS), st.booleans()), max_size=8
    )
)
def test_a_producer_is_forgotten_when_both_clocks_say_so(steps: list[tuple[int, int, bool]]) -> None:
    """Time passes, the wall clock jumps, and in between the states may go through a snapshot: a restart."""
    uptime, wall_ms = DirectoryUptime(), NOW_MS
    states = ProducerStates(uptime)
    states.appended(batch(0), 0, NOW_MS, NOW_MS)
    for passed_ms, jump_ms, restarts in steps:
        uptime.ms += passed_ms
        wall_ms += passed_ms + jump_ms
        if restarts:
            uptime = DirectoryUptime(uptime.ms)
            content = producer_snapshot.encode(states.freeze(1), below=1)
            states = producer_snapshot.decode(content, seen_ms=wall_ms, uptime=uptime)
        is_over = uptime.ms >= DAY_MS and wall_ms - NOW_MS >= DAY_MS
        states.expire(wall_ms, DAY_MS)
        assert (len(states) == 0) is is_over
        if is_over:
            return


def test_silence_counts_from_the_opening_for_what_a_snapshot_lacks() -> None:
    disk = virtual_disk()
    log = open_log(disk)
    for producer_id in (1, 2):
        append(log, batch_of(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=0, timestamps=[5]))
        if producer_id == 1:
            log.roll()  # a snapshot knows the first, only the log the second
            work = log.flush_work()
            assert work is not None
            work.run_inline()
    disk.kill()
    uptime = DirectoryUptime(9 * DAY_MS)
    again = open_log(disk, wall_ms=NOW_MS + 9 * DAY_MS, uptime=uptime)
    assert again.producers.expire(NOW_MS + 10 * DAY_MS - 1, DAY_MS) == 1, "the first, which was silent before"
    assert again.producers.expire(NOW_MS + 10 * DAY_MS, DAY_MS) == 0
    uptime.ms += DAY_MS
    assert again.producers.expire(NOW_MS + 10 * DAY_MS, DAY_MS) == 1


def test_very_many_producers_are_looked_at_in_several_calls() -> None:
    uptime = DirectoryUptime()
    states = ProducerStates(uptime)
    count = 2 * EXPIRY_PRODUCERS_MAX + 10
    for producer_id in range(count):
        states.appended(batch(0, producer_id=producer_id), producer_id, NOW_MS, NOW_MS)
    uptime.ms = DAY_MS
    expired = [states.expire(NOW_MS + DAY_MS, DAY_MS) for _ in range(3)]
    assert expired == [EXPIRY_PRODUCERS_MAX, EXPIRY_PRODUCERS_MAX, 10]
    assert len(states) == 0


@given(
    before=st.lists(st.integers(0, 2), max_size=12),
    staged=st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=4),
)
def test_what_is_taken_back_is_admitted_again_and_what_was_there_is_still_known(
    before: list[int], staged: list[tuple[int, bool]]
) -> None:
    states = ProducerStates()
    epochs, sequences, last = [0] * 4, [0] * 4, dict[int, HeaderFields]()
    for offset, producer_id in enumerate(before):
        last[producer_id] = batch(sequences[producer_id], producer_id=producer_id)
        states.appended(last[producer_id], offset, NOW_MS, NOW_MS)
        sequences[producer_id] += 1
    end_offset = len(before)
    turn = []
    for offset, (producer_id, bump) in enumerate(staged, end_offset):
        if bump:
            epochs[producer_id], sequences[producer_id] = epochs[producer_id] + 1, 0
        fields = batch(sequences[producer_id], epoch=epochs[producer_id], producer_id=producer_id)
        assert states.admit(fields) == APPEND
        states.appended(fields, offset, NOW_MS, NOW_MS)
        sequences[producer_id] += 1
        turn.append(fields)
    states.take_back({producer_id for producer_id, _ in staged}, end_offset)
    assert all(entry[3] < end_offset for _, state in states.states() for entry in state.batches)
    for producer_id, fields in last.items():
        if not epochs[producer_id]:
            assert states.admit(fields) == max(at for at, wrote in enumerate(before) if wrote == producer_id)
    newest = [fields for fields in turn if fields[PRODUCER_EPOCH] == epochs[fields[PRODUCER_ID]]]
    for offset, fields in enumerate(newest, end_offset):
        assert states.admit(fields) == APPEND
        states.appended(fields, offset, NOW_MS, NOW_MS)


def test_as_many_as_are_remembered_are_taken_back_and_admitted_again() -> None:
    states = ProducerStates()
    for number in range(3):
        states.appended(batch(number), number, NOW_MS, NOW_MS)
    turn = [batch(3 + number) for number in range(CACHED_BATCHES_MAX)]
    for number, fields in enumerate(turn):
        states.appended(fields, 3 + number, NOW_MS, NOW_MS)
    states.take_back({turn[0][PRODUCER_ID]}, 3)
    for number, fields in enumerate(turn):
        assert states.admit(fields) == APPEND
        states.appended(fields, 3 + number, NOW_MS, NOW_MS)


@pytest.mark.parametrize("staged", [True, False])
def test_what_follows_a_batch_that_found_no_room_does_not_get_ahead_of_it(staged: bool) -> None:
    states = ProducerStates()
    if staged:
        states.appended(batch(0), 0, NOW_MS, NOW_MS)
        states.take_back({batch(0)[PRODUCER_ID]}, 0)
    else:
        states.note_refused_batch(batch(0))
        states.note_refused_batch(batch(1))
    with pytest.raises(SequenceRejected, match="sequence 1, but 0 must come first"):
        states.admit(batch(1))
    assert states.admit(batch(0, epoch=1)) == APPEND
    for number in range(2):
        assert states.admit(batch(number)) == APPEND
        states.appended(batch(number), number, NOW_MS, NOW_MS)


@given(first=st.lists(st.integers(0, 3), max_size=20), later=st.lists(st.integers(0, 3), max_size=20))
def test_a_frozen_copy_does_not_change_with_the_log(first: list[int], later: list[int]) -> None:
    states, sequences = ProducerStates(), [0] * 4
    frozen, taken = states.freeze(1 << 62), b""
    for offset, producer_id in enumerate((*first, *later)):
        if offset == len(first):
            frozen = states.freeze(1 << 62)
            taken = producer_snapshot.encode(frozen, below=1000)
        states.appended(batch(sequences[producer_id], producer_id=producer_id), offset, NOW_MS, NOW_MS)
        sequences[producer_id] += 1
    if later:
        assert producer_snapshot.encode(frozen, below=1000) == taken


def test_describe_says_the_last_sequence_and_time() -> None:
    states = ProducerStates()
    appended(states, (4, batch(0, 3, epoch=2)))
    (description,) = states.describe()
    assert description == (7, 2, 2, NOW_MS + 4, -1, -1)


runs = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 4), st.booleans()), min_size=1, max_size=40
)


@given(runs=runs, below=st.integers(0, 200))
def test_a_snapshot_keeps_what_is_below_its_offset(runs: list[tuple[int, int, int, bool]], below: int) -> None:
    states = ProducerStates()
    kept = ProducerStates()
    epochs = [0] * 4
    sequences = [SEQUENCE_MAX - 3] * 4
    offset = 0
    for producer_id, gap, count, bump in runs:
        if bump:
            epochs[producer_id] += 1
            sequences[producer_id] = 0
        offset += gap
        fields = batch(sequences[producer_id], count, epoch=epochs[producer_id], producer_id=producer_id)
        states.appended(fields, offset, NOW_MS + offset, NOW_MS + offset)
        sequences[producer_id] = sequence_after(sequences[producer_id], count)
        offset += count
        if offset <= below:
            kept.appended(fields, offset - count, NOW_MS + offset - count, NOW_MS)
    whole = producer_snapshot.decode(producer_snapshot.encode(states.freeze(1 << 62), below=offset))
    assert dict(described(whole)) == dict(described(states))
    if below >= offset:
        assert dict(described(kept)) == dict(described(states))
    again = producer_snapshot.encode(whole.freeze(1 << 62), below=offset)
    assert again == producer_snapshot.encode(states.freeze(1 << 62), below=offset)
    for _, state in producer_snapshot.decode(producer_snapshot.encode(states.freeze(1 << 62), below=below)).states():
        assert all(entry[3] < below for entry in state.batches)


def described(states: ProducerStates) -> list[tuple[int, tuple[object, ...]]]:
    return [(producer_id, (state.epoch, list(state.batches))) for producer_id, state in states.states()]


@given(st.binary(max_size=200))
def test_noise_is_no_snapshot(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        producer_snapshot.decode(content)


def test_a_snapshot_without_our_part_is_read() -> None:
    """One that Kafka wrote: silence counts from now on."""
    states = ProducerStates()
    states.appended(batch(4, 3, epoch=1, producer_id=9), 100, NOW_MS, NOW_MS)
    content = producer_snapshot.encode(states.freeze(1 << 62), below=103)
    body = content[6:56]
    found = producer_snapshot.decode(
        content[:2] + crc32c(body).to_bytes(4) + body, seen_ms=5, uptime=DirectoryUptime(3)
    )
    assert [(state.seen_ms, state.seen_uptime_ms) for _, state in found.states()] == [(5, 3)]
    body = content[6:-1]
    with pytest.raises(CorruptFile, match="after its entries"):
        producer_snapshot.decode(content[:2] + crc32c(body).to_bytes(4) + body)


def test_the_snapshot_begins_byte_for_byte_with_what_kafka_writes_for_one_batch() -> None:
    states = ProducerStates()
    states.appended(batch(4, 3, epoch=1, producer_id=9), 100, NOW_MS, NOW_MS)
    content = producer_snapshot.encode(states.freeze(1 << 62), below=103)
    assert content[:2] == b"\x00\x01"
    assert content[56:] == (1).to_bytes(4) + (9).to_bytes(8) + NOW_MS.to_bytes(8) + (0).to_bytes(8), "ours"
    assert content[6:56] == (
        (1).to_bytes(4, "big")
        + (9).to_bytes(8, "big")
        + (1).to_bytes(2, "big")
        + (6).to_bytes(4, "big")
        + (102).to_bytes(8, "big")
        + (2).to_bytes(4, "big")
        + NOW_MS.to_bytes(8, "big")
        + b"\xff" * 4
        + b"\xff" * 8
    )
