"""Remember a failed sync until the bytes it covered have been written again.

After a failed sync the kernel marks the pages clean, although the device may never have received them: reads come from
memory, and another sync succeeds without writing anything. So the caller of the failed sync marks the folder at once:
the process may end before it can report the failure. The mark needs no sync of its own, because a power cut removes it
together with those pages.
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
        return  # the device is in a worse state than that: the next start will find it


def is_remembered(disk: Disk, folder: str) -> bool:
    return disk.exists(f"{folder}/{UNSYNCED}")


def forget(disk: Disk, folder: str) -> None:
    unlink_if_present(disk, f"{folder}/{UNSYNCED}")


def write_again(disk: Disk, folder: str, file: FileHandle, begin: int, end: int) -> None:
    """Write the same bytes, which the caller has verified, to the same position, so that the next sync covers them."""
    position = begin
    while position < end:
        content = disk.read(file, min(REWRITE_CHUNK_BYTES, end - position), position)
        if not content:
            raise OSError(f"the file ends at position {position}, before the bytes to be written again")
        position = write_all(disk, file, [content], position)
    sync(disk, folder, file)
