"""Logs after a crash at every byte: torn tails, zeros, lost indexes, damaged checkpoints and snapshots."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log import names
from headrace.log.config import LogConfig
from headrace.log.errors import DamagedLog
from headrace.log.index import TIME_ENTRY
from headrace.log.producers import APPEND
from headrace.ports.disk import Disk
from headrace.sim.disk import VirtualDisk
from headrace.sim.entropy import SeededEntropy

from .world import FOLDER, NOW_MS, append, batch_of, fields_of, open_log, read_all, virtual_disk

CONFIG = LogConfig(index_interval_bytes=200, segment_bytes=100_000)
LOG = f"{FOLDER}/{0:020d}.log"


def content_of(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    content = disk.read(file, disk.size(file), 0)
    disk.close(file)
    return content


def put_content(disk: Disk, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    disk.truncate(file, 0)
    disk.write_vector(file, [content], 0)
    disk.data_sync(file)
    disk.close(file)


def small_log(disk: VirtualDisk, batches: int = 4, config: LogConfig = CONFIG) -> list[int]:
    """A log of a few batches, killed; where each batch ends in the file."""
    log = open_log(disk, config)
    ends = []
    for number in range(batches):
        append(log, batch_of(b"value-%d" % number, b"x" * 40, timestamps=[NOW_MS + number] * 2))
        ends.append(log.active.size)
    disk.kill()
    return ends


def test_damage_below_the_logs_start_keeps_nothing_closed() -> None:
    disk = virtual_disk()
    config = LogConfig(segment_bytes=500)
    log = open_log(disk, config)
    for number in range(12):
        append(log, batch_of(b"value-%d" % number, b"x" * 100))
    bases = list(log.bases)
    assert len(bases) > 4
    log.close()
    disk.kill()
    for base, content in ((bases[0], b""), (bases[1], bytes(400)), (bases[2], b"damaged")):
        put_content(disk, f"{FOLDER}/{base:020d}.log", content)
    log = open_log(disk, config, recovery_point=24, start_offset=bases[3])
    assert (log.start_offset, log.end_offset) == (bases[3], 24)
    assert [offset for offset, _ in read_all(log)] == list(range(bases[3], 24))
    work = log.retirement.work(NOW_MS, 24)
    assert work is not None
    work.run_inline()
    assert log.bases == bases[3:]


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_what_a_failed_sync_did_not_cover_is_written_again_before_it_is_trusted(seed: int, told: bool) -> None:
    disk = virtual_disk()
    log = open_log(disk, CONFIG)
    for parent in ("", "data"):
        disk.sync_directory(parent)
    disk.faults.fail("data_sync")
    for number in range(100):
        append(log, batch_of(b"value-%d" % number, b"x" * 400))
    work = log.flush_work()
    assert work is not None
    with pytest.raises(OSError, match="error"):
        work.run_inline() if told else work.run()  # the process may end before the loop hears of it
    disk.kill()
    log = open_log(disk, CONFIG)
    assert log.end_offset == 200
    work = log.flush_work()
    assert work is not None
    work.run_inline()
    assert log.recovery_point == 200
    assert names.UNSYNCED not in disk.list_directory(FOLDER)
    disk.crash(SeededEntropy(seed))
    assert open_log(disk, CONFIG, recovery_point=200).end_offset == 200


def test_a_log_whose_sync_failed_is_not_closed_as_if_it_were_on_the_device() -> None:
    disk = virtual_disk()
    log = open_log(disk, CONFIG)
    append(log, batch_of(b"value"))
    disk.faults.fail("data_sync")
    work = log.flush_work()
    assert work is not None
    with pytest.raises(OSError, match="error"):
        work.run()  # the loop has not heard of it
    with pytest.raises(OSError, match="an earlier sync failed"):
        log.close()
    assert log.recovery_point == 0


def test_a_tail_torn_at_every_byte_is_cut_to_the_last_whole_batch() -> None:
    source = virtual_disk()
    ends = small_log(source)
    content = content_of(source, LOG)
    for length in range(len(content) + 1):
        disk = virtual_disk()
        open_log(disk, CONFIG).close(clean=False)
        put_content(disk, LOG, content[:length])
        log = open_log(disk, CONFIG)
        whole = sum(end <= length for end in ends)
        assert log.end_offset == 2 * whole
        assert disk.file_size(LOG) == (ends[whole - 1] if whole else 0)
        assert (log.recovered.cut_bytes > 0) == any(content[log.active.size : length])
        append(log, batch_of(b"next"))
        assert read_all(log)[-1] == (2 * whole, b"next")
        log.close(clean=False)


def test_a_changed_byte_anywhere_in_the_tail_cuts_there_and_never_serves_it() -> None:
    source = virtual_disk()
    ends = small_log(source)
    content = content_of(source, LOG)
    uncovered = set(range(12, 16))  # the leader epoch: the checksum does not cover it
    for at in range(0, len(content), 7):
        batch = sum(end <= at for end in ends)
        start = ends[batch - 1] if batch else 0
        if at - start in uncovered:
            continue
        changed = bytearray(content)
        changed[at] ^= 0x40
        disk = virtual_disk()
        open_log(disk, CONFIG).close(clean=False)
        put_content(disk, LOG, bytes(changed))
        log = open_log(disk, CONFIG)
        if at - start < 8:
            assert log.end_offset >= 2 * batch  # a higher base offset reads as a gap, a lower one is cut
        else:
            assert log.end_offset == 2 * batch


@pytest.mark.parametrize("zeros", [1, 60, 61, 5000])
def test_preallocated_zeros_are_the_end_and_no_damage(zeros: int) -> None:
    disk = virtual_disk()
    ends = small_log(disk)
    put_content(disk, LOG, content_of(disk, LOG) + bytes(zeros))
    log = open_log(disk, CONFIG)
    assert log.end_offset == 8
    assert log.recovered.damage == ""
    assert disk.file_size(LOG) == ends[-1]


@pytest.mark.parametrize(("behind", "synced"), [(bytes(3_000_000), False), (bytes(3_000_000) + b"x", True)])
def test_only_a_cut_of_something_else_than_reserved_space_is_synced(
    behind: bytes, synced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sync would be one of the whole tail, while clients wait; reserved space may come back as it was."""
    disk = virtual_disk()
    ends = small_log(disk)
    put_content(disk, LOG, content_of(disk, LOG) + behind)
    syncs: list[Any] = []
    monkeypatch.setattr(disk, "data_sync", syncs.append)
    log = open_log(disk, CONFIG)
    assert (log.end_offset, log.recovered.damage, disk.file_size(LOG)) == (8, "", ends[-1])
    assert bool(syncs) == synced


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [names.INDEX, names.TIME_INDEX])
@pytest.mark.parametrize("damage", ["missing", "odd", "zeros", "noise"])
def test_a_bad_index_is_built_again(clean: bool, suffix: str, damage: str) -> None:
    disk = virtual_disk()
    log = open_log(disk, CONFIG)
    for number in range(60):
        append(log, batch_of(b"%d" % number * 20, timestamps=[NOW_MS + number]))
    log.close()
    path = f"{FOLDER}/{0:020d}{suffix}"
    good = content_of(disk, path)
    assert len(good) > 100
    if damage == "missing":
        disk.unlink(path)
    else:
        put_content(disk, path, {"odd": good[:-3], "zeros": good + bytes(24), "noise": b"\xff" * len(good)}[damage])
    again = open_log(disk, CONFIG, recovery_point=60, clean=clean)
    assert again.recovered.indexes_rebuilt == 1
    assert again.end_offset == 60
    again.close()
    assert content_of(disk, path) == good


