"""Whole small files: written so that a crash leaves the old or the new one, never half of either."""

from collections.abc import Sequence

from headrace.ports.disk import Buffer, Disk, FileHandle

from .errors import passes
from .names import TEMPORARY

BLANK_CHUNK_BYTES = 1 << 20
"""How much of a reserved end is looked at at once."""


def write_all(disk: Disk, file: FileHandle, buffers: Sequence[Buffer], position: int) -> int:
    """Write every byte, however often the system takes only a part; the position after them."""
    iov_max = disk.iov_max
    index = 0
    while index < len(buffers):
        group = list(buffers[index : index + iov_max])
        index += len(group)
        while group:
            written = disk.write_vector(file, group, position)
            if written <= 0:
                raise OSError(f"a write at position {position} took no bytes")
            position += written
            group = _left_over(group, written)
    return position


def _left_over(buffers: list[Buffer], written: int) -> list[Buffer]:
    for index, buffer in enumerate(buffers):
        if written < len(buffer):
            return [memoryview(buffer)[written:], *buffers[index + 1 :]]
        written -= len(buffer)
    return []


def create_empty(disk: Disk, path: str) -> None:
    """Make the file, or empty the one that is there."""
    file = disk.open(path, create=True)
    try:
        disk.truncate(file, 0)
    finally:
        disk.close(file)


def replace_file(disk: Disk, path: str, content: bytes, *, unique: str = "") -> None:
    """Replace the file by a synced one; the new name is durable once its directory is synced.

    Where two helpers may replace the same file, `unique` keeps their temporary files apart.
    """
    temporary = path + unique + TEMPORARY
    try:
        _write_synced(disk, temporary, content)
        disk.rename(temporary, path)
    except OSError as error:
        if passes(error):
            unlink_if_present(disk, temporary)  # where room ran out, half a file must not take the rest of it
        raise


def _write_synced(disk: Disk, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    try:
        disk.truncate(file, 0)
        write_all(disk, file, [content], 0)
        disk.data_sync(file)
    finally:
        disk.close(file)


def write_atomically(disk: Disk, path: str, content: bytes) -> None:
    """Replace the file and make its name durable."""
    replace_file(disk, path, content)
    disk.sync_directory(path.rpartition("/")[0] or ".")


def make_directory_durably(disk: Disk, path: str) -> None:
    """Make the folder and its parents, and the names of those that were missing durable; the folder's own always,
    because an earlier process may have died between the two."""
    missing = []
    folder = path
    while not disk.exists(folder):
        missing.append(folder)
        folder = _parent(folder)
    disk.make_directory(path)
    for folder in missing or [path]:
        disk.sync_directory(_parent(folder))


def _parent(path: str) -> str:
    above, slash, _name = path.rstrip("/").rpartition("/")
    return above or slash or "."


def read_whole(disk: Disk, path: str, bytes_max: int) -> bytes:
    """The file's bytes, at most `bytes_max` of them."""
    file = disk.open(path, writable=False)
    try:
        return disk.read(file, min(disk.size(file), bytes_max), 0)
    finally:
        disk.close(file)


def unlink_if_present(disk: Disk, path: str) -> bool:
    try:
        disk.unlink(path)
    except FileNotFoundError:
        return False
    return True


def is_blank(disk: Disk, file: FileHandle, begin: int, end: int) -> bool:
    """Whether there is nothing but zeros: space that was reserved and never written."""
    while begin < end:
        part = disk.read(file, min(BLANK_CHUNK_BYTES, end - begin), begin)
        if not part or part != bytes(len(part)):
            return False
        begin += len(part)
    return True
