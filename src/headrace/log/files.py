"""Replace small files so that a crash leaves either the old file or the new one, never a part of either."""

from collections.abc import Sequence

from headrace.ports.disk import Buffer, Disk, FileHandle

from .errors import is_transient
from .names import TEMPORARY

BLANK_CHUNK_BYTES = 1 << 20
"""Bytes read at a time when checking preallocated space."""


def write_all(disk: Disk, file: FileHandle, buffers: Sequence[Buffer], position: int) -> int:
    """Write every byte, repeating partial writes; return the position after the last byte."""
    iov_max = disk.iov_max
    index = 0
    while index < len(buffers):
        group = list(buffers[index : index + iov_max])
        index += len(group)
        while group:
            written = disk.write_vector(file, group, position)
            if written <= 0:
                raise OSError(f"a write at position {position} wrote no bytes")
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
    """Create the file, or truncate the existing one."""
    file = disk.open(path, create=True)
    try:
        disk.truncate(file, 0)
    finally:
        disk.close(file)


def replace_file(disk: Disk, path: str, content: bytes, *, unique: str = "", private: bool = False) -> None:
    """Replace the file with a synced one; the new name is durable once its directory is synced.

    If two helper threads may replace the same file, `unique` keeps their temporary files apart.
    """
    temporary = path + unique + TEMPORARY
    try:
        _write_synced(disk, temporary, content, private=private)
        disk.rename(temporary, path)
    except OSError as error:
        if is_transient(error):
            unlink_if_present(disk, temporary)  # when the disk is full, half a file must not occupy what space is left
        raise


def _write_synced(disk: Disk, path: str, content: bytes, *, private: bool) -> None:
    file = disk.open(path, create=True, private=private)
    try:
        disk.truncate(file, 0)
        write_all(disk, file, [content], 0)
        disk.data_sync(file)
    finally:
        disk.close(file)


def write_atomically(disk: Disk, path: str, content: bytes, *, private: bool = False) -> None:
    """Replace the file and make its name durable. A private file can be read only by its owner."""
    replace_file(disk, path, content, private=private)
    disk.sync_directory(path.rpartition("/")[0] or ".")


def make_directory_durably(disk: Disk, path: str) -> None:
    """Create the folder and its missing parents and sync their names; the folder's own name is always synced, because
    an earlier process may have died between creating and syncing it.
    """
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
    """Read the file's bytes, at most `bytes_max` of them."""
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
    """Return whether the rest of the file is zeros: space that was preallocated and never written."""
    while begin < end:
        part = disk.read(file, min(BLANK_CHUNK_BYTES, end - begin), begin)
        if not part or part != bytes(len(part)):
            return False
        begin += len(part)
    return True
