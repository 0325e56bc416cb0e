"""Files and directories on a virtual device: their contents, and what a power cut may leave of them.

A file has two contents: the one that readers see, and the durable one. They differ in dirty pages and in the size until
a sync. At a power cut, each page is drawn: whether the device had already stored it, completely or up to a sector.
"""

from dataclasses import dataclass, field

from headrace.sim.entropy import SeededEntropy
from headrace.sim.trace import Trace

PAGE_BYTES = 4096
SECTOR_BYTES = 512
_SECTORS_PER_PAGE = PAGE_BYTES // SECTOR_BYTES


class FileInode:
    __slots__ = ("_dirty_pages", "_durable", "content", "locked_by", "name_count")

    def __init__(self) -> None:
        self.content = bytearray()
        self.name_count = 1
        self.locked_by: int | None = None
        self._durable = bytearray()
        self._dirty_pages: set[int] = set()

    @property
    def is_clean(self) -> bool:
        return not self._dirty_pages and len(self.content) == len(self._durable)

    def write(self, payload: bytes, position: int) -> None:
        end = position + len(payload)
        if end > len(self.content):
            self.resize(end)
        self.content[position:end] = payload
        self._mark(position, end)

    def resize(self, length: int) -> None:
        """Resize. Truncation makes the removed pages dirty: if the file grows again, zeros replace the device's old
        bytes.
        """
        before = len(self.content)
        if length < before:
            del self.content[length:]
            self._mark(length, before)
        else:
            self.content.extend(bytes(length - before))

    def _mark(self, start: int, end: int) -> None:
        if end > start:
            self._dirty_pages.update(range(start // PAGE_BYTES, (end - 1) // PAGE_BYTES + 1))

    def sync(self) -> None:
        _set_length(self._durable, len(self.content))
        for page in self._dirty_pages:
            start = page * PAGE_BYTES
            self._durable[start : start + PAGE_BYTES] = self.content[start : start + PAGE_BYTES]
        self._dirty_pages.clear()

    def forget_dirty(self) -> None:
        """Fail a sync: the kernel marks the pages clean, readers still see them, the device never gets them."""
        self._dirty_pages.clear()

    def lose_power(self, entropy: SeededEntropy, trace: Trace) -> None:
        survived = bytearray(self._durable)
        reach = max(len(self.content), len(self._durable))
        _set_length(survived, -(-reach // PAGE_BYTES) * PAGE_BYTES)
        for page in sorted(self._dirty_pages):
            start = page * PAGE_BYTES
            if start >= len(survived):
                continue
            old = bytes(survived[start : start + PAGE_BYTES])
            new = bytes(self.content[start : start + PAGE_BYTES]).ljust(PAGE_BYTES, b"\0")
            left = _drawn_page(old, new, entropy)
            if left != new:
                trace.count_fault("unsynced page dropped" if left == old else "unsynced page torn")
            survived[start : start + PAGE_BYTES] = left
        _set_length(survived, self._drawn_length(entropy))
        self.content = survived
        self._durable = bytearray(survived)
        self._dirty_pages.clear()
        self.name_count = 1
        self.locked_by = None

    def _drawn_length(self, entropy: SeededEntropy) -> int:
        """Draw the size, which is separate metadata: the old one, the new one, or the end of a page between them."""
        low, high = sorted((len(self._durable), len(self.content)))
        if low == high:
            return low
        draw = entropy.below(3)
        if draw == 2:
            page_end = (low + entropy.below(high - low)) // PAGE_BYTES * PAGE_BYTES
            return max(low, page_end)
        return low if draw else high


def _drawn_page(old: bytes, new: bytes, entropy: SeededEntropy) -> bytes:
    """Draw a page: kept, dropped, or torn at a sector boundary (either part may be the one that was stored)."""
    draw = entropy.below(3)
    if draw < 2:
        return new if draw else old
    border = (1 + entropy.below(_SECTORS_PER_PAGE - 1)) * SECTOR_BYTES
    if entropy.below(2):
        return new[:border] + old[border:]
    return old[:border] + new[border:]


def _set_length(content: bytearray, length: int) -> None:
    if length < len(content):
        del content[length:]
    else:
        content.extend(bytes(length - len(content)))


class DirectoryInode:
    __slots__ = ("durable_entries", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, Inode] = {}
        self.durable_entries: dict[str, Inode] = {}


Inode = FileInode | DirectoryInode


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryChange:
    """A directory entry now refers to this inode, or to nothing."""

    directory: DirectoryInode
    name: str
    inode: Inode | None

    def apply(self, entries: dict[str, Inode]) -> None:
        if self.inode is None:
            entries.pop(self.name, None)
        else:
            entries[self.name] = self.inode


@dataclass(slots=True)
class NameJournal:
    """Ordered name changes that no directory sync has covered yet. Each is atomic, as a rename must be."""

    pending: list[tuple[EntryChange, ...]] = field(default_factory=list)

    def change(self, *changes: EntryChange) -> None:
        for change in changes:
            change.apply(change.directory.entries)
        self.pending.append(changes)

    def sync(self, directory: DirectoryInode) -> None:
        """Make the directory's names durable, and what earlier changes connect to them."""
        tied = [directory]
        synced, waiting = [], []
        for changes in reversed(self.pending):
            directories = [change.directory for change in changes]
            if any(one is other for one in directories for other in tied):
                tied.extend(directories)
                synced.append(changes)
            else:
                waiting.append(changes)
        self.pending = waiting[::-1]
        for changes in reversed(synced):
            _make_durable(changes)

    def lose_power(self, entropy: SeededEntropy, trace: Trace) -> None:
        """Keep or undo each unsynced change independently: an ordered journal is only one possible behaviour of a
        device.
        """
        for changes in self.pending:
            if entropy.below(2):
                _make_durable(changes)
            else:
                trace.count_fault("unsynced name undone")
        self.pending.clear()


def _make_durable(changes: tuple[EntryChange, ...]) -> None:
    for change in changes:
        change.apply(change.directory.durable_entries)
