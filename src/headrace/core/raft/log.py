"""The part of one replica's log that is in memory, and the voter sets that its entries establish."""

from headrace.core.raft.entries import EntryKind, LogEntry, StateSnapshot
from headrace.core.raft.ids import NO_TERM, Index, Term, Voters
from headrace.core.raft.settings import ENTRIES_KEPT_BYTES_MAX


class LogDamaged(Exception):
    """The stored entries are not consecutive, or their terms decrease: the replica must not start from them."""


class RaftLog:
    """Entries above a base position, which is that of the newest snapshot or some entries below it."""

    __slots__ = ("_base_index", "_base_term", "_entries", "_voters", "snapshot")

    def __init__(self, snapshot: StateSnapshot, entries: tuple[LogEntry, ...] = ()) -> None:
        self.reset(snapshot)
        for entry in entries:
            if entry.index != self.last_index + 1 or entry.term < self.last_term:
                raise LogDamaged(
                    f"entry {entry.index} of term {entry.term} cannot follow entry {self.last_index} of term "
                    f"{self.last_term}: restore this replica's folder or let it join with an empty one"
                )
            self.append(entry)

    def reset(self, snapshot: StateSnapshot) -> None:
        """Forget everything but `snapshot`."""
        self.snapshot = snapshot
        self._base_index, self._base_term = snapshot.index, snapshot.term
        self._entries: list[LogEntry] = []
        self._voters: list[tuple[Index, Voters]] = [(snapshot.index, snapshot.voters)]

    @property
    def last_index(self) -> Index:
        return Index(self._base_index + len(self._entries))

    @property
    def last_term(self) -> Term:
        return self._entries[-1].term if self._entries else self._base_term

    @property
    def voters(self) -> Voters:
        """Return the newest voter set, committed or not."""
        return self._voters[-1][1]

    @property
    def voters_index(self) -> Index:
        """Return the index of the entry that established it."""
        return self._voters[-1][0]

    def voters_at(self, index: Index) -> Voters:
        return next(voters for since, voters in reversed(self._voters) if since <= index)

    def term_at(self, index: Index) -> Term | None:
        """Return the term of an entry; None above the end and below the base."""
        place = index - self._base_index
        if place == 0:
            return self._base_term
        return self._entries[place - 1].term if 0 < place <= len(self._entries) else None

    def matches(self, *, term: Term, index: Index) -> bool:
        return self.term_at(index) == term

    def is_covered_by(self, *, last_term: Term, last_index: Index) -> bool:
        """Return whether a log with this end has at least everything in this log: Raft's rule for votes."""
        return (last_term, last_index) >= (self.last_term, self.last_index)

    def guess(self, *, term: Term, index: Index) -> tuple[Term, Index]:
        """Return the highest position at or below `index` whose term is not above `term`: the best guess of a match.

        It may lie below the base, where no terms are known; such a follower needs a snapshot.
        """
        at = min(index, self.last_index)
        found = self.term_at(at)
        while found is not None and found > term:
            at = Index(at - 1)
            found = self.term_at(at)
        return (NO_TERM if found is None else found), at

    def append(self, entry: LogEntry) -> None:
        assert entry.index == self.last_index + 1, "entries must be consecutive"
        assert entry.term >= self.last_term, "terms must not decrease"
        self._entries.append(entry)
        if entry.kind is EntryKind.VOTERS:
            self._voters.append((entry.index, entry.voters))

    def truncate_from(self, index: Index) -> None:
        del self._entries[index - self._base_index - 1 :]
        while self._voters[-1][0] >= index:
            self._voters.pop()

    def slice(self, first: Index, *, entries_max: int, bytes_max: int) -> tuple[LogEntry, ...]:
        """Return entries from `first` on, at least one if there is one."""
        start = first - self._base_index - 1
        found: list[LogEntry] = []
        size = 0
        for entry in self._entries[start : start + entries_max]:
            size += len(entry.payload)
            if found and size > bytes_max:
                break
            found.append(entry)
        return tuple(found)

    def compact(self, index: Index, *, entries_kept_max: int) -> None:
        """Note a snapshot at `index` and drop all but the newest entries below it."""
        term = self.term_at(index)
        assert term is not None, "a snapshot must be of entries in this log"
        self.snapshot = StateSnapshot(index=index, term=term, voters=self.voters_at(index))
        base = self._kept_from(index, entries_kept_max)
        base_term = self.term_at(Index(base))
        assert base_term is not None
        del self._entries[: base - self._base_index]
        self._voters = [(Index(base), self.voters_at(Index(base))), *(each for each in self._voters if each[0] > base)]
        self._base_index, self._base_term = Index(base), base_term

    def _kept_from(self, index: Index, entries_kept_max: int) -> Index:
        """Return the base that keeps the newest entries up to `index`, as many as both limits allow."""
        base, size = index, 0
        while base > max(self._base_index, index - entries_kept_max):
            size += len(self._entries[base - self._base_index - 1].payload)
            if size > ENTRIES_KEPT_BYTES_MAX:
                break
            base = Index(base - 1)
        return base
