import errno
from itertools import pairwise

import pytest

from headrace.ports.disk import DiskLockHeld
from headrace.sim.disk import VirtualDisk
from headrace.sim.entropy import SeededEntropy
from headrace.sim.faults import DISK_FULL
from headrace.sim.inodes import PAGE_BYTES, SECTOR_BYTES
from headrace.sim.trace import Trace

pytestmark = pytest.mark.usefixtures("virtual_world_only")
SEEDS = range(60)


def new_disk(seed=1, **options):
    return VirtualDisk(SeededEntropy(seed), Trace(), **options)


def durable_file(disk, path="d/a", content=b""):
    """A file whose name and content are on the device."""
    folder = path.rpartition("/")[0]
    disk.make_directory(folder)
    handle = disk.open(path, create=True)
    if content:
        assert disk.write_vector(handle, [content], 0) == len(content)
    disk.data_sync(handle)
    disk.sync_directory(folder)
    disk.sync_directory("")
    return handle


def content_of(disk, path):
    handle = disk.open(path, writable=False)
    try:
        return disk.read(handle, 1 << 20, 0)
    finally:
        disk.close(handle)


def test_it_reads_what_was_written_as_a_real_disk_does():
    disk = new_disk()
    handle = durable_file(disk)
    assert disk.write_vector(handle, [b"abc", memoryview(b"def")], 4) == 6
    assert disk.size(handle) == 10
    assert disk.read(handle, 100, 0) == b"\0\0\0\0abcdef"
    assert disk.read(handle, 2, 10) == b""
    buffer = bytearray(8)
    assert disk.read_into(handle, memoryview(buffer), 7) == 3
    assert buffer == b"def\0\0\0\0\0"
    disk.truncate(handle, 5)
    disk.allocate(handle, 0, 12)
    assert disk.read(handle, 100, 0) == b"\0\0\0\0a" + bytes(7)
    assert disk.file_size("d/a") == 12
    disk.close(handle)
    with pytest.raises(OSError) as failure:
        disk.size(handle)
    assert failure.value.errno == errno.EBADF


def test_names_follow_posix():
    disk = new_disk()
    durable_file(disk, "d/a", b"a")
    durable_file(disk, "d/b", b"b")
    disk.rename("d/a", "d/b")
    assert disk.list_directory("d") == ["b"]
    assert content_of(disk, "d/b") == b"a"
    disk.make_directory("d/deep/er")
    assert disk.is_directory("/d/deep/er")
    for call, code in [
        (lambda: disk.open("d/missing"), errno.ENOENT),
        (lambda: disk.open("missing/file", create=True), errno.ENOENT),
        (lambda: disk.open("d"), errno.EISDIR),
        (lambda: disk.unlink("d/deep"), errno.EISDIR),
        (lambda: disk.remove_directory("d/deep"), errno.ENOTEMPTY),
        (lambda: disk.rename("d/b", "d/deep"), errno.EISDIR),
        (lambda: disk.rename("d/deep", "d/b"), errno.ENOTDIR),
        (lambda: disk.make_directory("d/b"), errno.EEXIST),
        (lambda: disk.list_directory("d/b"), errno.ENOTDIR),
    ]:
        with pytest.raises(OSError) as failure:
            call()
        assert failure.value.errno == code
    disk.remove_directory("d/deep/er")
    disk.remove_directory("d/deep")
    disk.unlink("d/b")
    assert not disk.exists("d/b")
    assert disk.list_directory("d") == []


def test_an_unlinked_file_is_readable_through_its_handle():
    disk = new_disk()
    handle = durable_file(disk, content=b"still here")
    disk.unlink("d/a")
    assert disk.read(handle, 100, 0) == b"still here"
    disk.truncate(handle, 2)
    assert disk.free_bytes("d") == disk.capacity_bytes


def test_a_read_only_handle_and_a_long_vector_are_refused():
    disk = new_disk()
    durable_file(disk)
    handle = disk.open("d/a", writable=False)
    with pytest.raises(OSError):
        disk.write_vector(handle, [b"x"], 0)
    handle = disk.open("d/a")
    with pytest.raises(OSError) as failure:
        disk.write_vector(handle, [b"x"] * (disk.iov_max + 1), 0)
    assert failure.value.errno == errno.EINVAL


def test_the_lock_is_held_until_the_process_dies():
    disk = new_disk()
    disk.make_directory("d")
    disk.lock("d/.lock")
    with pytest.raises(DiskLockHeld) as held:
        disk.lock("d/.lock")
    assert held.value.owner == "1"
    disk.kill()
    disk.close(disk.lock("d/.lock"))
    disk.lock("d/.lock")


