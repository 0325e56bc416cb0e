"""Cut the end off a log on disk, or replace all of it with an empty one, in steps that a crash cannot tear.

A mark in the partition's folder says what is to be done before anything is done, and that it is finished before the log
takes another batch. A start that finds an unfinished mark carries it out again; every step may be repeated. So after a
crash the log is either the old one or the truncated one.

A finished mark stays for the sake of the recovery points that the log directory stored before: they may lie above the
new end, and would make a start refuse the log as one that lost its end. It is removed by a start that finds a newer
one.
"""

from typing import NamedTuple

from headrace.ports.disk import Disk
from headrace.wire.records.header import BASE_OFFSET, LAST_OFFSET_DELTA

from . import names
from .checkpoints import PROPERTIES_BYTES_MAX, decode_properties, encode_properties
from .config import LogConfig
from .errors import CorruptFile, DamagedLog
from .files import create_empty, read_whole, replace_file, unlink_if_present, write_atomically
from .index import IndexFile
from .leader_epochs import LeaderEpochs, read_epochs
from .open_files import OpenFiles
from .recovery import segment_bases, snapshot_offsets
from .segment import Segment
from .walk import BatchWalk

_VERSION = "0"


class TruncationMark(NamedTuple):
    end_offset: int
    """The end of the log after the truncation, at the boundary of a batch; for a restart, its begin as well."""
    restarts: bool
    """True if everything is removed, not only the end."""
    recovery_point: int
    """The recovery point afterwards."""
    superseded: int
    """The highest recovery point that may have been stored before: such a stored one says nothing any more."""
    finished: bool = False

    def valid_point(self, stored: int) -> int:
        """Return the recovery point that a stored one stands for."""
        return stored if stored > self.superseded else min(stored, self.recovery_point)


def read_mark(disk: Disk, folder: str) -> TruncationMark | None:
    """Read the mark of the last truncation; None if there is none. DamagedLog if it cannot be read."""
    path = f"{folder}/{names.TRUNCATION}"
    try:
        return decode_mark(read_whole(disk, path, PROPERTIES_BYTES_MAX))
    except FileNotFoundError:
        return None
    except CorruptFile as error:
        raise DamagedLog(path, 0, f"a truncation may not be finished, but its mark cannot be read: {error}") from error


def decode_mark(content: bytes) -> TruncationMark:
    found = decode_properties(content)
    try:
        if found["version"] != _VERSION:
            raise CorruptFile(f"the mark of a truncation has the unknown version {found['version']}")
        return TruncationMark(
            int(found["end.offset"]),
            found["restarts"] == "true",
            int(found["recovery.point"]),
            int(found["superseded.recovery.point"]),
            found["finished"] == "true",
        )
    except (KeyError, ValueError) as error:
        raise CorruptFile(f"the mark of a truncation cannot be parsed: {error}") from error


def write_mark(disk: Disk, folder: str, mark: TruncationMark) -> None:
    content = {
        "version": _VERSION,
        "end.offset": str(mark.end_offset),
        "restarts": str(mark.restarts).lower(),
        "recovery.point": str(mark.recovery_point),
        "superseded.recovery.point": str(mark.superseded),
        "finished": str(mark.finished).lower(),
    }
    write_atomically(disk, f"{folder}/{names.TRUNCATION}", encode_properties(content))


def remove_mark(disk: Disk, folder: str) -> None:
    """Remove a finished mark. It is harmless if it returns after a crash."""
    unlink_if_present(disk, f"{folder}/{names.TRUNCATION}")


def boundary_at(disk: Disk, folder: str, config: LogConfig, offset: int) -> int:
    """Return the end of the last batch that lies wholly below `offset`: where a log is cut to end there.

    Damage above it ends the walk, and so the log that is kept.
    """
    files = OpenFiles(disk)
    try:
        while True:
            base_offset = _segment_of(disk, folder, offset)
            cut = _Cut(files, folder, config, base_offset, offset)
            if cut.position or base_offset == segment_bases(disk, folder)[0]:
                return cut.next_offset
            offset = base_offset  # nothing is left of this segment
    finally:
        files.close_all()


def carry_out(disk: Disk, folder: str, config: LogConfig, mark: TruncationMark, wall_ms: int) -> None:
    """Do what an unfinished mark says, and finish it."""
    if mark.restarts:
        _restart(disk, folder, config, mark.end_offset, wall_ms)
    else:
        _truncate(disk, folder, config, mark.end_offset)
    write_mark(disk, folder, mark._replace(finished=True))


