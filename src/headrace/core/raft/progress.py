"""A leader's view of one other replica: what it has, and what is in flight to it."""

from collections import deque
from enum import StrEnum

from headrace.core.raft.entries import StateSnapshot
from headrace.core.raft.ids import NO_INDEX, Index
from headrace.core.raft.messages import AppendResponse
from headrace.core.raft.settings import APPENDS_IN_FLIGHT_MAX


class Flow(StrEnum):
    PROBE = "probe"
    """The match is not known: one request at a time."""
    PIPELINE = "pipeline"
    """Requests follow one another without waiting for responses."""
    SNAPSHOT = "snapshot"
    """The entries it needs are gone; it gets a snapshot."""


class Progress:
    __slots__ = (
        "_in_flight",
        "acked_round",
        "flow",
        "heard_ms",
        "match_index",
        "may_vote",
        "next_index",
        "probe_sent",
        "snapshot",
        "snapshot_position",
        "snapshot_sent_ms",
    )

    def __init__(self, *, next_index: Index, now_ms: float) -> None:
        self.match_index = NO_INDEX
        """Everything up to here is synced on that replica."""
        self.next_index = next_index
        self.flow = Flow.PROBE
        self.probe_sent = False
        self.acked_round = 0
        self.heard_ms = now_ms
        self.may_vote = False
        """True if the replica asked to be replicated to and may become a voter."""
        self._in_flight: deque[Index] = deque()
        """The last index of each append request without a response."""
        self.snapshot: StateSnapshot | None = None
        self.snapshot_position = 0
        self.snapshot_sent_ms = now_ms

    @property
    def is_blocked(self) -> bool:
        """Return whether entries have to wait for a response."""
        if self.flow is Flow.PIPELINE:
            return len(self._in_flight) >= APPENDS_IN_FLIGHT_MAX
        return self.flow is Flow.SNAPSHOT or self.probe_sent

    def sent(self, last_index: Index) -> None:
        """Note an append request whose last entry has this index."""
        if self.flow is Flow.PIPELINE:
            self._in_flight.append(last_index)
            self.next_index = Index(last_index + 1)
        else:
            self.probe_sent = True

    def accepted(self, index: Index) -> bool:
        """Note an accepting response; return True if the match moved."""
        moved = index > self.match_index
        self.match_index = max(self.match_index, index)
        self.next_index = max(self.next_index, Index(self.match_index + 1))
        while self._in_flight and self._in_flight[0] <= index:
            self._in_flight.popleft()
        if self.flow is Flow.SNAPSHOT:
            if self.snapshot is not None and index >= self.snapshot.index:
                self.probe(self.match_index)
        elif self.flow is Flow.PROBE:
            self.flow = Flow.PIPELINE
            self.next_index = Index(self.match_index + 1)
            self._in_flight.clear()
        return moved

    def is_current(self, rejection: AppendResponse) -> bool:
        """Return whether a rejection is about the newest request and not a late one."""
        if self.flow is Flow.PIPELINE:
            return rejection.rejected_index > self.match_index
        return self.flow is Flow.PROBE and rejection.rejected_index == self.next_index - 1

    def probe(self, match_guess: Index) -> None:
        """Go back to one request at a time, after a guessed match."""
        self.flow = Flow.PROBE
        self.probe_sent = False
        self.next_index = max(Index(match_guess + 1), Index(self.match_index + 1))
        self._in_flight.clear()
        self.snapshot = None

    def begin_snapshot(self, snapshot: StateSnapshot) -> None:
        self.flow = Flow.SNAPSHOT
        self.snapshot, self.snapshot_position = snapshot, 0
        self._in_flight.clear()