def test_kill_loses_nothing():
    disk = new_disk()
    handle = durable_file(disk, content=b"synced")
    disk.write_vector(handle, [b"not synced"], 6)
    disk.rename("d/a", "d/b")
    disk.kill()
    assert disk.list_directory("d") == ["b"]
    assert content_of(disk, "d/b") == b"syncednot synced"


def test_a_power_cut_keeps_what_was_synced():
    for seed in SEEDS:
        disk = new_disk()
        durable_file(disk, content=b"x" * 10_000)
        disk.crash(SeededEntropy(seed))
        assert content_of(disk, "d/a") == b"x" * 10_000


def test_each_dirty_page_is_kept_dropped_or_torn_at_a_sector():
    old, new = b"o" * PAGE_BYTES, b"n" * PAGE_BYTES
    seen = set()
    for seed in SEEDS:
        disk = new_disk()
        handle = durable_file(disk, content=old * 3)
        disk.write_vector(handle, [new], PAGE_BYTES)
        disk.crash(SeededEntropy(seed))
        survived = content_of(disk, "d/a")
        assert len(survived) == 3 * PAGE_BYTES
        assert survived[:PAGE_BYTES] == survived[2 * PAGE_BYTES :] == old
        page = survived[PAGE_BYTES : 2 * PAGE_BYTES]
        sectors = [page[at : at + SECTOR_BYTES] for at in range(0, PAGE_BYTES, SECTOR_BYTES)]
        assert set(sectors) <= {b"o" * SECTOR_BYTES, b"n" * SECTOR_BYTES}
        borders = sum(one != other for one, other in pairwise(sectors))
        assert borders <= 1
        seen.add("torn" if borders else sectors[0][:1])
    assert seen == {"torn", b"o", b"n"}


def test_an_unsynced_tail_may_shrink_or_hold_zeros_but_never_harms_the_synced_head():
    lengths = set()
    for seed in SEEDS:
        disk = new_disk()
        handle = durable_file(disk, content=b"head" * 100)
        disk.write_vector(handle, [b"t" * 9_000], 400)
        disk.crash(SeededEntropy(seed))
        survived = content_of(disk, "d/a")
        assert survived[:400] == b"head" * 100
        assert set(survived[400:]) <= set(b"t\0")
        lengths.add(len(survived))
    assert {400, 9_400} < lengths


def test_a_cut_that_was_not_synced_may_be_undone():
    lengths = set()
    for seed in SEEDS:
        disk = new_disk()
        handle = durable_file(disk, content=b"x" * 100)
        disk.truncate(handle, 10)
        disk.crash(SeededEntropy(seed))
        lengths.add(disk.file_size("d/a"))
        assert content_of(disk, "d/a")[:10] == b"x" * 10
    assert {10, 100} <= lengths


def test_names_that_were_not_synced_may_be_undone():
    seen = set()
    for seed in SEEDS:
        disk = new_disk()
        durable_file(disk, "d/a", b"old")
        temporary = disk.open("d/a.tmp", create=True)
        disk.write_vector(temporary, [b"new"], 0)
        disk.data_sync(temporary)
        disk.rename("d/a.tmp", "d/a")
        disk.crash(SeededEntropy(seed))
        assert content_of(disk, "d/a") in (b"old", b"new")
        seen.add((content_of(disk, "d/a"), disk.exists("d/a.tmp")))
    assert seen == {(b"old", False), (b"old", True), (b"new", False)}


def test_a_synced_rename_stays():
    for seed in SEEDS:
        disk = new_disk()
        durable_file(disk, "d/a", b"moved")
        disk.rename("d/a", "d/b")
        disk.sync_directory("d")
        disk.crash(SeededEntropy(seed))
        assert disk.list_directory("d") == ["b"]
        assert content_of(disk, "d/b") == b"moved"


def test_a_folder_whose_parent_was_not_synced_may_vanish_with_all_in_it():
    seen = set()
    for seed in SEEDS:
        disk = new_disk()
        disk.make_directory("d/topic-0")
        disk.sync_directory("")
        handle = disk.open("d/topic-0/log", create=True)
        disk.data_sync(handle)
        disk.sync_directory("d/topic-0")
        disk.crash(SeededEntropy(seed))
        seen.add(disk.exists("d/topic-0/log"))
        assert disk.exists("d/topic-0/log") == disk.exists("d/topic-0")
    assert seen == {True, False}