def test_an_index_torn_within_is_noticed_after_a_crash() -> None:
    disk = virtual_disk()
    log = open_log(disk, CONFIG)
    for number in range(60):
        append(log, batch_of(b"%d" % number * 20))
    log.close()
    path = f"{FOLDER}/{0:020d}.index"
    good = content_of(disk, path)
    put_content(disk, path, good[:40] + bytes(16) + good[56:])
    again = open_log(disk, CONFIG, recovery_point=60)
    assert again.recovered.indexes_rebuilt == 1
    assert [at for at, _ in read_all(again, max_bytes=300)] == list(range(60))


def test_the_indexes_of_a_segment_rolled_exactly_at_the_recovery_point_may_be_torn() -> None:
    """The flush that raised the recovery point synced the log alone; the one that seals comes after the roll."""
    disk = virtual_disk()
    log = open_log(disk, LogConfig(index_interval_bytes=200, segment_bytes=4_000))
    while len(log.segments) == 1:
        if (flush := log.flush_work()) is not None:
            flush.run_inline()
        append(log, batch_of(b"%d" % log.end_offset * 20))
    (_, above) = log.bases
    assert log.recovery_point == above, "all of the first segment was synced before it was rolled"
    log.segments[0].index.spill()
    disk.kill()
    path = f"{FOLDER}/{0:020d}.index"
    good = content_of(disk, path)
    assert len(good) > 80
    put_content(disk, path, good[:40] + bytes(16) + good[56:])
    again = open_log(disk, CONFIG, recovery_point=above)
    assert again.recovered.indexes_rebuilt == 1
    assert [at for at, _ in read_all(again, max_bytes=300)] == list(range(above + 1))


