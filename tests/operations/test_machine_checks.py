"""Findings of doctor about a machine, given the facts of that machine."""

import fcntl
import os
import resource
from pathlib import Path

import pytest

from headrace.operations.findings import Level
from headrace.operations.machine_checks import (
    check_data_folder,
    check_machine,
    clock_finding,
    file_system_findings,
    file_system_of,
    free_space_finding,
    future_findings,
    helper_findings,
    lock_finding,
    memory_findings,
    open_files_finding,
    python_finding,
)
from headrace.wire.compiled import CompiledHelper


def test_this_machine_can_be_looked_at() -> None:
    abouts = [finding.about for finding in check_machine()]
    assert abouts[:5] == ["python", "open files", "clock", "checksum", "compiled helper"]


def test_compiled_helpers() -> None:
    used, unused = helper_findings((CompiledHelper("one", "adds", True), CompiledHelper("two", "counts", False)))
    assert used == (Level.OK, "compiled helper", "one: adds, in use", "")
    assert unused[:3] == (Level.NOTE, "compiled helper", "two: counts, in Python here")
    assert "python3-dev" in unused.advice


def test_python() -> None:
    assert python_finding((3, 10), "CPython", "Linux").level is Level.PROBLEM
    assert python_finding((3, 11), "CPython", "Linux").level is Level.OK
    assert python_finding((3, 13), "CPython", "Darwin").level is Level.NOTE


def test_open_files() -> None:
    few = open_files_finding(1024, 4096)
    assert few.level is Level.WARNING
    assert "ulimit -n 65536" in few.advice
    assert open_files_finding(resource.RLIM_INFINITY, resource.RLIM_INFINITY).level is Level.OK


def test_clock() -> None:
    assert clock_finding(0).level is Level.PROBLEM
    assert clock_finding(1_800_000_000).level is Level.OK


def test_memory() -> None:
    low, strict = memory_findings("MemTotal: 9 kB\nMemAvailable:  1000 kB\n", "2\n")
    assert low.level is Level.WARNING
    assert strict.level is Level.NOTE
    assert [finding.level for finding in memory_findings("MemAvailable: 9000000 kB", "0")] == [Level.OK]
    assert list(memory_findings("", "")) == []


def test_a_folder_that_does_not_exist_yet_is_fine(tmp_path: Path) -> None:
    first, _space = check_data_folder(tmp_path / "a" / "b", free_bytes_min=0)
    assert first.level is Level.OK
    assert "creates it" in first.seen


def test_a_file_is_no_data_folder(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("x")
    (finding,) = check_data_folder(place, free_bytes_min=0)
    assert finding.level is Level.PROBLEM


def test_who_uses_the_folder(tmp_path: Path) -> None:
    assert "no broker" in lock_finding(tmp_path).seen
    (tmp_path / ".lock").write_text("4121")
    assert "not in use" in lock_finding(tmp_path).seen
    holder = os.open(tmp_path / ".lock", os.O_RDWR)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert "in use by process 4121" in lock_finding(tmp_path).seen
    finally:
        os.close(holder)
    assert "not in use" in lock_finding(tmp_path).seen


def test_free_space(tmp_path: Path) -> None:
    assert free_space_finding(tmp_path, 1 << 62).level is Level.PROBLEM
    assert free_space_finding(tmp_path, 0).level in (Level.OK, Level.WARNING)


def test_the_nearest_mount_point_decides_the_file_system(tmp_path: Path) -> None:
    mounts = f"none / ext4 rw 0 0\nnone {tmp_path} tmpfs rw 0 0\nnone {tmp_path}/other nfs4 rw 0 0\nbroken"
    assert file_system_of(tmp_path, mounts) == "tmpfs"
    assert file_system_of(Path("/"), mounts) == "ext4"
    assert file_system_of(tmp_path, "") == ""


@pytest.mark.parametrize(("kind", "count"), [("tmpfs", 1), ("nfs4", 1), ("ext4", 0), ("", 0)])
def test_unsafe_file_systems(kind: str, count: int, tmp_path: Path) -> None:
    assert len(list(file_system_findings(tmp_path, kind))) == count


def test_segments_from_the_future(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    segment = tmp_path / "orders-0" / "00000000000000000000.log"
    segment.write_bytes(b"")
    written = segment.stat().st_mtime
    assert list(future_findings(tmp_path, written)) == []
    (finding,) = future_findings(tmp_path, written - 3600)
    assert finding.level is Level.WARNING
    assert "orders-0" in finding.seen