def test_after_a_failed_sync_the_bytes_are_seen_but_never_durable():
    disk = new_disk()
    handle = durable_file(disk, content=b"o" * 100)
    disk.write_vector(handle, [b"n" * 100], 0)
    disk.faults.fail("data_sync", path_contains="d/a")
    with pytest.raises(OSError) as failure:
        disk.data_sync(handle)
    assert failure.value.errno == errno.EIO
    assert disk.read(handle, 100, 0) == b"n" * 100
    disk.data_sync(handle)
    disk.crash(SeededEntropy(3))
    assert content_of(disk, "d/a") == b"o" * 100


def test_planned_errors_hit_the_named_call():
    disk = new_disk()
    handle = durable_file(disk)
    disk.faults.fail("write_vector", code=DISK_FULL, path_contains="a", skip=1, times=2)
    disk.write_vector(handle, [b"1"], 0)
    for _ in range(2):
        with pytest.raises(OSError) as failure:
            disk.write_vector(handle, [b"2"], 1)
        assert failure.value.errno == errno.ENOSPC
    disk.write_vector(handle, [b"3"], 1)
    disk.faults.fail("rename")
    disk.faults.heal()
    disk.rename("d/a", "d/b")
    assert content_of(disk, "d/b") == b"13"


def test_a_full_disk_writes_short_and_then_refuses_until_space_returns():
    disk = new_disk(capacity_bytes=10)
    handle = durable_file(disk)
    other = durable_file(disk, "d/other", b"1234")
    assert disk.free_bytes("d") == 6
    assert disk.total_bytes("d") == 10
    assert disk.write_vector(handle, [b"abcdefgh"], 0) == 6
    with pytest.raises(OSError) as failure:
        disk.write_vector(handle, [b"gh"], 6)
    assert failure.value.errno == errno.ENOSPC
    with pytest.raises(OSError):
        disk.allocate(handle, 0, 7)
    assert disk.write_vector(handle, [b"ABC"], 0) == 3
    disk.close(other)
    disk.unlink("d/other")
    assert disk.write_vector(handle, [b"gh"], 6) == 2
    disk.sync_directory("d")
    disk.data_sync(handle)
    disk.crash(SeededEntropy(1))
    assert disk.free_bytes("d") == 2


def test_short_writes_and_cold_reads_are_drawn():
    disk = new_disk()
    handle = durable_file(disk)
    assert all(disk.is_hot(handle, 0, 1) for _ in range(20))
    disk.faults.short_writes_one_in = 2
    disk.faults.cold_reads_one_in = 2
    written = [disk.write_vector(handle, [b"0123456789"], 0) for _ in range(40)]
    assert 0 < min(written) < max(written) == 10
    assert {disk.is_hot(handle, 0, 1) for _ in range(40)} == {True, False}


def test_latency_has_a_seam():
    disk = new_disk()
    seen = []
    handle = durable_file(disk)
    disk.on_operation = lambda operation, path: seen.append((operation, path))
    disk.write_vector(handle, [b"x"], 0)
    disk.data_sync(handle)
    disk.sync_directory("d")
    assert seen == [("write_vector", "d/a"), ("data_sync", "d/a"), ("sync_directory", "d")]


def test_a_file_with_two_names_stays_until_both_are_gone():
    disk = new_disk()
    handle = durable_file(disk, content=b"content")
    free = disk.free_bytes("")
    disk.link("d/a", "d/b")
    assert disk.free_bytes("") == free
    disk.unlink("d/a")
    assert (disk.exists("d/a"), content_of(disk, "d/b"), disk.free_bytes("")) == (False, b"content", free)
    disk.write_vector(handle, [b"more"], 7)
    assert content_of(disk, "d/b") == b"contentmore"
    with pytest.raises(FileExistsError):
        disk.link("d/b", "d/b")
    disk.unlink("d/b")
    assert disk.free_bytes("") == free + 7


@pytest.mark.parametrize("seed", range(8))
def test_a_power_cut_keeps_what_both_names_had(seed):
    disk = new_disk(seed)
    durable_file(disk, content=b"content")
    disk.link("d/a", "d/b")
    if seed % 2:
        disk.sync_directory("d")
    disk.crash(SeededEntropy(seed))
    assert disk.exists("d/b") or not seed % 2
    used = disk.capacity_bytes - disk.free_bytes("")
    assert used == 7
    if disk.exists("d/b"):
        disk.unlink("d/a")
        assert content_of(disk, "d/b") == b"content"
