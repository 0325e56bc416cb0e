"""Kafka's `.txnindex` file: the aborted transactions whose markers are in one segment.

An entry holds the producer id, the first offset, the offset of the marker, and the last stable offset after the
transaction ended. Entries are in the order of their markers, so the last two columns ascend. Readers search the file
itself; the newest entries are still in memory. The file does not exist until there is an entry.
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from headrace.ports.disk import Disk

from .errors import CorruptFile, DamagedLog, is_transient
from .files import create_empty, read_whole, replace_file, unlink_if_present, write_all
from .open_files import OpenFile, OpenFiles

ENTRY = Struct(">hqqqq")
VERSION = 0
INDEX_BYTES_MAX = 1 << 30
PENDING_ENTRIES_MAX = 512
"""Entries kept in memory before they are written; a crash loses no more than recovery rebuilds anyway."""
READ_ENTRIES = 256
"""Entries read from the file at a time."""


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the marker."""
    last_stable_offset: int
    """Every transaction below this offset had ended when this one did."""


class TransactionIndex:
    __slots__ = ("_disk", "_files", "_pending", "exists", "file", "is_new", "is_unsynced", "last_offset", "stored")

    def __init__(self, files: OpenFiles, path: str) -> None:
        self._disk: Disk = files.disk
        self._files = files
        self._pending: list[AbortedTransaction] = []
        self.file = OpenFile(path)
        self.exists = False
        """True if the file exists."""
        self.is_new = False
        """True if the file was created and its name is not yet durable."""
        self.stored = 0
        """Number of entries in the file."""
        self.last_offset = -1
        """Offset of the last marker that has an entry."""
        self.is_unsynced = False
        """True if some of the file is not synced yet."""

    def __len__(self) -> int:
        return self.stored + len(self._pending)

    def load(self, *, base_offset: int, next_offset: int) -> bool:
        """Load the entries with markers below `next_offset`; return False if the file cannot belong to the segment."""
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
                if not is_transient(error):
                    raise

    def spill(self) -> None:
        """Write the entries that are still in memory."""
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
        """Note that the written entries are synced, or will be by a sync whose failure fails the log."""
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
        """Rewrite the file in one step that a crash cannot leave half done."""
        self._files.close_file(self.file)
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
        """Yield the entries whose marker is at or above the offset, in order."""
        if offset > self.last_offset:
            return  # the common case: most readers are near the end of the log
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
        """Count the entries whose marker is below the offset."""
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
    """Decode all entries of a file; raises CorruptFile if one is invalid or contradicts its predecessor."""
    if len(content) % ENTRY.size:
        raise CorruptFile(f"{len(content)} bytes are not a whole number of entries")
    entries: list[AbortedTransaction] = []
    last_offset = last_stable_offset = -1
    for version, *numbers in ENTRY.iter_unpack(content):
        entry = AbortedTransaction(*numbers)
        is_one = version == VERSION and entry.producer_id >= 0 and 0 <= entry.first_offset < entry.last_offset
        follows = entry.last_offset > last_offset and entry.last_stable_offset >= last_stable_offset
        if not is_one or not follows or not 0 <= entry.last_stable_offset <= entry.last_offset + 1:
            raise CorruptFile(f"entry {len(entries)} does not describe an aborted transaction: {(version, *numbers)}")
        last_offset, last_stable_offset = entry.last_offset, entry.last_stable_offset
        entries.append(entry)
    return entries
