"""Linearizable reads without a clock (ReadIndex, section 6.4 of the Raft dissertation).

A read remembers the commit index at its arrival and waits for a round of heartbeats that began later and that a
majority answered: only a leader that was not replaced before the arrival gets such a round.
"""

from collections import deque
from typing import NamedTuple

from headrace.core.coordination.machine import Ticket
from headrace.core.raft.effects import ReadAllowed
from headrace.core.raft.ids import Index
from headrace.core.raft.settings import READS_PENDING_MAX


class _Waiting(NamedTuple):
    ticket: Ticket
    round: int
    commit_index: Index


class PendingReads:
    __slots__ = ("_early", "_reads", "confirmed_round", "round")

    def __init__(self) -> None:
        self._early: list[Ticket] = []
        """Reads from before the first commit of the term, when the commit index may be behind an older leader's."""
        self._reads: deque[_Waiting] = deque()
        self.round = 0
        """The newest round of heartbeats that has begun."""
        self.confirmed_round = 0

    @property
    def is_full(self) -> bool:
        return len(self._reads) + len(self._early) >= READS_PENDING_MAX

    def hold(self, ticket: Ticket) -> None:
        """Keep a read until the term's first commit."""
        self._early.append(ticket)

    def take_held(self) -> list[Ticket]:
        held, self._early = self._early, []
        return held

    def add(self, ticket: Ticket, commit_index: Index) -> bool:
        """Add a read; return True if its round has to begin now, False if it waits for the end of the current one."""
        self._reads.append(_Waiting(ticket, self.round + 1, commit_index))
        return self.round == self.confirmed_round

    @property
    def needs_round(self) -> bool:
        """Return whether a read waits for a round that has not begun."""
        return bool(self._reads) and self._reads[-1].round > self.round

    def begin_round(self) -> None:
        self.round += 1

    def confirm(self, round: int) -> None:
        """Note that a majority has answered this round."""
        self.confirmed_round = max(self.confirmed_round, round)

    def take_allowed(self, applied_index: Index) -> list[ReadAllowed]:
        allowed = []
        while self._reads and self._is_allowed(self._reads[0], applied_index):
            read = self._reads.popleft()
            allowed.append(ReadAllowed(ticket=read.ticket, index=read.commit_index))
        return allowed

    def _is_allowed(self, read: _Waiting, applied_index: Index) -> bool:
        return read.round <= self.confirmed_round and read.commit_index <= applied_index

    def drain(self) -> list[Ticket]:
        """Return all waiting reads, which end with the leadership."""
        tickets = [*self._early, *(read.ticket for read in self._reads)]
        self._early.clear()
        self._reads.clear()
        return tickets
