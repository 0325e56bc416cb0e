"""The parked fetches of one partition, which are woken when more of it becomes readable."""

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from headrace.core.replication.role import ReplicaRole
from headrace.log.partition_log import PartitionLog
from headrace.model.ids import Offset

if TYPE_CHECKING:
    from headrace.broker.partitions.replica import Replica

ENOUGH_BYTES = 1 << 62
"""More bytes than any fetch waits for."""


class ReadBound(Enum):
    """The offset below which a fetch reads; the fetch is woken when it moves."""

    HIGH_WATERMARK = 0
    LAST_STABLE_OFFSET = 1
    """For consumers with read_committed."""
    LOG_END = 2
    """For followers, which fetch records before they are committed."""


class FetchWaiter(Protocol):
    """A parked fetch. It counts the bytes that become readable until it has enough."""

    def readable(self, partition: "Replica", new_bytes: int) -> None: ...


class FetchWaiters:
    __slots__ = (
        "_end_bytes",
        "_log",
        "_stable_offset",
        "_stable_waiters",
        "_unstable_bytes",
        "_waiters",
        "end_waiters",
        "role",
    )

    def __init__(self, log: PartitionLog, role: ReplicaRole) -> None:
        self._log = log
        self.role = role
        self._waiters: dict[FetchWaiter, None] = {}
        self._stable_waiters: dict[FetchWaiter, None] = {}
        self.end_waiters: dict[FetchWaiter, None] = {}
        self._end_bytes = 0
        """The bytes that the log had when the waiters at its end were last woken, or the first of them was added."""
        self._unstable_bytes = 0
        """Committed bytes that are not below the last stable offset yet."""
        self.note_stability()
        self._stable_offset = role.last_stable_offset
        """The last stable offset when the waiters were last woken."""

    @property
    def count(self) -> int:
        """The number of parked fetches."""
        return len(self._waiters) + len(self._stable_waiters) + len(self.end_waiters)

    def add(self, waiter: FetchWaiter, bound: ReadBound) -> None:
        """Add a waiter; only bytes that come to lie below its bound count for it."""
        if bound is ReadBound.HIGH_WATERMARK:
            self._waiters[waiter] = None
        elif bound is ReadBound.LAST_STABLE_OFFSET:
            self._stable_waiters[waiter] = None
        else:
            if not self.end_waiters:
                self._end_bytes = self._log.appended_bytes
            self.end_waiters[waiter] = None

    def remove(self, waiter: FetchWaiter) -> None:
        self._waiters.pop(waiter, None)
        self._stable_waiters.pop(waiter, None)
        self.end_waiters.pop(waiter, None)

    def take_role(self, role: ReplicaRole) -> None:
        """Follow the offsets of another role from now on."""
        self.role = role
        self.note_stability()

    def wake_all(self, partition: "Replica") -> None:
        """Wake every waiter to read again and respond, after a change other than an append."""
        self.note_stability()
        for waiter in (*self._waiters, *self._stable_waiters, *self.end_waiters):
            waiter.readable(partition, ENOUGH_BYTES)

    def log_end_moved(self, partition: "Replica") -> None:
        """Tell the waiters at the log end how many bytes were written since the last call."""
        new_bytes, self._end_bytes = self._log.appended_bytes - self._end_bytes, self._log.appended_bytes
        for waiter in tuple(self.end_waiters):
            waiter.readable(partition, new_bytes)

    def high_watermark_raised(self, partition: "Replica", new_bytes: int) -> None:
        """HOT. Tell the waiters how many bytes were committed since the last call."""
        stable_bytes = new_bytes
        if self._log.producers.has_transactions or self._unstable_bytes:
            stable_bytes = self._stable_bytes(new_bytes)
        else:
            self._stable_offset = self.role.high_watermark
        if self._waiters:
            for waiter in tuple(self._waiters):
                waiter.readable(partition, new_bytes)
        if stable_bytes and self._stable_waiters:
            for waiter in tuple(self._stable_waiters):
                waiter.readable(partition, stable_bytes)

    def _stable_bytes(self, new_bytes: int) -> int:
        """Return an upper bound of the bytes that moved below the last stable offset; 0 if it did not move."""
        self.note_stability()
        self._unstable_bytes += new_bytes
        stable_offset, unstable_bytes = self.role.last_stable_offset, self._unstable_bytes
        if stable_offset <= self._stable_offset:
            return 0
        self._stable_offset = stable_offset
        if stable_offset == self.role.high_watermark:
            self._unstable_bytes = 0
        return unstable_bytes

    def note_stability(self) -> None:
        """Give the role the first offset of the oldest transaction that is not known to have ended."""
        first = self._log.producers.first_unstable_offset(self.role.high_watermark)
        self.role.first_unstable_offset = None if first is None else Offset(max(first, self._log.start_offset))