def test_recovery_looks_only_at_the_batches_from_the_recovery_point_on() -> None:
    disk = virtual_disk()
    log = open_log(disk, CONFIG)
    for number in range(50):
        append(log, batch_of(b"%d" % number * 30))
    work = log.flush_work()
    assert work is not None
    work.run_inline()
    assert log.recovery_point == 50
    flushed = log.active.size
    append(log, batch_of(b"tail"))
    log.active.index.spill()
    disk.kill()
    again = open_log(disk, CONFIG, recovery_point=50)
    assert again.end_offset == 51
    assert again.recovered.scanned_bytes < again.active.size - flushed + 1000


@pytest.mark.parametrize("clean", [True, False])
def test_damage_below_the_recovery_point_is_never_cut_away(clean: bool) -> None:
    disk = virtual_disk()
    small_log(disk, config=LogConfig(index_interval_bytes=1))
    content = bytearray(content_of(disk, LOG))
    log = open_log(disk, CONFIG)
    log.close()
    content[-100] ^= 1  # within the last batch's header
    content[-120:-100] = bytes(20)
    put_content(disk, LOG, bytes(content))
    disk.unlink(f"{FOLDER}/{0:020d}.index")
    with pytest.raises(DamagedLog, match="headrace log repair"):
        open_log(disk, CONFIG, recovery_point=8, clean=clean)
    assert content_of(disk, LOG) == bytes(content)


def test_segments_behind_a_torn_one_are_dropped() -> None:
    disk = virtual_disk()
    config = LogConfig(segment_bytes=300)
    log = open_log(disk, config)
    for number in range(12):
        append(log, batch_of(b"%d" % number * 50))
    bases = log.bases
    assert len(bases) > 3
    disk.kill()
    torn = f"{FOLDER}/{bases[1]:020d}.log"
    put_content(disk, torn, content_of(disk, torn)[:-5])
    again = open_log(disk, config)
    assert again.recovered.segments_dropped == len(bases) - 2
    assert again.end_offset == bases[2] - 1
    assert [at for at, _ in read_all(again)] == list(range(again.end_offset))


def test_a_log_that_was_never_flushed_begins_where_it_began() -> None:
    """A power cut may keep the name of a later segment and lose that of the first, unless this one was synced."""
    config = LogConfig(segment_bytes=300)
    for seed in range(60):
        disk = virtual_disk(seed)
        log = open_log(disk, config)
        for number in range(8):
            append(log, batch_of(b"%d" % number * 50))
        assert len(log.bases) > 3
        disk.crash(SeededEntropy(seed))
        again = open_log(disk, config)
        assert again.start_offset == 0
        assert [at for at, _ in read_all(again)] == list(range(again.end_offset))
        again.close(clean=False)


