"""A follower's log: it takes what a leader sends as it is, and refuses what does not follow or is damaged."""

from dataclasses import replace
from errno import EIO, ENOSPC
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.log import names
from headrace.log.config import LogConfig
from headrace.log.errors import DamagedBatch, RefusedBatch, ReplicaDiverged
from headrace.log.partition_log import PartitionLog
from headrace.sim.entropy import SeededEntropy
from headrace.wire.records.batch_walk import WalkBounds, walk_batches
from headrace.wire.records.header import CRC_AT, HEADER, LEADER_EPOCH_AT, LENGTH_AT, MAGIC_AT, checksum
from headrace.wire.records.markers import control_batch

from .replica_world import (
    SMALL,
    Writer,
    catch_up,
    check_equal,
    check_indexes,
    content,
    joined,
    restamped,
    segment_bytes,
    sent,
    split,
    state_of,
)
from .world import FOLDER, NOW_MS, append, batch_of, open_log, read_all, run, virtual_disk


def leader_log(seed: int, config: LogConfig = SMALL, *, epochs: int = 3, turns: int = 8) -> PartitionLog:
    log = open_log(virtual_disk(seed), config, wall_ms=NOW_MS)
    writer = Writer(Random(seed))
    for epoch in range(epochs):
        log.begin_epoch(epoch * 2)
        writer.write(log, epoch * 2, turns)
    return log


@given(
    seed=st.integers(0, 2**32),
    max_bytes=st.sampled_from([1, 700, 5000]),
    parts=st.sampled_from(["record set", "batches", "halves"]),
)
@settings(max_examples=60, deadline=None)
def test_a_follower_becomes_equal_to_its_leader(seed: int, max_bytes: int, parts: str) -> None:
    leader = leader_log(seed)
    disk = virtual_disk(seed + 1)
    disk.faults.short_writes_one_in = seed % 4
    follower = open_log(disk, SMALL)
    while follower.end_offset < leader.end_offset:
        record_set = sent(leader, follower.end_offset, max_bytes=max_bytes)
        batches = split(record_set)
        half = len(batches) // 2
        given_as = {
            "record set": [record_set],
            "batches": batches,
            "halves": [joined(batches[:half]), joined(batches[half:])],
        }[parts]
        before = bytes(record_set)
        end_offset = follower.replicated.append(given_as, NOW_MS + 7)
        assert (
            end_offset
            == follower.end_offset
            == HEADER.unpack_from(batches[-1])[0] + HEADER.unpack_from(batches[-1])[6] + 1
        )
        assert bytes(record_set) == before, "the buffer belongs to the caller"
    check_equal(follower, leader)
    check_indexes(follower)
    assert read_all(follower) == read_all(leader)
    for base in set(follower.bases) & set(leader.bases):
        if follower.bases[follower.bases.index(base) + 1 :][:1] == leader.bases[leader.bases.index(base) + 1 :][:1]:
            assert segment_bytes(follower, base) == segment_bytes(leader, base)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_a_follower_is_the_same_after_any_stop(seed: int) -> None:
    """Kills, power cuts and clean stops, with flushes between them, leave a prefix and its state."""
    random, entropy = Random(seed), SeededEntropy(seed)
    leader = leader_log(seed)
    disk = virtual_disk(seed)
    disk.make_directory(FOLDER)
    disk.sync_directory("data")
    disk.sync_directory("")
    follower = open_log(disk, SMALL)
    recovery_point = 0
    while follower.end_offset < leader.end_offset:
        follower.replicated.append([sent(leader, follower.end_offset, max_bytes=900)], NOW_MS)
        how = random.randrange(8)
        if how == 0 and (work := follower.flush_work()) is not None:
            run(work)
            recovery_point = follower.recovery_point
        elif how == 1:
            disk.kill()
            end_offset = follower.end_offset
            follower = open_log(disk, SMALL, recovery_point=recovery_point)
            assert follower.end_offset == end_offset
        elif how == 2:
            disk.crash(entropy)
            follower = open_log(disk, SMALL, recovery_point=recovery_point)
            assert follower.end_offset >= recovery_point
        elif how == 3:
            follower.close()
            recovery_point = follower.recovery_point
            follower = open_log(disk, SMALL, recovery_point=recovery_point, clean=True)
        elif how == 4 and (work := follower.preallocation.work()) is not None:
            run(work)
    check_equal(follower, leader)
    check_indexes(follower)


