import errno
import os
import resource
import subprocess
import sys

import pytest

from headrace.ports.disk import DiskLockHeld
from headrace.ports.real import disk as disk_module
from headrace.ports.real.disk import RealDisk, raise_open_file_limit

pytestmark = pytest.mark.process


@pytest.fixture
def disk():
    return RealDisk()


@pytest.fixture
def file(disk, tmp_path):
    handle = disk.open(str(tmp_path / "a.log"), create=True)
    yield handle
    disk.close(handle)


def test_what_is_written_is_read_back(disk, file):
    assert disk.write_vector(file, [b"abc", bytearray(b"de"), memoryview(b"f")], 4) == 6
    assert disk.size(file) == 10
    assert disk.read(file, 6, 4) == b"abcdef"
    assert disk.read(file, 100, 0) == b"\0\0\0\0abcdef"
    assert disk.read(file, 5, 10) == b""
    buffer = bytearray(4)
    assert disk.read_into(file, memoryview(buffer)[1:], 7) == 3
    assert buffer == b"\0def"


def test_a_read_that_stops_early_continues(disk, file, monkeypatch):
    disk.write_vector(file, [b"0123456789"], 0)
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda handle, length, position: pread(handle, min(length, 3), position))
    assert disk.read(file, 8, 1) == b"12345678"
    assert disk.read(file, 50, 4) == b"456789"


def test_open_refuses_a_missing_file_and_a_write_to_a_read_only_one(disk, tmp_path):
    path = str(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        disk.open(path)
    disk.close(disk.open(path, create=True))
    handle = disk.open(path, writable=False)
    with pytest.raises(OSError):
        disk.write_vector(handle, [b"x"], 0)
    disk.close(handle)


def test_iov_max_is_the_systems(disk, file):
    assert disk.iov_max == os.sysconf("SC_IOV_MAX")
    assert disk.write_vector(file, [b"x"] * disk.iov_max, 0) == disk.iov_max
    with pytest.raises(OSError):
        disk.write_vector(file, [b"x"] * (disk.iov_max + 1), 0)


def test_allocate_extends_with_zeros_and_truncate_cuts(disk, file):
    disk.write_vector(file, [b"abc"], 0)
    disk.allocate(file, 0, 8192)
    assert disk.size(file) == 8192
    assert disk.read(file, 5, 0) == b"abc\0\0"
    disk.truncate(file, 2)
    assert disk.read(file, 10, 0) == b"ab"
    disk.data_sync(file)


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EINVAL])
def test_allocate_does_nothing_where_the_file_system_cannot(disk, file, monkeypatch, code):
    monkeypatch.setattr(os, "posix_fallocate", _raising(code))
    disk.allocate(file, 0, 4096)
    assert disk.size(file) == 0


def test_allocate_reports_a_full_disk(disk, file, monkeypatch):
    monkeypatch.setattr(os, "posix_fallocate", _raising(errno.ENOSPC))
    with pytest.raises(OSError) as failure:
        disk.allocate(file, 0, 4096)
    assert failure.value.errno == errno.ENOSPC


def _raising(code):
    def call(*arguments):
        raise OSError(code, os.strerror(code))

    return call


def test_just_written_bytes_are_hot(disk, file):
    disk.write_vector(file, [bytes(300_000)], 0)
    assert disk.is_hot(file, 0, 300_000)
    assert disk.is_hot(file, 5, 0)


def test_a_probe_that_would_wait_is_cold(disk, file, monkeypatch):
    nowait = 8
    asked = []

    def preadv(handle, buffers, position, flags):
        asked.append((position, flags))
        if position >= 262_144:
            raise BlockingIOError(errno.EAGAIN, "would wait")
        return 1

    monkeypatch.setattr(disk_module, "_NOWAIT", nowait)
    monkeypatch.setattr(os, "preadv", preadv)
    assert not disk.is_hot(file, 0, 300_000)
    assert asked == [(0, nowait), (131_072, nowait), (262_144, nowait)]
    assert disk.is_hot(file, 0, 131_072)
    assert asked[-1] == (131_071, nowait)


