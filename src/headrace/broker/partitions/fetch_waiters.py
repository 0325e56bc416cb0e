"""The parked fetches of one partition, which are woken when more of it becomes readable."""

from typing import TYPE_CHECKING, Protocol

from headrace.core.replication.leader import Leader
from headrace.log.partition_log import PartitionLog
from headrace.model.ids import Offset

if TYPE_CHECKING:
    from headrace.broker.partitions.replica import Replica

ENOUGH_BYTES = 1 << 62
"""More bytes than any fetch waits for."""


class FetchWaiter(Protocol):
    """A parked fetch. It counts the bytes that become readable until it has enough."""

    def readable(self, partition: "Replica", new_bytes: int) -> None: ...


class FetchWaiters:
    """Waiters read below the high watermark, or below the last stable offset with read_committed."""

    __slots__ = ("_log", "_role", "_stable_offset", "_stable_waiters", "_unstable_bytes", "_waiters")

    def __init__(self, log: PartitionLog, leader: Leader) -> None:
        self._log = log
        self._role = leader
        self._waiters: dict[FetchWaiter, None] = {}
        self._stable_waiters: dict[FetchWaiter, None] = {}
        """Waiters that read only below the last stable offset."""
        self._unstable_bytes = 0
        """Committed bytes that are not below the last stable offset yet."""
        self.note_stability()
        self._stable_offset = leader.last_stable_offset
        """The last stable offset when the waiters were last woken."""

    @property
    def count(self) -> int:
        """The number of parked fetches."""
        return len(self._waiters) + len(self._stable_waiters)

    def add(self, waiter: FetchWaiter, *, stable: bool) -> None:
        """Add a waiter; with `stable`, only bytes below the last stable offset count for it."""
        (self._stable_waiters if stable else self._waiters)[waiter] = None

    def remove(self, waiter: FetchWaiter) -> None:
        self._waiters.pop(waiter, None)
        self._stable_waiters.pop(waiter, None)

    def wake_all(self, partition: "Replica") -> None:
        """Wake every waiter to read again and answer, after a change other than an append."""
        self.note_stability()
        for waiter in (*self._waiters, *self._stable_waiters):
            waiter.readable(partition, ENOUGH_BYTES)

    def high_watermark_raised(self, partition: "Replica", new_bytes: int) -> None:
        """HOT. Tell the waiters how many bytes were committed since the last call."""
        stable_bytes = new_bytes
        if self._log.producers.has_transactions or self._unstable_bytes:
            stable_bytes = self._stable_bytes(new_bytes)
        else:
            self._stable_offset = self._role.high_watermark
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
        stable_offset, unstable_bytes = self._role.last_stable_offset, self._unstable_bytes
        if stable_offset <= self._stable_offset:
            return 0
        self._stable_offset = stable_offset
        if stable_offset == self._role.high_watermark:
            self._unstable_bytes = 0
        return unstable_bytes

    def note_stability(self) -> None:
        """Give the leader the first offset of the oldest transaction that is not known to have ended."""
        first = self._log.producers.first_unstable_offset(self._role.high_watermark)
        self._role.first_unstable_offset = None if first is None else Offset(max(first, self._log.start_offset))
