"""The machine of the benchmark: its description, folders and memory."""

import contextlib
import os
import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path

from headrace.bench.errors import CannotBeMeasured
from headrace.wire.compiled import has_request_helper

CACHE_FOLDER = "headrace"
IN_MEMORY = ("tmpfs", "ramfs")
"""File systems in memory, on which data is never cold and a sync is free."""
TOUCHED_AT_ONCE_BYTES = 1 << 20
TOUCH_UNTIL_FREE_BYTES = 512 << 20
"""Touching stops at this much free memory; below it the system reuses clean pages."""


def cache_folder() -> Path:
    """Return the folder in which built and downloaded tools are kept between runs."""
    place = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(place) / CACHE_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def describe(folder: Path) -> dict[str, str]:
    return {
        "cpu": f"{os.cpu_count()} x {_processor()}",
        "memory": f"{_memory_bytes('MemTotal') / (1 << 30):.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "file system": file_system(folder),
        "compiled helper of the broker": "in use" if has_request_helper() else "not built",
    }


def file_system(folder: Path) -> str:
    """Return the type of the file system, such as ext4 or tmpfs."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mounted_at, found, *_ = line.split()
        if folder.resolve().is_relative_to(mounted_at) and len(mounted_at) >= len(best):
            best, kind = mounted_at, found
    return kind


def require_disk(folder: Path, what: str) -> None:
    """Raise CannotBeMeasured if a folder is in memory, as temporary folders often are."""
    kind = file_system(folder)
    if kind in IN_MEMORY:
        raise CannotBeMeasured(f"{what} needs a disk, and {folder} is in memory ({kind}): give --folder on a disk")


@contextlib.contextmanager
def bench_folder(wanted: Path | None) -> Iterator[Path]:
    """Create a temporary folder for data and output below `wanted`."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-", dir=wanted, ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextlib.contextmanager
def touched_memory(folder: Path) -> Iterator[None]:
    """Fill nearly all memory with clean pages of a file while the block runs.

    A virtual machine may return freed memory to its host; the first write to a page then costs many times the work
    that is measured. Reading the holes of a sparse file allocates the pages without writing to the disk.
    """
    require_disk(folder, "touching the memory")
    path = folder / "touched"
    with path.open("w+b", buffering=0) as file:
        buffer = bytearray(TOUCHED_AT_ONCE_BYTES)
        wanted = _memory_bytes("MemTotal")
        file.truncate(wanted)
        for position in range(0, wanted, TOUCHED_AT_ONCE_BYTES):
            if _memory_bytes("MemFree") < TOUCH_UNTIL_FREE_BYTES:
                break
            os.preadv(file.fileno(), [buffer], position)
        try:
            yield
        finally:
            path.unlink()


def drop_from_cache(folder: Path) -> int:
    """Sync the files below a folder, drop them from the page cache and return their size."""
    dropped = 0
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fdatasync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                dropped += path.stat().st_size
    return dropped


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_bytes(field: str) -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) << 10
    return 0
