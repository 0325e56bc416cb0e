"""Proposals that a leader has appended and not yet answered."""

from collections import deque
from typing import NamedTuple

from headrace.core.coordination.machine import Ticket
from headrace.core.raft.effects import Committed, RequestRefusal
from headrace.core.raft.ids import Index
from headrace.core.raft.settings import (
    PROPOSAL_BYTES_MAX,
    PROPOSAL_ENTRIES_MAX,
    UNCOMMITTED_BYTES_MAX,
    UNCOMMITTED_ENTRIES_MAX,
)


class _Appended(NamedTuple):
    ticket: Ticket
    last_index: Index
    size: int


class PendingProposals:
    __slots__ = ("_bytes", "_pending")

    def __init__(self) -> None:
        self._pending: deque[_Appended] = deque()
        self._bytes = 0

    def refusal(self, payloads: tuple[bytes, ...], *, uncommitted_entries: int) -> RequestRefusal | None:
        size = sum(map(len, payloads))
        if not 0 < len(payloads) <= PROPOSAL_ENTRIES_MAX or size > PROPOSAL_BYTES_MAX:
            return RequestRefusal.TOO_LARGE
        if uncommitted_entries + len(payloads) > UNCOMMITTED_ENTRIES_MAX or self._bytes + size > UNCOMMITTED_BYTES_MAX:
            return RequestRefusal.OVERLOADED
        return None

    def add(self, ticket: Ticket, *, last_index: Index, size: int) -> None:
        self._pending.append(_Appended(ticket, last_index, size))
        self._bytes += size

    def take_committed(self, applied_index: Index) -> list[Committed]:
        """Return responses to the proposals whose entries are committed and applied."""
        done = []
        while self._pending and self._pending[0].last_index <= applied_index:
            proposal = self._pending.popleft()
            self._bytes -= proposal.size
            done.append(Committed(ticket=proposal.ticket, index=proposal.last_index))
        return done

    def drain(self) -> list[Ticket]:
        tickets = [proposal.ticket for proposal in self._pending]
        self._pending.clear()
        return tickets
