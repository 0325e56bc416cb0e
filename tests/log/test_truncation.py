"""Truncation of a follower's log: afterwards it is as if the dropped part had never been there, whatever happens."""

from errno import EIO, ENOSPC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.log.config import LogConfig
from headrace.log.directory import LogDirectory
from headrace.log.partition_log import PartitionLog
from headrace.log.scrub import SegmentScrub
from headrace.log.work import NotStarted, Work
from headrace.sim.disk import VirtualDisk
from headrace.sim.entropy import SeededEntropy
from headrace.wire.records.header import HEADER

from .replica_world import (
    SMALL,
    catch_up,
    check_indexes,
    content,
    restamped,
    segment_bytes,
    split,
    state_of,
)
from .transactions_world import data_batch, stage_data, stage_marker
from .truncation_world import LARGE, check_same, ends, forked, history, new_disk, replica_of
from .world import (
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    batch_of,
    open_log,
    read_all,
    run,
    truncate,
    virtual_disk,
)


@given(seed=st.integers(0, 2**32), share=st.floats(0, 1), flushes=st.sampled_from(["never", "before", "in the middle"]))
@settings(max_examples=60, deadline=None)
def test_a_truncated_log_never_had_what_was_dropped(seed: int, share: float, flushes: str) -> None:
    leader = history(seed)
    offset = int(share * leader.end_offset)
    disk = new_disk(seed)
    log = replica_of(leader, below=leader.end_offset // 2, disk=disk)
    if flushes == "in the middle":
        run(log.flush_work())
    catch_up(log, leader)
    if flushes == "before":
        run(log.flush_work())
    truncate(log, offset)
    expected = replica_of(leader, below=offset)
    check_same(log, expected)
    assert not log.is_truncating
    assert not log.has_work
    fork = forked(leader, offset, seed + 1, leader_epoch=9)
    catch_up(log, fork, max_bytes=1500)
    check_same(log, fork)
    assert log.epoch_end(9) == fork.epoch_end(9)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32),
    share=st.floats(0, 1),
    step=st.integers(0, 60),
    power=st.booleans(),
    again=st.integers(0, 20),
)
@settings(max_examples=120, deadline=None)
def test_a_crash_at_any_step_leaves_the_old_log_or_the_truncated_one(
    seed: int, share: float, step: int, power: bool, again: int
) -> None:
    """The process dies in a truncation, and perhaps also in the start that finishes it. The stored recovery point is
    still the old one.
    """
    entropy = SeededEntropy(seed)
    leader = history(seed)
    offset = int(share * leader.end_offset)
    disk = new_disk(seed)
    log = replica_of(leader, disk=disk)
    run(log.flush_work())
    recovery_point = log.recovery_point
    before, after = state_of(log), state_of(replica_of(leader, below=offset))

    def cut() -> None:
        disk.crash(entropy) if power else disk.kill()

    def reopen() -> PartitionLog:
        return open_log(disk, SMALL, recovery_point=recovery_point)

    work = log.truncation.work(offset)
    crashed = work is not None and not ends(disk, step, work.run)
    cut()
    if again and crashed and not ends(disk, again, reopen):
        cut()
    log = reopen()
    assert state_of(log) in ((before, after) if crashed else (after,))
    check_indexes(log)
    cut()
    log = reopen()
    truncate(log, offset)
    assert state_of(log) == after
    fork = forked(leader, offset, seed + 1, leader_epoch=9)
    catch_up(log, fork, max_bytes=1500)
    run(log.flush_work())
    cut()
    log = open_log(disk, SMALL, recovery_point=log.recovery_point)
    check_same(log, fork)