def test_cut_bytes_do_not_come_back_after_a_second_crash() -> None:
    """The torn end is cut and synced, so that a power cut cannot uncover it behind newer batches."""
    torn, behind = batch_of(b"torn"), batch_of(b"behind")
    filler = batch_of(bytes(4096 - len(torn) - len(batch_of(bytes(1000))) + 1000))
    assert len(filler) + len(torn) == 4096  # what stands behind the torn batch begins a page of its own
    for seed in range(150):
        disk = virtual_disk(seed)
        open_log(disk, CONFIG).close()
        log = open_log(disk, CONFIG)
        append(log, filler, torn, behind)
        disk.kill()
        content = bytearray(content_of(disk, LOG))
        content[4095] ^= 1
        put_content(disk, LOG, bytes(content))
        log = open_log(disk, CONFIG)
        assert log.end_offset == 1
        append(log, batch_of(b"next"))
        disk.crash(SeededEntropy(seed))
        again = open_log(disk, CONFIG)
        assert read_all(again)[1:] in ([], [(1, b"next")])
        again.close(clean=False)


@pytest.mark.parametrize("content", [b"", b"0\n2\n0 0\n", b"\xff\xfe", b"0\n2\n5 0\n3 9\n"])
def test_a_damaged_epoch_checkpoint_is_rebuilt_from_the_batches(content: bytes) -> None:
    disk = virtual_disk()
    log = open_log(disk, CONFIG)
    append(log, batch_of(b"a"), epoch=1)
    append(log, batch_of(b"b"), epoch=4)
    log.close()
    put_content(disk, f"{FOLDER}/{names.LEADER_EPOCHS}", content)
    again = open_log(disk, CONFIG, recovery_point=2, clean=True)
    assert again.epochs.epochs == [1, 4]
    assert again.epochs.starts == [0, 1]


@given(cut=st.integers(0, 200), flip=st.integers(0, 200))
def test_a_damaged_snapshot_is_rebuilt_from_the_batches(cut: int, flip: int) -> None:
    disk = virtual_disk()
    log = open_log(disk, CONFIG)
    batch = batch_of(b"a", producer_id=9, producer_epoch=1, base_sequence=0)
    append(log, batch)
    log.close()
    path = f"{FOLDER}/{1:020d}.snapshot"
    good = content_of(disk, path)
    bad = bytearray(good)
    bad[flip % len(bad)] ^= 1
    put_content(disk, path, bytes(bad[: max(cut % len(bad), 1)]))
    again = open_log(disk, CONFIG, recovery_point=1, clean=True)
    assert again.producers.admit(fields_of(batch)) == 0
    again.close()
    assert content_of(disk, path) == good


def test_a_snapshot_of_a_roll_within_a_turn_holds_only_what_is_before_it() -> None:
    disk = virtual_disk()
    config = LogConfig(segment_bytes=400)
    log = open_log(disk, config)
    batches = [batch_of(b"x" * 100, producer_id=1, producer_epoch=0, base_sequence=n) for n in range(8)]
    append(log, *batches)
    assert len(log.bases) > 2
    work = log.flush_work()
    assert work is not None
    work.run_inline()
    disk.kill()
    again = open_log(disk, config, recovery_point=8)
    assert [again.producers.admit(fields_of(batch)) for batch in batches[-5:]] == [3, 4, 5, 6, 7]
    following = batch_of(b"x", producer_id=1, producer_epoch=0, base_sequence=8)
    assert again.producers.admit(fields_of(following)) == APPEND