@pytest.mark.parametrize("seed", range(8))
def test_what_a_follower_counts_as_synced_survives_a_power_cut(seed: int) -> None:
    """With flush.messages=1 it tells its leader no higher offset."""
    config = replace(SMALL, flush_messages=1)
    leader, entropy = leader_log(seed), SeededEntropy(seed)
    disk = virtual_disk(seed)
    disk.make_directory(FOLDER)
    disk.sync_directory("data")
    disk.sync_directory("")
    follower = open_log(disk, config)
    while follower.end_offset < leader.end_offset:
        synced = follower.synced_offset
        follower.replicated.append([sent(leader, follower.end_offset, max_bytes=900)], NOW_MS)
        assert follower.flush_due(NOW_MS)
        assert follower.synced_offset == synced
        if entropy.below(3):
            run(follower.flush_work())
            assert follower.synced_offset == follower.end_offset
        if entropy.below(4) == 0:
            synced = follower.synced_offset
            disk.crash(entropy)
            follower = open_log(disk, config, recovery_point=follower.recovery_point)
            assert follower.end_offset >= synced
    check_equal(follower, leader)


def refused(log: PartitionLog, record_set: memoryview | bytes, **bounds: int) -> RefusedBatch:
    with pytest.raises(RefusedBatch) as caught:
        log.replicated.append([memoryview(record_set)], NOW_MS, **bounds)
    return caught.value


def three_batches() -> bytearray:
    """Offsets 0, 1-2 and 3, of leader epoch 4."""
    batches = [batch_of(b"a"), batch_of(b"b", b"c"), batch_of(b"d")]
    return bytearray(joined(restamped(batches, first_offset=0, leader_epoch=4)))


def third_of(record_set: bytearray) -> int:
    return sum(len(batch) for batch in split(memoryview(record_set))[:2])


@pytest.mark.parametrize(
    ("at", "change", "kind", "text"),
    [
        (MAGIC_AT, b"\x01", DamagedBatch, "unknown batch format 1"),
        (LENGTH_AT, b"\x00\x00\x00\x10", DamagedBatch, "less than its header needs"),
        (LENGTH_AT, b"\xff\xff\xff\xf0", DamagedBatch, "less than its header needs"),
        (LENGTH_AT, b"\x7f\x00\x00\x00", DamagedBatch, "more than the"),
        (LENGTH_AT, b"\x00\x00\x0f\x00", DamagedBatch, "only"),
        (CRC_AT, b"\x00\x00\x00\x00", DamagedBatch, "checksum"),
        (60, b"\x09", DamagedBatch, "declares"),
        (0, (2).to_bytes(8), ReplicaDiverged, "below the next offset 3"),
        (0, (4).to_bytes(8), ReplicaDiverged, "instead of 3"),
        (0, b"\x80" + bytes(7), ReplicaDiverged, "below the next offset 3"),
        (0, b"\x7f" + b"\xff" * 7, DamagedBatch, "offsets from"),
        (LEADER_EPOCH_AT, (3).to_bytes(4), ReplicaDiverged, "leader epoch 3 after 4"),
        (LEADER_EPOCH_AT, b"\xff" * 4, ReplicaDiverged, "leader epoch -1"),
        (LEADER_EPOCH_AT, (9).to_bytes(4), ReplicaDiverged, "above the current 8"),
        (LEADER_EPOCH_AT, b"\x7f\xff\xff\xff", ReplicaDiverged, "above the current 8"),
    ],
)
@pytest.mark.parametrize("separate", [False, True])
def test_a_bad_batch_is_refused_and_the_good_prefix_kept(
    at: int, change: bytes, kind: type, text: str, separate: bool
) -> None:
    log = open_log(virtual_disk())
    record_set = three_batches()
    third = third_of(record_set)
    good = bytes(record_set)
    record_set[third + at : third + at + len(change)] = change
    parts = [memoryview(record_set)[:third], memoryview(record_set)[third:]] if separate else [memoryview(record_set)]
    with pytest.raises(kind, match=text) as caught:
        log.replicated.append(parts, NOW_MS, leader_epoch_max=8)
    assert isinstance(caught.value, RefusedBatch)
    assert str(log.topic_partition) in str(caught.value)
    assert "offset 3" in str(caught.value)
    assert caught.value.offset == log.end_offset == log.staged_end_offset == 3
    assert not log.failed
    assert [value for _, value in read_all(log)] == [b"a", b"b", b"c"]
    assert log.replicated.append([memoryview(good)[third:]], NOW_MS) == 4
    assert content(log) == good


