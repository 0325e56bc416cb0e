"""The end comes at every single disk call of a compaction: by kill -9 of a real process, and by a power cut."""

import copy
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from headrace.log.compaction import swap
from headrace.log.compaction.writer import CleanedFiles
from headrace.log.errors import DamagedLog
from headrace.log.inspect import verify
from headrace.log.partition_log import PartitionLog
from headrace.ports.disk import Disk, FileHandle
from headrace.ports.real.disk import RealDisk
from headrace.sim.disk import VirtualDisk
from headrace.sim.entropy import SeededEntropy
from headrace.sim.world import CutOff

from ..log.world import FOLDER, NOW_MS, append, fields_of, open_log, virtual_disk
from .logs import CONFIG, compact, flush, keyed_batch, pairs, read_records

pytestmark = pytest.mark.slow

KEYS = 5
RECORDS = 24
SMALL_CONFIG = replace(CONFIG, segment_bytes=300)
CRASH_CONFIG = replace(CONFIG, segment_bytes=1000)
"""When the log is compacted, so that several of the small segments become one."""
LATE_MS = NOW_MS + CONFIG.delete_retention_ms + 1
"""When tombstones that have been through one pass are due."""
MUTATING = ("write_vector", "truncate", "data_sync", "rename", "unlink", "sync_directory")


def prepared(disk: Disk, folder: str) -> PartitionLog:
    """A log with old values, tombstones that are due, and a producer whose last batch has been replaced."""
    log = open_log(disk, SMALL_CONFIG, folder=folder)
    for number in range(RECORDS):
        value = None if number % 7 == 3 else b"value-%d" % number
        key = b"gone" if number == 9 else b"key-%d" % (number % KEYS)
        append(log, keyed_batch((key, value), producer_id=4, producer_epoch=1, base_sequence=number))
        if number == 10:
            append(log, keyed_batch((b"gone", None)))
            compact(log, wall_ms=NOW_MS)
    append(log, keyed_batch((b"end", b"v")))
    log.roll()
    flush(log)
    log.configure(CRASH_CONFIG)
    return log


def run_pass(log: PartitionLog) -> None:
    compact(log, roll=False, wall_ms=LATE_MS)


def latest(log: PartitionLog) -> dict[bytes | None, bytes]:
    current = {record.key: record.value for record in read_records(log)}
    return {key: value for key, value in current.items() if value is not None}


def let_go(log: PartitionLog) -> None:
    """With its descriptors, which a broker closes when no reader can have them any more."""
    log.close()
    log.files.close_all()


class Expected:
    def __init__(self, folder: str, disk: Disk) -> None:
        log = prepared(disk, folder)
        self.before = pairs(log)
        self.end_offset = log.end_offset
        self.latest = latest(log)
        run_pass(log)
        self.after = pairs(log)
        assert self.after != self.before
        assert self.latest == latest(log)
        let_go(log)

    def check(self, log: PartitionLog) -> None:
        found = pairs(log)
        assert log.end_offset == self.end_offset
        assert set(self.after) <= set(found) <= set(self.before)
        assert found == sorted(found)
        assert latest(log) == self.latest
        follows = keyed_batch((b"k", b"v"), producer_id=4, producer_epoch=1, base_sequence=RECORDS)
        assert log.producers.admit(fields_of(follows)) == -1
        assert {p.producer_id: p.last_sequence for p in log.producers.describe()} == {4: RECORDS - 1}
        assert not verify(log.disk, log.path).findings
        left = log.disk.list_directory(log.path)
        assert not [name for name in left if name.endswith((".swap", ".cleaned", ".deleted"))]
        run_pass(log)
        assert pairs(log) == self.after


class UnsyncedDisk(RealDisk):
    """Nothing is lost when a process is killed, so its syncs need not be waited for."""

    __slots__ = ()

    def data_sync(self, file: FileHandle) -> None:
        pass

    def sync_directory(self, path: str) -> None:
        pass


class KillingDisk(UnsyncedDisk):
    """The real disk, whose process is killed before its n-th call that changes anything."""

    __slots__ = ("left",)

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.left = calls

    def __getattribute__(self, name: str) -> object:
        if name in MUTATING:
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self.left -= 1
        return super().__getattribute__(name)