def _restart(disk: Disk, folder: str, config: LogConfig, offset: int, wall_ms: int) -> None:
    for base_offset in segment_bases(disk, folder):
        _unlink(disk, folder, base_offset, (names.LOG, *names.INDEXES))
    for snapshot in snapshot_offsets(disk, folder):
        _unlink(disk, folder, snapshot, (names.SNAPSHOT,))
    _store_epochs(disk, folder, LeaderEpochs())
    disk.sync_directory(folder)  # an old segment that came back would not fit the new one
    files = OpenFiles(disk)
    Segment.create(files, folder, offset, config, wall_ms)
    disk.sync_directory(folder)


def _truncate(disk: Disk, folder: str, config: LogConfig, end_offset: int) -> None:
    """Remove the later segments, then the end of the one that contains the offset, and sync each step."""
    kept = _segment_of(disk, folder, end_offset)
    for base_offset in reversed(segment_bases(disk, folder)):
        if base_offset > kept:
            _unlink(disk, folder, base_offset, (names.LOG, *names.INDEXES))
    epochs = read_epochs(disk, folder)
    if epochs is not None:
        epochs.truncate_from(end_offset)
        if epochs.changed:
            # A later batch of an older epoch than a removed one would be lost behind it at the next start.
            _store_epochs(disk, folder, epochs)
    disk.sync_directory(folder)
    files = OpenFiles(disk)
    try:
        _Cut(files, folder, config, kept, end_offset).make()
    finally:
        files.close_all()


class _Cut:
    """The place in a segment's file at which a log is cut."""

    def __init__(self, files: OpenFiles, folder: str, config: LogConfig, base_offset: int, offset: int) -> None:
        self._files = files
        self._segment = segment = Segment(files, folder, base_offset, config, 0)
        self._indexes = (segment.index, segment.time_index)
        sound = [_is_sound(index) for index in self._indexes]  # which loads both
        self._are_indexed = all(sound)
        segment.size = files.disk.file_size(segment.log.path)
        position = segment.position_before(offset) if self._are_indexed else 0
        if not self._walk(position, offset):
            self._walk(0, offset)  # the index entry is wrong

    def _walk(self, position: int, offset: int) -> bool:
        """Walk to the last batch that lies below the offset; return False if the first one does not."""
        segment, files = self._segment, self._files
        self.position, self.next_offset = position, segment.base_offset
        walk = BatchWalk(
            files.disk, files.handle(segment.log), position=position, end=segment.size, next_offset=segment.base_offset
        )
        for _at, fields in walk:
            if fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] >= offset:
                break
            self.position, self.next_offset = walk.position, walk.next_offset
        return self.position > position

    def make(self) -> None:
        """Shorten the segment's files. A crash must not restore index entries of batches that others replace."""
        disk, segment, end_offset = self._files.disk, self._segment, self.next_offset
        file = self._files.handle(segment.log)
        disk.truncate(file, self.position)
        disk.data_sync(file)
        for index in self._indexes:
            if not self._are_indexed:
                create_empty(disk, index.file.path)  # opening the log rebuilds it
        if self._are_indexed:
            segment.index.keep(segment.index.count_through(end_offset - 1 - segment.base_offset))
            segment.time_index.keep(segment.time_index.count_through_second(end_offset - 1 - segment.base_offset))
        for index in self._indexes:
            disk.data_sync(self._files.handle(index.file))
        # A damaged transaction index is left to the opening of the log, which rebuilds it.
        transactions = segment.transactions
        if transactions.load(base_offset=segment.base_offset, next_offset=end_offset) and transactions.exists:
            disk.data_sync(self._files.handle(transactions.file))


def _is_sound(index: IndexFile) -> bool:
    return index.load() and index.is_ascending(thorough=True)


def _segment_of(disk: Disk, folder: str, offset: int) -> int:
    """Return the base offset of the last segment that begins below the offset, or of the first one."""
    bases = segment_bases(disk, folder)
    if not bases:
        raise DamagedLog(folder, 0, f"it has no segments, but is to be truncated to offset {offset}")
    return max((base_offset for base_offset in bases if base_offset < offset), default=bases[0])


def _unlink(disk: Disk, folder: str, base_offset: int, suffixes: tuple[str, ...]) -> None:
    for suffix in suffixes:
        unlink_if_present(disk, names.segment_stem(folder, base_offset) + suffix)


def _store_epochs(disk: Disk, folder: str, epochs: LeaderEpochs) -> None:
    replace_file(disk, f"{folder}/{names.LEADER_EPOCHS}", epochs.encode())
