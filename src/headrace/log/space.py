"""How much room a log directory has, and the reserve that it gives up when there is none.

The reserve is a file of a named size. While the device has room it keeps that much from being used; when the device is
full it is removed, so that metadata and checkpoints can still be written: they are what lets an operator delete
records and topics, and lets retention go on. It is made again before the directory counts as having room.
"""

from errno import ENOENT
from typing import NamedTuple

from headrace.ports.disk import Disk

from . import names
from .errors import passes
from .files import unlink_if_present, write_all
from .work import Work

RESERVE_BYTES = 4 << 20
ROOM_AGAIN_BYTES = 2 * RESERVE_BYTES
"""So much above the minimum must be free before the reserve is made again: one half for it, one half to go on with."""
ZEROS_BYTES = 1 << 20
UNKNOWN = -1


class _Look(NamedTuple):
    free_bytes: int
    reserved: bool


class Space:
    """Of one log directory. `full` is what every append looks at."""

    __slots__ = ("_disk", "_in_flight", "_path", "_refusals", "_refusals_settled", "_reserved", "free_bytes", "full")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._in_flight = False
        self._reserved = False
        self._refusals = 0
        self._refusals_settled = 0
        self.full = False
        """Nothing may be appended in this directory."""
        self.free_bytes = UNKNOWN

    def prepare(self) -> None:
        """At a start, before anything is written: what is left of the reserve is used where it is needed."""
        look = _release_if_needed(self._disk, self._path, refused=False)
        self.free_bytes, self._reserved = look

    def refused(self) -> None:
        """The device refused a write for want of room, whatever it said was free."""
        self._refusals += 1
        self.full = True

    def work(self, free_bytes_min: int) -> Work | None:
        """Ask for the free space, and give up or make the reserve; None while that is under way.

        The work fails with FileNotFoundError when the directory has vanished.
        """
        if self._in_flight:
            return None
        self._in_flight = True
        disk, path, refusals = self._disk, self._path, self._refusals
        refused, reserved = refusals > self._refusals_settled, self._reserved

        def look_at_space() -> _Look:
            if not disk.exists(f"{path}/{names.META_PROPERTIES}"):
                raise FileNotFoundError(ENOENT, "the log directory has vanished; is its file system mounted?", path)
            look = _release_if_needed(disk, path, refused=refused) if reserved else _Look(disk.free_bytes(path), False)
            if reserved or look.free_bytes < free_bytes_min + ROOM_AGAIN_BYTES:
                return look
            return _Look(look.free_bytes - RESERVE_BYTES, _make_reserve(disk, path))

        def done(look: _Look | None, error: BaseException | None) -> None:
            self._in_flight = False
            if look is None:
                return
            self.free_bytes, self._reserved = look
            if look.reserved:
                self._refusals_settled = refusals
            # What the reserve has left behind is not for records.
            for_records = look.free_bytes if look.reserved else max(look.free_bytes - RESERVE_BYTES, 0)
            self.full = for_records < free_bytes_min or self._refusals > self._refusals_settled

        return Work(look_at_space, done)


def _release_if_needed(disk: Disk, path: str, *, refused: bool) -> _Look:
    reserve = f"{path}/{names.RESERVE}"
    free_bytes = disk.free_bytes(path)
    if not disk.exists(reserve):
        return _Look(free_bytes, False)
    if not refused and free_bytes >= RESERVE_BYTES:
        return _Look(free_bytes, True)
    unlink_if_present(disk, reserve)
    return _Look(disk.free_bytes(path), False)


def _make_reserve(disk: Disk, path: str) -> bool:
    """Whether it is there. Making it also tells whether files can be made at all: inodes and quotas run out, too."""
    reserve = f"{path}/{names.RESERVE}"
    try:
        file = disk.open(reserve, create=True)
        try:
            disk.allocate(file, 0, RESERVE_BYTES)
            zeros = bytes(ZEROS_BYTES)
            for position in range(disk.size(file), RESERVE_BYTES, ZEROS_BYTES):  # where nothing can be allocated
                write_all(disk, file, [zeros], position)
        finally:
            disk.close(file)
    except OSError as error:
        if not passes(error):
            raise
        unlink_if_present(disk, reserve)
        return False
    return True
