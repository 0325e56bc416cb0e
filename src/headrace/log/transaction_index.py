"""The transactions that were aborted, by the segment that holds the marker: Kafka's `.txnindex` file.

An entry says whose transaction it was, its first offset, the offset of its marker, and the last stable offset once it
had ended. Entries stand in the order of their markers, so that both of the last two rise. Readers search the file
itself; the newest entries are still in memory. There is no file until there is an entry.
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from headrace.ports.disk import Disk

from .errors import CorruptFile, DamagedLog, passes
from .files import create_empty, read_whole, replace_file, unlink_if_present, write_all
from .open_files import OpenFile, OpenFiles

ENTRY = Struct(">hqqqq")
VERSION = 0
INDEX_BYTES_MAX = 1 << 30
PENDING_ENTRIES_MAX = 512
"""Entries kept in memory before they are written; a crash loses no more than recovery rebuilds anyway."""
READ_ENTRIES = 256
"""How many are read from the file at once."""


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """Of the marker."""
    last_stable_offset: int
    """Below it every transaction had ended when this one did."""


class TransactionIndex:
    __slots__ = ("_disk", "_files", "_pending", "exists", "file", "is_new", "is_unsynced", "last_offset", "stored")

    def __init__(self, files: OpenFiles, path: str) -> None:
        self._disk: Disk = files.disk
        self._files = files
        self._pending: list[AbortedTransaction] = []
        self.file = OpenFile(path)
        self.exists = False
        """Whether there is a file."""
        self.is_new = False
        """It was made, and its name is not on the device yet."""
        self.stored = 0
        """Entries in the file."""
        self.last_offset = -1
        """Of the last marker that has an entry."""
        self.is_unsynced = False
        """Something of it is not on the device yet."""

    def __len__(self) -> int:
        return self.stored + len(self._pending)

    def load(self, *, base_offset: int, next_offset: int) -> bool:
        """Take what the file holds of markers below `next_offset`; False if it cannot be the index of the segment."""
        self.stored, self.exists = 0, self._disk.exists(self.file.path)
        if not self.exists:
            return True
        try:
            entries = decode(read_whole(self._disk, self.file.path, INDEX_BYTES_MAX))
        except CorruptFile:
            return False
        if entries and entries[0].last_offset < base_offset:
            return False
        self.stored = len(entries)
        self.last_offset = entries[-1].last_offset if entries else -1
        if entries and entries[-1].last_offset >= next_offset:
            self.keep_below(next_offset)
        return True

    def append(self, entry: AbortedTransaction) -> None:
        self._pending.append(entry)
        self.last_offset = entry.last_offset
        self.is_unsynced = True
        if len(self._pending) >= PENDING_ENTRIES_MAX:
            try:
                self.spill()
            except OSError as error:
                if not passes(error):
                    raise

    def spill(self) -> None:
        """Write the entries still in memory."""
        if not self._pending:
            return
        if not self.exists:
            create_empty(self._disk, self.file.path)
            self.exists = self.is_new = True
        file = self._files.handle(self.file)
        write_all(self._disk, file, [encode(self._pending)], self.stored * ENTRY.size)
        self.stored += len(self._pending)
        self._pending.clear()

    def synced(self) -> None:
        """What was spilled is on the device, or is about to be by a sync that fails the log if it fails."""
        self.is_new = False
        self.is_unsynced = bool(self._pending)

    def keep_below(self, offset: int) -> None:
        """Drop the entries whose marker is not below the offset."""
        keep = self._place_of(offset)
        if keep < self.stored:
            self.stored = keep
            self.is_unsynced = True
            self._disk.truncate(self._files.handle(self.file), keep * ENTRY.size)
            self._pending.clear()
        else:
            del self._pending[keep - self.stored :]
        self.last_offset = self._last_offset()

    def replace(self, entries: Sequence[AbortedTransaction]) -> None:
        """Write the file anew, in one step that no crash can leave half done."""
        self._files.put_away(self.file)
        if entries:
            replace_file(self._disk, self.file.path, encode(entries))
        else:
            unlink_if_present(self._disk, self.file.path)
        self._disk.sync_directory(self.file.path.rpartition("/")[0])
        self.exists, self.stored = bool(entries), len(entries)
        self._pending.clear()
        self.last_offset = self._last_offset()
        self.synced()

    def since(self, offset: int) -> Iterator[AbortedTransaction]:
        """The entries whose marker is at the offset or above, in order."""
        if offset > self.last_offset:
            return  # as for most readers, which are near the end
        place = self._place_of(offset)
        while place < self.stored:
            entries = self._read(place, min(READ_ENTRIES, self.stored - place))
            place += len(entries)
            yield from entries
        yield from self._pending[max(place - self.stored, 0) :]

    def _last_offset(self) -> int:
        if self._pending:
            return self._pending[-1].last_offset
        return self._read(self.stored - 1, 1)[0].last_offset if self.stored else -1

    def _place_of(self, offset: int) -> int:
        """How many entries have their marker below the offset."""
        if self._pending and self._pending[0].last_offset < offset:
            return self.stored + sum(entry.last_offset < offset for entry in self._pending)
        low, high = 0, self.stored
        while low < high:
            middle = (low + high) // 2
            if self._read(middle, 1)[0].last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _read(self, place: int, count: int) -> list[AbortedTransaction]:
        position = place * ENTRY.size
        try:
            entries = decode(self._disk.read(self._files.handle(self.file), count * ENTRY.size, position))
        except CorruptFile as error:
            raise DamagedLog(self.file.path, position, str(error)) from None
        if len(entries) != count:
            raise DamagedLog(self.file.path, position, "the file ends before its last entry")
        return entries


def encode(entries: Iterable[AbortedTransaction]) -> bytes:
    return b"".join([ENTRY.pack(VERSION, *entry) for entry in entries])


def decode(content: bytes) -> list[AbortedTransaction]:
    """All entries of a file; CorruptFile if any of them cannot be one, or contradicts the one before."""
    if len(content) % ENTRY.size:
        raise CorruptFile(f"{len(content)} bytes are not a whole number of entries")
    entries: list[AbortedTransaction] = []
    last_offset = last_stable_offset = -1
    for version, *numbers in ENTRY.iter_unpack(content):
        entry = AbortedTransaction(*numbers)
        is_one = version == VERSION and entry.producer_id >= 0 and 0 <= entry.first_offset < entry.last_offset
        follows = entry.last_offset > last_offset and entry.last_stable_offset >= last_stable_offset
        if not is_one or not follows or not 0 <= entry.last_stable_offset <= entry.last_offset + 1:
            raise CorruptFile(f"entry {len(entries)} is not of an aborted transaction: {(version, *numbers)}")
        last_offset, last_stable_offset = entry.last_offset, entry.last_stable_offset
        entries.append(entry)
    return entries