def killed_at(folder: Path, calls: int) -> bool:
    """Return whether a process that compacts was killed at that call; False if it got through."""
    child = os.fork()
    if child == 0:
        try:
            log = reopened(UnsyncedDisk(), str(folder))
            log.disk = log.files.disk = KillingDisk(calls)
            run_pass(log)
        except BaseException:
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def test_kill_at_every_disk_call(tmp_path: Path) -> None:
    expected = Expected(str(tmp_path / "expected"), UnsyncedDisk())
    template = tmp_path / "template"
    let_go(prepared(UnsyncedDisk(), str(template)))
    calls = 0
    while True:
        folder = tmp_path / "log"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder)
        killed = killed_at(folder, calls)
        log = reopened(UnsyncedDisk(), str(folder))
        expected.check(log)
        let_go(log)
        if not killed:
            break
        calls += 1
    assert calls > 40


def durable(seed: int) -> VirtualDisk:
    disk = virtual_disk(seed)
    prepared(disk, FOLDER).close()
    disk.sync_directory("data")
    disk.sync_directory("")
    return disk


def copied(disk: VirtualDisk) -> VirtualDisk:
    trace = disk._trace
    return copy.deepcopy(disk, {id(trace): trace})


def reopened(disk: Disk, folder: str = FOLDER) -> PartitionLog:
    log = open_log(disk, CRASH_CONFIG, folder=folder, recovery_point=RECORDS)
    flush(log)
    return log


def cut_at(disk: VirtualDisk, calls: int) -> Callable[[str, str], None]:
    left = calls

    def count(operation: str, _path: str) -> None:
        nonlocal left
        if operation in MUTATING:
            if left == 0:
                raise CutOff
            left -= 1

    return count


@pytest.mark.parametrize("seed", range(3))
def test_power_cut_at_every_disk_call(seed: int) -> None:
    """Bytes that no sync covered are lost, kept or torn as the seed draws; every changed name on its own."""
    expected = Expected(FOLDER, virtual_disk())
    template = durable(seed)
    calls = 0
    while True:
        disk = copied(template)
        log = reopened(disk)
        disk.on_operation = cut_at(disk, calls)
        try:
            run_pass(log)
            got_through = True
        except CutOff:
            got_through = False
        disk.on_operation = None
        disk.crash(SeededEntropy(seed * 1000 + calls))
        expected.check(reopened(disk))
        if got_through:
            return
        calls += 1


@pytest.mark.parametrize("calls", range(4, 60, 11))
def test_the_end_comes_again_while_the_start_finishes_the_exchange(calls: int) -> None:
    expected = Expected(FOLDER, virtual_disk())
    template = durable(calls)
    for again in range(0, 40, 3):
        disk = copied(template)
        log = reopened(disk)
        disk.on_operation = cut_at(disk, calls)
        try:
            run_pass(log)
        except CutOff:
            pass
        disk.on_operation = None
        disk.crash(SeededEntropy(calls))
        disk.on_operation = cut_at(disk, again)
        try:
            open_log(disk, CRASH_CONFIG, recovery_point=RECORDS)
        except CutOff:
            pass
        disk.on_operation = None
        disk.crash(SeededEntropy(again))
        expected.check(reopened(disk))


@pytest.mark.parametrize("left_out", [1, 2])
def test_an_exchange_that_leaves_out_a_sync_is_caught(left_out: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks above can fail: without the sync of the decision, or of the deletions, some power cut does harm."""
    expected = Expected(FOLDER, virtual_disk())
    exchange = swap.SegmentSwap

    def known_bad(disk: VirtualDisk, folder: str, files: CleanedFiles, old_bases: list[int]) -> swap.SegmentSwap:
        sync, syncs = disk.sync_directory, iter(range(4))
        monkeypatch.setattr(disk, "sync_directory", lambda path: None if next(syncs) == left_out else sync(path))
        try:
            return exchange(disk, folder, files, old_bases)
        finally:
            monkeypatch.setattr(disk, "sync_directory", sync)

    template = durable(1)
    caught = 0
    for calls, crash in product(range(14, 45), range(6)):
        disk = copied(template)
        log = reopened(disk)
        disk.on_operation = cut_at(disk, calls)
        monkeypatch.setattr(swap, "SegmentSwap", known_bad)
        try:
            run_pass(log)
        except CutOff:
            pass
        monkeypatch.setattr(swap, "SegmentSwap", exchange)
        disk.on_operation = None
        disk.crash(SeededEntropy(crash))
        try:
            expected.check(reopened(disk))
        except (AssertionError, DamagedLog):
            caught += 1
    assert caught
