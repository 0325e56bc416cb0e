"""Snapshots that travel from a leader to a replica: files that are read and written in chunks, and installed.

An installation replaces the snapshot and the log in one atomic step, although they are several files: a mark is written
first, and a start that finds it with its snapshot in place removes the old log.
"""

from typing import NamedTuple

from headrace.broker.cluster.snapshots import SNAPSHOT_BYTES_MAX, SnapshotName, list_snapshots
from headrace.log import names
from headrace.log.files import read_whole, unlink_if_present, write_all, write_atomically
from headrace.ports.disk import Disk

RECEIVED = "snapshot.staged"
"""The file that collects the parts of an arriving snapshot."""
INSTALLATION = "snapshot.installed"
"""The mark, with the name of the snapshot."""
MARK_BYTES_MAX = 256


class SnapshotPart(NamedTuple):
    content: bytes
    is_last: bool


def read_part(disk: Disk, folder: str, end_offset: int, position: int, bytes_max: int) -> SnapshotPart | None:
    """Return a part of the snapshot with this end offset; None if there is none."""
    name = next((each for each in reversed(list_snapshots(disk, folder)) if each.end_offset == end_offset), None)
    if name is None:
        return None
    try:
        file = disk.open(f"{folder}/{name.file_name}", writable=False)
    except FileNotFoundError:
        return None
    try:
        size = disk.size(file)
        content = disk.read(file, min(bytes_max, max(0, size - position)), position)
        return SnapshotPart(bytes(content), position + len(content) >= size)
    finally:
        disk.close(file)


def write_chunk(disk: Disk, folder: str, position: int, content: bytes) -> None:
    """Write a part at its position; the first one discards what was written before."""
    file = disk.open(f"{folder}/{RECEIVED}", create=True)
    try:
        if position == 0:
            disk.truncate(file, 0)
        if content:
            write_all(disk, file, [content], position)
    finally:
        disk.close(file)


def install_received(disk: Disk, folder: str, name: SnapshotName) -> bytes:
    """Put the received file in place under its name, durably, and return its bytes."""
    path = f"{folder}/{RECEIVED}"
    file = disk.open(path)
    try:
        disk.data_sync(file)
    finally:
        disk.close(file)
    write_atomically(disk, f"{folder}/{INSTALLATION}", name.file_name.encode())
    disk.rename(path, f"{folder}/{name.file_name}")
    disk.sync_directory(folder)
    return read_whole(disk, f"{folder}/{name.file_name}", SNAPSHOT_BYTES_MAX)


def finish_installation(disk: Disk, folder: str) -> None:
    """Remove the log and the snapshots that an installed snapshot replaces, if there is one."""
    mark = f"{folder}/{INSTALLATION}"
    if not disk.exists(mark):
        return
    installed = read_whole(disk, mark, MARK_BYTES_MAX).decode(errors="replace")
    if disk.exists(f"{folder}/{installed}"):
        for name in disk.list_directory(folder):
            if names.parse_segment_file(name) is not None or name == names.LEADER_EPOCHS:
                unlink_if_present(disk, f"{folder}/{name}")
        for snapshot in list_snapshots(disk, folder):
            if snapshot.file_name != installed:
                unlink_if_present(disk, f"{folder}/{snapshot.file_name}")
        disk.sync_directory(folder)
    unlink_if_present(disk, mark)
    disk.sync_directory(folder)