def test_what_an_unfinished_deletion_left_is_removed() -> None:
    disk = virtual_disk()
    small_log(disk)
    for name in ("00000000000000000099.index", "00000000000000000050.log.deleted", "leader-epoch-checkpoint.tmp"):
        put_content(disk, f"{FOLDER}/{name}", b"left over")
    open_log(disk, CONFIG)
    left = disk.list_directory(FOLDER)
    assert not [name for name in left if name.endswith((".deleted", ".tmp")) or "99" in name]


@pytest.mark.parametrize("config", [CONFIG, LogConfig()], ids=["indexed", "too small for an index entry"])
def test_reserved_space_behind_a_segment_that_was_flushed_before_it_was_closed_is_cut(config: LogConfig) -> None:
    """The recovery point is exactly where the next segment begins, and the flush that cuts the old one never came."""
    disk = virtual_disk()
    log = open_log(disk, config)
    for number in range(5):
        append(log, batch_of(b"%d" % number, timestamps=[NOW_MS + number]))
    file = log.files.handle(log.active.log)
    disk.allocate(file, log.active.size, 5000)
    work = log.flush_work()
    assert work is not None
    work.run_inline()
    log.roll()
    append(log, batch_of(b"next"))
    disk.kill()
    again = open_log(disk, config, recovery_point=5)
    assert [value for _, value in read_all(again)] == [b"0", b"1", b"2", b"3", b"4", b"next"]
    assert disk.file_size(again.segments[0].log.path) == again.segments[0].size < 5000
    assert again.segments[0].max_timestamp == NOW_MS + 4


def test_the_newest_time_of_a_closed_segment_is_known_without_the_end_of_its_time_index() -> None:
    disk = virtual_disk()
    log = open_log(disk, CONFIG)
    for number in range(5):
        append(log, batch_of(b"%d" % number, timestamps=[NOW_MS + number]))
    log.roll()
    append(log, batch_of(b"next"))
    work = log.flush_work()
    assert work is not None
    work.run_inline()
    put_content(disk, log.segments[0].time_index.file.path, b"")
    disk.kill()
    again = open_log(disk, CONFIG, recovery_point=6)
    assert (again.segments[0].max_timestamp, again.segments[0].max_timestamp_offset) == (NOW_MS + 4, 4)


@pytest.mark.parametrize("config", [CONFIG, LogConfig()], ids=["indexed", "too small for an index entry"])
@pytest.mark.parametrize(
    ("recovery_point", "reserved", "entry"),
    [
        (6, 0, (0, 0)),
        (8, 0, (0, 0)),
        (8, 5000, (0, 0)),
        (8, 0, (NOW_MS + 1, 0)),
        (8, 5000, (NOW_MS + 1, 0)),
        (9, 0, (NOW_MS + 1, 7)),
    ],
)
def test_times_of_a_closed_segment_are_read_again_when_a_power_cut_took_its_time_index(
    config: LogConfig, recovery_point: int, reserved: int, entry: tuple[int, int]
) -> None:
    """The first batch is the newest, so that the end of the segment does not tell its time."""
    disk = virtual_disk()
    log = open_log(disk, config)
    for number in range(8):
        append(log, batch_of(b"%d" % number, timestamps=[NOW_MS + 100 - number]))
    closed = log.active
    log.roll()
    append(log, batch_of(b"next", timestamps=[NOW_MS + 200]))
    work = log.flush_work()
    assert work is not None
    work.run_inline()
    disk.kill()
    put_content(disk, closed.log.path, content_of(disk, closed.log.path) + bytes(reserved))
    put_content(disk, closed.time_index.file.path, TIME_ENTRY.pack(*entry))
    again = open_log(disk, config, recovery_point=recovery_point)
    assert (again.segments[0].max_timestamp, again.segments[0].max_timestamp_offset) == (NOW_MS + 100, 0)
    found = [again.offset_at_time(NOW_MS + time, again.end_offset)() for time in (93, 100, 101)]
    assert [place.offset for place in found if place is not None] == [0, 0, 8]
    assert len(read_all(again)) == 9
    assert content_of(disk, again.segments[0].time_index.file.path) == TIME_ENTRY.pack(NOW_MS + 100, 0)