def test_what_was_read_ahead_is_hot(disk, file):
    disk.write_vector(file, [bytes(3_000_000)], 0)
    disk.data_sync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    disk.read_ahead(file, 100_000, 2_500_000)
    assert disk.is_hot(file, 100_000, 2_500_000)


def test_reading_ahead_waits_for_the_whole_range_and_asks_for_more(disk, file, monkeypatch):
    asked, waited = [], []
    monkeypatch.setattr(os, "posix_fadvise", lambda *arguments: asked.append(arguments))
    monkeypatch.setattr(os, "preadv", lambda _file, _buffers, position: waited.append(position))
    disk.read_ahead(file, 5, (1 << 20) + 1)
    assert asked == [(file, 5, (1 << 20) + 1 + disk_module.READ_BEHIND_BYTES, os.POSIX_FADV_WILLNEED)]
    assert waited == [5, 5 + (1 << 20), 5 + (1 << 20)]


def test_where_the_probe_is_not_supported_all_is_hot(disk, file, monkeypatch):
    monkeypatch.setattr(os, "preadv", _raising(errno.EOPNOTSUPP))
    assert disk.is_hot(file, 0, 10)
    monkeypatch.setattr(os, "preadv", _raising(errno.EIO))
    with pytest.raises(OSError):
        disk.is_hot(file, 0, 10)
    monkeypatch.setattr(disk_module, "_NOWAIT", 0)
    assert disk.is_hot(file, 0, 10)


def test_names(disk, tmp_path):
    folder = str(tmp_path / "one" / "two")
    disk.make_directory(folder)
    disk.make_directory(folder)
    assert disk.is_directory(folder)
    for name in ("b", "a", "c"):
        handle = disk.open(f"{folder}/{name}", create=True)
        disk.write_vector(handle, [name.encode() * 3], 0)
        disk.close(handle)
    assert disk.list_directory(folder) == ["a", "b", "c"]
    disk.rename(f"{folder}/a", f"{folder}/b")
    assert disk.list_directory(folder) == ["b", "c"]
    assert disk.file_size(f"{folder}/b") == 3
    disk.sync_directory(folder)
    with pytest.raises(OSError):
        disk.remove_directory(folder)
    disk.unlink(f"{folder}/b")
    disk.unlink(f"{folder}/c")
    assert not disk.exists(f"{folder}/b")
    disk.remove_directory(folder)
    assert not disk.exists(folder)
    assert 0 < disk.free_bytes(str(tmp_path)) <= disk.total_bytes(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        disk.sync_directory(folder)


def test_the_lock_names_its_owner_and_ends_with_its_handle(disk, tmp_path):
    path = str(tmp_path / ".lock")
    handle = disk.lock(path)
    with pytest.raises(DiskLockHeld) as held:
        RealDisk().lock(path)
    assert held.value.owner == str(os.getpid())
    assert str(os.getpid()) in str(held.value)
    disk.close(handle)
    disk.close(RealDisk().lock(path))


def test_another_process_is_refused_while_the_lock_is_held(disk, tmp_path):
    path = str(tmp_path / ".lock")
    handle = disk.lock(path)
    script = (
        "import sys; from headrace.ports.real.disk import RealDisk\n"
        "try: RealDisk().lock(sys.argv[1])\n"
        "except Exception as error: print(type(error).__name__, error.owner)"
    )
    answer = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["DiskLockHeld", str(os.getpid())]
    disk.close(handle)


def test_the_open_file_limit_is_raised_to_the_hard_one():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, before[1]), before[1]))
        assert raise_open_file_limit() == before[1]
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
        assert raise_open_file_limit() == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_boot_id_stays_while_the_system_runs(monkeypatch, tmp_path):
    assert RealDisk().boot_id() == RealDisk().boot_id() != ""
    known = tmp_path / "boot_id"
    known.write_text("one boot\n")
    monkeypatch.setattr(disk_module, "BOOT_ID_PATH", str(known))
    assert RealDisk().boot_id() == "one boot"
    known.unlink()
    assert RealDisk().boot_id() == RealDisk().boot_id() != "one boot", "one that other processes do not share"