@given(seed=st.integers(0, 2**32), share=st.floats(0, 1), step=st.integers(0, 40))
@settings(max_examples=40, deadline=None)
def test_unsynced_batches_may_be_lost_but_never_mixed(seed: int, share: float, step: int) -> None:
    """Without a flush, a power cut in a truncation leaves some prefix of the old log, or of the truncated one."""
    entropy = SeededEntropy(seed)
    leader = history(seed)
    disk = new_disk(seed)
    log = replica_of(leader, disk=disk)
    if entropy.below(2) and (lengthening := log.preallocation.work()) is not None:
        run(lengthening)
    work = log.truncation.work(int(share * leader.end_offset))
    if work is not None:
        ends(disk, step, work.run)
    disk.crash(entropy)
    log = open_log(disk, SMALL)
    expected = replica_of(leader, below=log.end_offset)
    check_same(log, expected)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32),
    share=st.floats(0, 1),
    flushes=st.booleans(),
    early=st.booleans(),
    config=st.sampled_from([SMALL, LARGE]),
)
@settings(max_examples=120, deadline=None)
def test_what_was_dropped_never_returns_among_later_batches(
    seed: int, share: float, flushes: bool, early: bool, config: LogConfig
) -> None:
    """Neither in the segments nor in the indexes, when the power fails before the new batches are synced."""
    entropy = SeededEntropy(seed)
    leader = history(seed)
    offset = int(share * leader.end_offset)
    disk = new_disk(seed)
    log = replica_of(leader, disk=disk, config=config)
    log.close()
    recovery_point = log.recovery_point
    log = open_log(disk, config, recovery_point=recovery_point, clean=True)
    truncate(log, offset)
    fork = forked(leader, offset, seed + 1, leader_epoch=9)
    catch_up(log, fork, max_bytes=700)
    if flushes:
        run(log.flush_work())
    disk.crash(entropy)
    stored = recovery_point if early else log.recovery_point
    log = open_log(disk, config, recovery_point=stored)
    kept = replica_of(fork, below=log.end_offset)
    check_same(log, kept)
    for later in range(0, 2500, 100):
        found = log.offset_at_time(NOW_MS + later, log.end_offset)()
        assert found == kept.offset_at_time(NOW_MS + later, kept.end_offset)()


