"""Findings of `headrace doctor` about this machine: Python, limits, memory, clock and the data folder."""

import os
import platform
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from headrace.operations.amounts import size_text
from headrace.operations.findings import Finding, note, ok, problem, warning
from headrace.operations.folder_owner import folder_owner
from headrace.wire.compiled import INSTALL, CompiledHelper, compiled_helpers

PYTHON_MIN = (3, 11)
OPEN_FILES_MIN = 4_096
OPEN_FILES_ADVISED = 65_536
MEMORY_AVAILABLE_BYTES_MIN = 256 << 20
DISK_FREE_BYTES_ADVISED = 2 << 30
CLOCK_YEAR_MIN = 2025
CLOCK_AHEAD_SECONDS_MAX = 60
SEGMENTS_LOOKED_AT_MAX = 1_000
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs"})
NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p"})


def check_machine() -> Iterator[Finding]:
    yield python_finding(sys.version_info[:2], platform.python_implementation(), platform.system())
    yield open_files_finding(*resource.getrlimit(resource.RLIMIT_NOFILE))
    yield clock_finding(time.time())
    yield checksum_finding()
    yield from helper_findings(compiled_helpers())
    yield from memory_findings(_proc("meminfo"), _proc("sys/vm/overcommit_memory"))


def python_finding(version: tuple[int, ...], implementation: str, system: str) -> Finding:
    seen = f"{implementation} {version[0]}.{version[1]} on {system}"
    if version < PYTHON_MIN:
        return problem("python", seen, f"install Python {PYTHON_MIN[0]}.{PYTHON_MIN[1]} or newer")
    if system != "Linux":
        return note("python", seen, "Headrace is fastest on Linux: epoll, sendfile and preallocation are missing here")
    return ok("python", seen)


def open_files_finding(soft: int, hard: int) -> Finding:
    seen = f"{soft} open files allowed (hard limit {'none' if hard == resource.RLIM_INFINITY else hard})"
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES_MIN:
        advice = f"run ulimit -n {OPEN_FILES_ADVISED} before the broker (LimitNOFILE= under systemd)"
        return warning("open files", seen, f"{advice}: every partition and connection needs file descriptors")
    return ok("open files", seen)


def clock_finding(now_seconds: float) -> Finding:
    moment = datetime.fromtimestamp(now_seconds, UTC)
    seen = moment.isoformat(timespec="seconds")
    if moment.year < CLOCK_YEAR_MIN:
        return problem("clock", seen, "set the clock: timestamps and retention depend on it")
    return ok("clock", seen)


def checksum_finding() -> Finding:
    import crc32c

    if crc32c.hardware_based:
        return ok("checksum", "CRC-32C in hardware")
    return warning("checksum", "CRC-32C in software", "expect several times the CPU per byte on this processor")


def helper_findings(helpers: Sequence[CompiledHelper]) -> Iterator[Finding]:
    for helper in helpers:
        if helper.in_use:
            yield ok("compiled helper", f"{helper.name}: {helper.work}, in use")
        else:
            yield note("compiled helper", f"{helper.name}: {helper.work}, in Python here", f"for less CPU: {INSTALL}")


def memory_findings(meminfo: str, overcommit: str) -> Iterator[Finding]:
    available = next(
        (int(line.split()[1]) * 1024 for line in meminfo.splitlines() if line.startswith("MemAvailable:")), None
    )
    if available is not None:
        seen = f"{size_text(available)} available"
        if available < MEMORY_AVAILABLE_BYTES_MIN:
            yield warning("memory", seen, "free some memory: consumers are served from the page cache")
        else:
            yield ok("memory", seen)
    if overcommit.strip() == "2":
        yield note("memory", "vm.overcommit_memory is 2", "helper processes may fail to start; 0 is the usual value")


def check_data_folder(folder: Path, *, free_bytes_min: int) -> Iterator[Finding]:
    about = "data folder"
    if not folder.exists():
        parent = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
        if not os.access(parent, os.W_OK):
            yield problem(about, f"{folder} cannot be created", f"give write access to {parent} or use --data-dir")
        else:
            yield ok(about, f"{folder} does not exist yet; the broker creates it")
            yield free_space_finding(parent, free_bytes_min)
        return
    if not folder.is_dir():
        yield problem(about, f"{folder} is not a folder", "choose another with --data-dir")
        return
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield problem(about, f"{folder} is not writable", "change its owner, or run the broker as its owner")
        return
    yield lock_finding(folder)
    yield from file_system_findings(folder, file_system_of(folder, _proc("mounts")))
    yield free_space_finding(folder, free_bytes_min)
    yield from future_findings(folder, time.time())


def lock_finding(folder: Path) -> Finding:
    try:
        owner = folder_owner(folder)
    except FileNotFoundError:
        return ok("data folder", f"{folder} is free: no broker has used it yet")
    except PermissionError as error:
        return problem("data folder", f"{error.filename}: {error.strerror}", "run doctor as the broker's user")
    except OSError as error:
        return note("data folder", f"cannot tell whether {folder} is in use: {error.strerror}")
    if owner is None:
        return ok("data folder", f"{folder} is not in use")
    return ok("data folder", f"{folder} is in use by process {owner or 'unknown'}")


def file_system_of(folder: Path, mounts: str) -> str:
    """Return the file system type of a folder, from the longest matching mount point; empty if unknown."""
    best, kind = "", ""
    place = f"{folder.resolve()}/"
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) > 2:
            point = fields[1].replace("\\040", " ").rstrip("/") + "/"
            if place.startswith(point) and len(point) >= len(best):
                best, kind = point, fields[2]
    return kind


def file_system_findings(folder: Path, kind: str) -> Iterator[Finding]:
    if kind in MEMORY_FILE_SYSTEMS:
        yield warning("data folder", f"{folder} is in memory ({kind})", "its data is lost at the next reboot")
    elif kind in NETWORK_FILE_SYSTEMS:
        advice = "use a local disk: locks, syncs and sendfile are not reliable over a network"
        yield warning("data folder", f"{folder} is on {kind}", advice)


def free_space_finding(folder: Path, free_bytes_min: int) -> Finding:
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    seen = f"{size_text(free)} free at {folder}"
    if free < free_bytes_min:
        advice = (
            f"free some space: below {size_text(free_bytes_min)} (headrace.disk.free.min.bytes) records are refused"
        )
        return problem("disk space", seen, advice)
    if free < DISK_FREE_BYTES_ADVISED:
        return warning("disk space", seen, "free some space, or lower retention.ms or retention.bytes of large topics")
    if status.f_files and status.f_favail < 1_000:
        return problem("disk space", f"{status.f_favail} files left at {folder}", "delete files: inodes have run out")
    return ok("disk space", seen)


def future_findings(folder: Path, now_seconds: float) -> Iterator[Finding]:
    """Report segments written in the future: the clock was set back, and retention keeps them too long."""
    for count, segment in enumerate(folder.glob("*/*.log")):
        if count >= SEGMENTS_LOOKED_AT_MAX:
            return
        try:
            ahead = segment.stat().st_mtime - now_seconds
        except OSError:
            continue
        if ahead > CLOCK_AHEAD_SECONDS_MAX:
            seen = f"{segment.parent.name}/{segment.name} has a modification time {ahead:.0f} s in the future"
            yield warning("clock", seen, "the clock was set back: check time synchronisation")
            return


def _proc(name: str) -> str:
    try:
        return Path("/proc", name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
