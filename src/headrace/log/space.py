"""Free space of a log directory, and the reserve file that the broker deletes when the disk is full.

The reserve is a file of a named size. While the disk has space, it keeps that much from being used; when the disk is
full it is deleted, so that metadata and checkpoints can still be written: with these an operator can delete records and
topics, and retention can continue. The reserve is created again before the directory counts as having space.
"""

from errno import ENOENT
from typing import NamedTuple

from headrace.ports.disk import Disk

from . import names
from .errors import is_transient
from .files import unlink_if_present, write_all
from .work import Work

RESERVE_BYTES = 4 << 20
ROOM_AGAIN_BYTES = 2 * RESERVE_BYTES
"""Bytes above the minimum that must be free before the reserve is created again: half for it, half to continue with."""
ZEROS_BYTES = 1 << 20
UNKNOWN = -1


class _FreeSpace(NamedTuple):
    free_bytes: int
    reserved: bool


class Space:
    """Free space of one log directory. Every append checks `full`."""

    __slots__ = ("_disk", "_in_flight", "_path", "_refusals", "_refusals_handled", "_reserved", "free_bytes", "full")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._in_flight = False
        self._reserved = False
        self._refusals = 0
        self._refusals_handled = 0
        self.full = False
        """Nothing may be appended in this directory."""
        self.free_bytes = UNKNOWN

    def prepare(self) -> None:
        """Use the reserve if necessary, at start, before anything is written."""
        space = _release_if_needed(self._disk, self._path, refused=False)
        self.free_bytes, self._reserved = space

    def refused(self) -> None:
        """Note that the device refused a write for lack of space, regardless of the free bytes it reported."""
        self._refusals += 1
        self.full = True

    def work(self, free_bytes_min: int) -> Work | None:
        """Return work that measures the free space and deletes or creates the reserve; None while it is running.

        The work fails with FileNotFoundError when the directory has vanished.
        """
        if self._in_flight:
            return None
        self._in_flight = True
        disk, path, refusals = self._disk, self._path, self._refusals
        refused, reserved = refusals > self._refusals_handled, self._reserved

        def measure_space() -> _FreeSpace:
            if not disk.exists(f"{path}/{names.META_PROPERTIES}"):
                raise FileNotFoundError(
                    ENOENT, "the log directory has vanished; check that its file system is mounted", path
                )
            space = (
                _release_if_needed(disk, path, refused=refused)
                if reserved
                else _FreeSpace(disk.free_bytes(path), False)
            )
            if reserved or space.free_bytes < free_bytes_min + ROOM_AGAIN_BYTES:
                return space
            return _FreeSpace(space.free_bytes - RESERVE_BYTES, _make_reserve(disk, path))

        def done(space: _FreeSpace | None, error: BaseException | None) -> None:
            self._in_flight = False
            if space is None:
                return
            self.free_bytes, self._reserved = space
            if space.reserved:
                self._refusals_handled = refusals
            # The space of the deleted reserve is not for records.
            for_records = space.free_bytes if space.reserved else max(space.free_bytes - RESERVE_BYTES, 0)
            self.full = for_records < free_bytes_min or self._refusals > self._refusals_handled

        return Work(measure_space, done)


def _release_if_needed(disk: Disk, path: str, *, refused: bool) -> _FreeSpace:
    reserve = f"{path}/{names.RESERVE}"
    free_bytes = disk.free_bytes(path)
    if not disk.exists(reserve):
        return _FreeSpace(free_bytes, False)
    if not refused and free_bytes >= RESERVE_BYTES:
        return _FreeSpace(free_bytes, True)
    unlink_if_present(disk, reserve)
    return _FreeSpace(disk.free_bytes(path), False)


def _make_reserve(disk: Disk, path: str) -> bool:
    """Create the reserve and return whether it exists. This also proves that files can be created at all: inodes and
    quotas run out too.
    """
    reserve = f"{path}/{names.RESERVE}"
    try:
        file = disk.open(reserve, create=True)
        try:
            disk.allocate(file, 0, RESERVE_BYTES)
            zeros = bytes(ZEROS_BYTES)
            for position in range(disk.size(file), RESERVE_BYTES, ZEROS_BYTES):  # on file systems that cannot allocate
                write_all(disk, file, [zeros], position)
        finally:
            disk.close(file)
    except OSError as error:
        if not is_transient(error):
            raise
        unlink_if_present(disk, reserve)
        return False
    return True