def test_a_cut_off_batch_is_refused() -> None:
    for left in (1, 20, 60, 61, 65):
        log = open_log(virtual_disk())
        record_set = three_batches()
        assert "bytes" in refused(log, record_set[: third_of(record_set) + left]).reason
        assert log.end_offset == 3


def test_a_header_that_promises_too_many_records_is_refused() -> None:
    log = open_log(virtual_disk())
    (batch,) = restamped([batch_of(b"a")], first_offset=0, leader_epoch=0)
    batch[57:61] = (2).to_bytes(4)
    batch[CRC_AT : CRC_AT + 4] = checksum(batch).to_bytes(4)
    assert "declares 2 records" in refused(log, batch).reason
    assert log.end_offset == 0


def test_batches_before_the_end_are_never_taken_silently() -> None:
    leader = leader_log(5)
    follower = open_log(virtual_disk(), SMALL)
    catch_up(follower, leader)
    before = state_of(follower)
    error = refused(follower, sent(leader, 0))
    assert isinstance(error, ReplicaDiverged)
    assert (error.offset, error.found) == (leader.end_offset, 0)
    assert state_of(follower) == before


def test_a_batch_larger_than_the_limit_is_refused() -> None:
    log = open_log(virtual_disk(), LogConfig(replicated_batch_bytes_max=1000))
    (batch,) = restamped([batch_of(bytes(1000))], first_offset=0, leader_epoch=0)
    error = refused(log, batch)
    assert isinstance(error, DamagedBatch)
    assert "more than the 1000" in error.reason


def test_an_undecodable_marker_is_refused() -> None:
    """It would stop every later recovery of the log."""
    marker = control_batch(producer_id=1, producer_epoch=0, commit=True, coordinator_epoch=0, timestamp=NOW_MS)
    marker[-7:-5] = b"\xff\xff"  # the version of its value
    batches = restamped([batch_of(b"a"), marker, batch_of(b"b")], first_offset=0, leader_epoch=0)
    marker[CRC_AT : CRC_AT + 4] = checksum(marker).to_bytes(4)
    log = open_log(virtual_disk())
    error = refused(log, joined(batches))
    assert isinstance(error, DamagedBatch)
    assert "version" in error.reason
    assert log.end_offset == error.offset == 1
    assert log.producers.describe() == []


