"""A sync that failed, remembered until what it did not cover has been written again.

After a failed sync the system calls the pages clean, though the device may never have got them: it reads them from
memory, and another sync of them succeeds without doing anything. So the folder is marked, by whoever tried the sync and
at once: the process may end before anybody is told. The mark needs no sync of its own, because a power cut takes it
away together with those pages.
"""

from headrace.ports.disk import Disk, FileHandle

from .files import unlink_if_present, write_all
from .names import UNSYNCED

REWRITE_CHUNK_BYTES = 1 << 20


def sync(disk: Disk, folder: str, file: FileHandle) -> None:
    """Sync a file of the folder's log."""
    try:
        disk.data_sync(file)
    except OSError:
        remember(disk, folder)
        raise


def remember(disk: Disk, folder: str) -> None:
    try:
        disk.close(disk.open(f"{folder}/{UNSYNCED}", create=True))
    except OSError:
        return  # the device is worse off than that: the start will see it


def is_remembered(disk: Disk, folder: str) -> bool:
    return disk.exists(f"{folder}/{UNSYNCED}")


def forget(disk: Disk, folder: str) -> None:
    unlink_if_present(disk, f"{folder}/{UNSYNCED}")


def write_again(disk: Disk, folder: str, file: FileHandle, begin: int, end: int) -> None:
    """The same bytes to the same place, which must have been checked before: now a sync means them."""
    position = begin
    while position < end:
        content = disk.read(file, min(REWRITE_CHUNK_BYTES, end - position), position)
        if not content:
            raise OSError(f"a file ends at position {position}, before what is to be written again")
        position = write_all(disk, file, [content], position)
    sync(disk, folder, file)