@given(seed=st.integers(0, 2**32), offset=st.sampled_from([0, 7, 5000]), step=st.integers(0, 60), power=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_restarted_log_is_empty_or_the_old_one(seed: int, offset: int, step: int, power: bool) -> None:
    entropy = SeededEntropy(seed)
    leader = history(seed)
    disk = new_disk(seed)
    log = replica_of(leader, disk=disk)
    run(log.flush_work())
    recovery_point, before = log.recovery_point, state_of(log)
    finished = ends(disk, step, log.truncation.restart(offset).run)
    disk.crash(entropy) if power else disk.kill()
    log = open_log(disk, SMALL, recovery_point=recovery_point)
    if not finished and state_of(log) == before:
        run(log.truncation.restart(offset))
    assert (log.start_offset, log.end_offset, log.size_bytes) == (offset, offset, 0)
    assert (log.epochs.epochs, log.producers.describe(), log.bases) == ([], [], [offset])
    batches = restamped([batch_of(b"a"), batch_of(b"b")], first_offset=offset, leader_epoch=2)
    assert log.replicated.append(batches, NOW_MS) == offset + 2
    run(log.flush_work())
    disk.crash(entropy) if power else disk.kill()
    log = open_log(disk, SMALL, recovery_point=log.recovery_point)
    assert read_all(log) == [(offset, b"a"), (offset + 1, b"b")]
    assert log.epochs.starts == [offset]


def test_a_restart_in_place() -> None:
    log = replica_of(history(3))
    run(log.truncation.restart(1_000_000))
    assert (log.start_offset, log.end_offset, log.recovery_point, log.synced_offset) == (1_000_000,) * 4
    assert append(log, batch_of(b"a")) == [1_000_000]
    assert read_all(log) == [(1_000_000, b"a")]


# Refusals and waits


def test_nothing_else_happens_to_a_log_that_is_truncated() -> None:
    config = LogConfig(
        segment_bytes=1000, retention_bytes=1, flush_messages=1, preallocation_bytes_min=64, preallocation_bytes_max=512
    )
    log = open_log(virtual_disk(), config)
    for _ in range(20):
        append(log, batch_of(bytes(100)))
    work = log.truncation.work(5)
    assert work is not None
    assert log.is_truncating
    assert log.has_work
    assert log.names_generation % 2, "searches and scans wait"
    assert (log.flush_work(), log.preallocation.work(), log.retirement.work(NOW_MS, 20)) == (None, None, None)
    with pytest.raises(AssertionError):
        log.replicated.append([memoryview(batch_of(b"a"))], NOW_MS)
    with pytest.raises(AssertionError):
        append(log, batch_of(b"a"))
    log.discard_staged()
    with pytest.raises(OSError, match="not finished"):
        log.close()
    work.run_inline()
    assert log.end_offset == 5
    assert log.names_generation % 2 == 0
    assert append(log, batch_of(b"a")) == [5]


def test_a_truncation_waits_for_helpers_that_work_on_the_log() -> None:
    log = replica_of(history(1))
    work = log.flush_work()
    assert work is not None
    with pytest.raises(AssertionError, match="helpers"):
        log.truncation.work(3)
    work.run_inline()
    truncate(log, 3)
    assert log.end_offset <= 3


def test_a_truncated_file_is_not_extended_again() -> None:
    disk = virtual_disk()
    log = open_log(disk, LogConfig(preallocation_bytes_min=512, preallocation_bytes_max=4096))
    while (work := log.preallocation.work()) is None:
        append(log, batch_of(bytes(100)))
    run(work)
    path = log.active.log.path
    assert disk.file_size(path) > log.active.size
    truncate(log, 2)
    assert disk.file_size(path) == log.active.size == log.active.allocated


def test_an_epoch_without_batches_is_dropped_durably() -> None:
    """Otherwise later batches of an older epoch would be counted to it after a crash."""
    disk = new_disk(1)
    log = open_log(disk)
    log.replicated.append(restamped([batch_of(b"a")], first_offset=0, leader_epoch=4), NOW_MS)
    log.begin_epoch(5)
    run(log.flush_work())
    assert log.truncation.work(2) is None
    truncate(log, 1)
    assert log.end_offset == 1
    later = restamped([batch_of(b"b")], first_offset=1, leader_epoch=4)
    later += restamped([batch_of(b"c")], first_offset=2, leader_epoch=6)
    log.replicated.append(later, NOW_MS)
    disk.kill()
    again = open_log(disk, recovery_point=1)
    assert list(zip(again.epochs.epochs, again.epochs.starts, strict=True)) == [(4, 0), (6, 2)]


def test_epochs_that_were_forgotten_but_are_still_stored_do_not_return() -> None:
    """A leader that wrote nothing forgets its epoch in memory when it follows; the file may keep it for a while."""
    disk = new_disk(1)
    log = open_log(disk)
    log.replicated.append(restamped([batch_of(b"a")], first_offset=0, leader_epoch=4), NOW_MS)
    log.begin_epoch(5)
    run(log.flush_work())
    log.epochs.truncate_from(log.end_offset)
    later = restamped([batch_of(b"b")], first_offset=1, leader_epoch=4)
    later += restamped([batch_of(b"c")], first_offset=2, leader_epoch=6)
    log.replicated.append(later, NOW_MS)
    disk.kill()
    again = open_log(disk, recovery_point=1)
    assert list(zip(again.epochs.epochs, again.epochs.starts, strict=True)) == [(4, 0), (6, 2)]
    assert again.epochs.latest == 6


# Errors


@pytest.mark.parametrize("skip", range(0, 24, 2))
@pytest.mark.parametrize("operation", ["open", "write_vector", "sync_directory", "data_sync"])
def test_a_transient_error_can_be_repeated(operation: str, skip: int) -> None:
    leader = history(2)
    disk = new_disk(2)
    log = replica_of(leader, disk=disk)
    offset = leader.end_offset // 2
    disk.faults.fail(operation, code=ENOSPC, skip=skip)
    work = log.truncation.work(offset)
    assert work is not None
    if fails(work):
        assert (log.failed, log.is_truncating, log.has_work) == (False, True, False)
        disk.faults.heal()
        truncate(log, offset)
    check_same(log, replica_of(leader, below=offset))
    assert not log.is_truncating


def fails(work: Work) -> bool:
    try:
        work.run_inline()
    except OSError:
        return True
    return False


def test_a_failing_disk_fails_the_log() -> None:
    log = replica_of(history(2))
    assert isinstance(log.disk, VirtualDisk)
    log.disk.faults.fail("data_sync", code=EIO)
    work = log.truncation.work(5)
    assert work is not None
    with pytest.raises(OSError):
        work.run_inline()
    assert log.failed


def test_work_that_no_helper_took_changes_nothing() -> None:
    log = replica_of(history(2))
    before = state_of(log)
    work = log.truncation.work(5)
    assert work is not None
    work.done(None, NotStarted())
    assert (log.is_truncating, log.has_work, log.failed) == (False, False, False)
    assert state_of(log) == before
    assert append(log, batch_of(b"a"), epoch=9)


def test_a_log_that_was_closed_meanwhile_stays_closed() -> None:
    disk = new_disk(4)
    log = replica_of(history(2), disk=disk)
    work = log.truncation.work(5)
    assert work is not None
    work.run()
    log.close(clean=False)
    assert log.has_work
    work.done(None, None)
    assert not log.has_work
    assert open_log(disk, SMALL).end_offset == log_end_below(5)


def log_end_below(offset: int) -> int:
    return replica_of(history(2), below=offset).end_offset


# Damage


@pytest.mark.parametrize("harm", ["record", "magic", "length", "zeros"])
@pytest.mark.parametrize("place", [0, 1, 5])
def test_a_damaged_replica_is_cut_where_the_damage_begins_and_copied_again(harm: str, place: int) -> None:
    leader = history(7)
    log = replica_of(leader)
    run(log.flush_work())
    segment, following = log.segments[1:3]
    batches = split(memoryview(bytearray(segment_bytes(log, segment.base_offset))))
    place = min(place, len(batches) - 1)
    position = sum(len(batch) for batch in batches[:place])
    offset: int = HEADER.unpack_from(batches[place])[0]
    at, wrong = {"record": (70, b"\xee"), "magic": (16, b"\x07"), "length": (8, b"\x7f"), "zeros": (0, bytes(61))}[harm]
    log.disk.write_vector(log.files.handle(segment.log), [wrong], position + at)
    assert log.damaged_offset is None
    scrub = SegmentScrub(log.disk, segment, next_base_offset=following.base_offset, gaps=False)
    while not scrub.finished:
        run(scrub.piece())
    log.mark_damaged(segment, tuple((damage.position, damage.end) for damage in scrub.damages))
    assert log.damaged_offset == offset
    truncate(log, offset)
    assert (log.end_offset, log.damaged_offset) == (offset, None)
    catch_up(log, leader)
    check_same(log, replica_of(leader))


# Slices


def test_the_files_that_a_truncation_changes_are_named_with_their_positions() -> None:
    log = open_log(virtual_disk(), LogConfig(segment_bytes=700))
    positions = {}
    for number in range(12):
        (offset,) = append(log, batch_of(b"%02d" % number + bytes(100)))
        positions[offset] = log.active.size
    first, second, third = log.segments[:3]
    for segment in (first, second, third):
        log.files.handle(segment.log)
    offset = second.base_offset + 2
    cut = log.truncation.cut_files(offset)
    assert first.log.handle not in cut
    assert cut[second.log.handle] == positions[offset - 1]
    assert cut[third.log.handle] == 0
    kept = log.read(offset - 1, 1, log.end_offset, True)
    dropped = log.read(offset, 1, log.end_offset, True)
    assert kept is not None
    assert dropped is not None
    assert kept.position + kept.length <= cut[kept.file] < dropped.position + dropped.length
    assert log.truncation.cut_files(log.end_offset) == {}


def test_slices_of_what_is_kept_stay_valid() -> None:
    log = replica_of(history(6))
    before = content(log)
    part = log.read(0, 600, log.end_offset, True)
    assert part is not None
    log.files.pin(part.file)
    truncate(log, log.segments[0].next_offset - 1)
    log.files.close_idle()
    assert log.disk.read(part.file, part.length, part.position) == before[part.position : part.position + part.length]
    log.files.unpin(part.file)
    log.files.close_idle()


# Transactions


@pytest.mark.parametrize("how", ["reopened", "truncated"])
def test_a_marker_above_the_high_watermark_decides_nothing_yet(how: str) -> None:
    """Another leader may replace it: until then a reader of committed records stops before the transaction."""
    disk = virtual_disk(3)
    directory = LogDirectory.open(disk, "data", cluster_id="c", node_id=1, entropy=SeededEntropy(3))
    log = directory.open_log(PARTITION, TOPIC_ID, SMALL, wall_ms=NOW_MS)
    append(log, batch_of(b"a"))
    stage_data(log, data_batch(b"b", producer_id=1, sequence=0))
    stage_marker(log, 1, commit=True)
    log.write_staged()
    append(log, batch_of(b"c"))
    if how == "truncated":
        truncate(log, 3)
    else:
        directory.checkpoint([log], {PARTITION: 2})
        log.close(clean=False)
        log = directory.open_log(PARTITION, TOPIC_ID, SMALL, wall_ms=NOW_MS)
    assert log.producers.first_unstable_offset(2) == 1
    assert log.producers.first_unstable_offset(3) is None
