"""A sparse index file: pairs of ascending numbers, the newest of them still in memory.

Both of Kafka's indexes have this format: `.index` maps an offset to a position in the segment, `.timeindex` maps a
timestamp to an offset. Lookups search the file itself, so an index of any length costs no memory.
"""

from array import array
from bisect import bisect_right
from struct import Struct

from headrace.ports.disk import Disk, FileHandle

from .errors import is_transient
from .files import create_empty, write_all
from .open_files import OpenFile, OpenFiles

OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")
PENDING_ENTRIES_MAX = 512
"""Entries kept in memory before they are written; a crash loses no more than recovery rebuilds anyway."""

GUESS_ENTRIES = 64
"""Greatest distance of an entry from its position in an even distribution at which one read finds it."""

Entry = tuple[int, int]


class IndexFile:
    __slots__ = ("_disk", "_entry", "_files", "_firsts", "_seconds", "entries_max", "file", "last", "stored")

    def __init__(self, files: OpenFiles, path: str, entry: Struct, bytes_max: int) -> None:
        self._disk = files.disk
        self._files = files
        self._entry = entry
        self._firsts = array("q")
        self._seconds = array("q")
        self.file = OpenFile(path)
        self.entries_max = bytes_max // entry.size
        self.stored = 0
        """Number of entries in the file."""
        self.last: Entry | None = None

    def __len__(self) -> int:
        return self.stored + len(self._firsts)

    @property
    def is_full(self) -> bool:
        return self.stored + len(self._firsts) >= self.entries_max

    @property
    def stored_bytes(self) -> int:
        return self.stored * self._entry.size

    def load(self) -> bool:
        """Load the file; return False if it is missing or its length is not a whole number of entries."""
        try:
            size = self._disk.file_size(self.file.path)
        except FileNotFoundError:
            return False
        self.stored, rest = divmod(size, self._entry.size)
        self.last = self._read_entry(self.stored - 1) if self.stored else None
        return rest == 0

    def append(self, first: int, second: int) -> None:
        self._firsts.append(first)
        self._seconds.append(second)
        self.last = (first, second)
        if len(self._firsts) >= PENDING_ENTRIES_MAX:
            self._spill_if_possible()

    def spill(self) -> None:
        """Write the entries that are still in memory."""
        if not self._firsts:
            return
        pairs = zip(self._firsts, self._seconds, strict=True)
        content = b"".join([self._entry.pack(first, second) for first, second in pairs])
        write_all(self._disk, self._files.handle(self.file), [content], self.stored * self._entry.size)
        self.stored += len(self._firsts)
        del self._firsts[:], self._seconds[:]

    def _spill_if_possible(self) -> None:
        """Write the entries if there is space. The batch is in the log already, so its entry can stay in memory; no
        more are added while the disk is full.
        """
        try:
            self.spill()
        except OSError as error:
            if not is_transient(error):
                raise

    def floor(self, first: int) -> Entry | None:
        """Return the last entry whose first number is not above the given one."""
        return self._at(self._count_to(0, first) - 1)

    def entry(self, place: int) -> Entry:
        """Return the entry at that position."""
        found = self._at(place)
        assert found is not None, f"{self.file.path} has no entry {place}"
        return found

    def floor_by_second(self, second: int) -> Entry | None:
        return self._at(self._count_to(1, second) - 1)

    def keep(self, count: int) -> None:
        """Drop all entries after the first `count`."""
        if count < self.stored:
            self.stored = count
            self._disk.truncate(self._files.handle(self.file), count * self._entry.size)
        del self._firsts[count - self.stored :], self._seconds[count - self.stored :]
        self.last = self._at(count - 1)

    def count_through(self, first: int) -> int:
        """Count the entries whose first number is not above the given one."""
        return self._count_to(0, first)

    def count_through_second(self, second: int) -> int:
        return self._count_to(1, second)

    def reset(self) -> None:
        """Empty the index for a rebuild, creating the file if it is missing."""
        del self._firsts[:], self._seconds[:]
        self.stored = 0
        self.last = None
        create_empty(self._disk, self.file.path)

    def copy(self, files: OpenFiles) -> "IndexFile":
        """Return the index as it is now, for a search elsewhere with its own file handles."""
        twin = IndexFile(files, self.file.path, self._entry, 0)
        twin.stored, twin.last, twin.entries_max = self.stored, self.last, self.entries_max
        twin._firsts, twin._seconds = self._firsts[:], self._seconds[:]
        return twin

    def is_ascending(self, *, thorough: bool) -> bool:
        """Return whether the file's entries ascend; torn pages and zeros do not."""
        begin = 0 if thorough else max(self.stored - 2, 0)
        size = self._entry.size
        content = self._disk.read(self._files.handle(self.file), (self.stored - begin) * size, begin * size)
        previous_first = previous_second = -(1 << 63)
        for first, second in self._entry.iter_unpack(content):
            if first <= previous_first or second < previous_second:
                return False
            previous_first, previous_second = first, second
        return True

    def _count_to(self, column: int, value: int) -> int:
        pending = self._seconds if column else self._firsts
        if pending and value >= pending[0]:
            return self.stored + bisect_right(pending, value)
        return self._search_file(column, value, pending[0] if pending else None) if self.stored else 0

    def _search_file(self, column: int, value: int, above: int | None) -> int:
        """Search the file. Entries are usually spread evenly, so the block around the estimated position is read first
        and mostly suffices.
        """
        file, size, count = self._files.handle(self.file), self._entry.size, self.stored
        if above is None:
            assert self.last is not None
            above = self.last[column]
        guess = count * value // above if above > 0 else 0
        low = max(min(guess, count) - GUESS_ENTRIES, 0)
        high = min(low + 2 * GUESS_ENTRIES, count)
        block = self._disk.read(file, (high - low) * size, low * size)
        unpack = self._entry.unpack_from
        if unpack(block, 0)[column] > value:
            return bisect_right(_StoredColumn(self._disk, file, self._entry, low, column), value)
        if unpack(block, len(block) - size)[column] <= value:
            stored = _StoredColumn(self._disk, file, self._entry, count, column)
            return bisect_right(stored, value, high)
        return low + bisect_right(range(high - low), value, key=lambda place: unpack(block, place * size)[column])

    def _at(self, place: int) -> Entry | None:
        if place < 0:
            return None
        if place >= self.stored:
            return self._firsts[place - self.stored], self._seconds[place - self.stored]
        return self._read_entry(place)

    def _read_entry(self, place: int) -> Entry:
        content = self._disk.read(self._files.handle(self.file), self._entry.size, place * self._entry.size)
        first, second = self._entry.unpack(content)
        return first, second


class _StoredColumn:
    """One column of an index file as a sequence, so that `bisect` can search the file."""

    __slots__ = ("_column", "_count", "_disk", "_entry", "_file")

    def __init__(self, disk: Disk, file: FileHandle, entry: Struct, count: int, column: int) -> None:
        self._disk = disk
        self._file = file
        self._entry = entry
        self._count = count
        self._column = column

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> int:
        size = self._entry.size
        number: int = self._entry.unpack(self._disk.read(self._file, size, place * size))[self._column]
        return number