def test_a_gap_needs_a_compacted_log_and_marks_the_folder() -> None:
    disk = virtual_disk()
    disk.make_directory(FOLDER)
    disk.sync_directory("data")
    disk.sync_directory("")
    log = open_log(disk)
    first, second = restamped([batch_of(b"a"), batch_of(b"b")], first_offset=0, leader_epoch=0)
    second[0:8] = (7).to_bytes(8)
    assert isinstance(refused(log, joined([first, second])), ReplicaDiverged)
    assert log.replicated.append([second], NOW_MS, gaps=True) == 8
    assert disk.exists(f"{FOLDER}/{names.COMPACTED}")
    run(log.flush_work())
    disk.crash(SeededEntropy(1))
    again = open_log(disk, recovery_point=8)
    assert read_all(again) == [(0, b"a"), (7, b"b")]
    assert again.replicated.append(restamped([batch_of(b"c")], first_offset=9, leader_epoch=0), NOW_MS) == 10


def test_a_compacted_log_takes_gaps_and_survives_a_kill_between_segments() -> None:
    """A segment that begins right after the last one is not mistaken for one whose predecessor lost its end."""
    disk = virtual_disk()
    config = LogConfig(segment_bytes=200, compact=True)
    log = open_log(disk, config)
    for offset in (3, 9, 20, 21, 40):
        log.replicated.append(restamped([batch_of(bytes(100))], first_offset=offset, leader_epoch=offset), NOW_MS)
    assert len(log.segments) > 2
    before = state_of(log)
    disk.kill()
    assert state_of(open_log(disk, config)) == before


def test_a_very_large_gap_begins_a_segment() -> None:
    disk = virtual_disk()
    log = open_log(disk, LogConfig(index_interval_bytes=0), start_offset=5)
    far = 5_000_000_000
    for offset in (far, far + 1, far + 2):
        log.replicated.append(restamped([batch_of(b"a")], first_offset=offset, leader_epoch=0), NOW_MS, gaps=True)
    assert log.bases == [5, far]
    log.close()
    again = open_log(disk, LogConfig(index_interval_bytes=0), start_offset=5, recovery_point=far + 3, clean=True)
    assert [offset for offset, _ in read_all(again)] == [far, far + 1, far + 2]


@pytest.mark.parametrize("segment_bytes", [250, 1 << 20])
def test_a_full_disk_leaves_the_log_at_the_last_whole_batch(segment_bytes: int) -> None:
    disk = virtual_disk()
    log = open_log(disk, LogConfig(segment_bytes=segment_bytes))
    record_set = memoryview(three_batches())
    disk.capacity_bytes = disk._used_bytes + 100
    with pytest.raises(OSError) as caught:
        log.replicated.append([record_set], NOW_MS)
    assert caught.value.errno == ENOSPC
    assert not log.failed
    assert log.staged_end_offset == log.end_offset
    disk.capacity_bytes = 1 << 20
    rest = [batch for batch in split(record_set) if HEADER.unpack_from(batch)[0] >= log.end_offset]
    assert log.replicated.append(rest, NOW_MS) == 4
    assert content(log) == bytes(record_set)
    assert log.epochs.starts == [0]


def test_a_failing_disk_fails_the_log() -> None:
    disk = virtual_disk()
    log = open_log(disk)
    disk.faults.fail("write_vector", code=EIO)
    with pytest.raises(OSError):
        log.replicated.append([memoryview(three_batches())], NOW_MS)
    assert log.failed


def test_a_follower_can_lead_afterwards() -> None:
    leader = leader_log(9)
    follower = open_log(virtual_disk(), SMALL)
    catch_up(follower, leader)
    follower.begin_epoch(40)
    (offset,) = append(follower, batch_of(b"mine"), epoch=40)
    assert offset == leader.end_offset
    catch_up(leader, follower)
    check_equal(leader, follower)
    assert leader.epoch_end(4) == (4, offset)


def test_a_walk_says_where_it_stopped() -> None:
    record_set = memoryview(three_batches())
    places, noted, end = walk_batches(record_set, WalkBounds(0, -1))
    assert [(base, last) for base, last, _, _ in places] == [(0, 0), (1, 2), (3, 3)]
    assert [position for position, _ in noted] == [0]
    assert end == len(record_set)
