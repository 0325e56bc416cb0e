"""State that all parts of a Raft machine share: identity, term, log, role and commit position."""

from collections.abc import Callable

from headrace.core.raft.entries import HardState, LogEntry, Stored
from headrace.core.raft.ids import Index, ReplicaKey, Term, Voters
from headrace.core.raft.log import RaftLog
from headrace.core.raft.outbox import Outbox
from headrace.core.raft.roles import Role, RoleEvent, next_role
from headrace.core.raft.settings import COMMITTED_PER_STEP_MAX, RaftSettings

NEVER_MS = float("-inf")

Draw = Callable[[int], int]
"""Draws a number from 0 up to and without its argument; the only source of chance."""


class RaftState:
    __slots__ = (
        "_draw",
        "applied_index",
        "commit_index",
        "election_deadline_ms",
        "hard_state",
        "leader",
        "leader_heard_ms",
        "log",
        "me",
        "now_ms",
        "out",
        "role",
        "settings",
    )

    def __init__(self, *, me: ReplicaKey, stored: Stored, settings: RaftSettings, draw: Draw, now_ms: float) -> None:
        self.me = me
        self.settings = settings
        self._draw = draw
        self.now_ms = now_ms
        self.log = RaftLog(stored.snapshot, stored.entries)
        self.out = Outbox(synced_index=self.log.last_index)
        self.hard_state = stored.hard_state
        if self.log.last_term > stored.hard_state.term:
            # The entries of a write reached the disk but its hard state did not. No vote of that term was answered.
            self.hard_state = HardState(term=self.log.last_term)
            self.out.write_hard_state(self.hard_state)
        self.commit_index = self.applied_index = stored.snapshot.index
        self.leader: ReplicaKey | None = None
        self.leader_heard_ms = NEVER_MS
        self.role = Role.FOLLOWER if self.is_voter else Role.OBSERVER
        self.election_deadline_ms = now_ms
        if self.role is Role.OBSERVER:
            self.set_join_deadline()
        elif self.log.voters != (me,):  # a single voter, as the founder of a cluster is, waits for nothing
            self.set_election_deadline()

    @property
    def term(self) -> Term:
        return self.hard_state.term

    @property
    def voters(self) -> Voters:
        return self.log.voters

    @property
    def is_voter(self) -> bool:
        """Return whether this replica may lead: until its removal is committed, no other may be able to.

        In a set of two, a leader that removed itself and crashed can be the only replica with that entry. The other
        voter has the shorter log and cannot win (section 4.2.2 of the Raft dissertation).
        """
        return self.me in self.voters or self.me in self.log.voters_at(self.commit_index)

    def majority_of(self, voters: Voters) -> int:
        return len(voters) // 2 + 1

    # Time

    def set_election_deadline(self) -> None:
        timeout_ms = self.settings.election_timeout_ms
        self.election_deadline_ms = self.now_ms + timeout_ms + self._draw(timeout_ms)

    def set_join_deadline(self) -> None:
        """Choose the time at which an observer without a leader asks for it again, which starts no election."""
        wait_ms = self.settings.join_wait_ms
        self.election_deadline_ms = self.now_ms + wait_ms + self._draw(wait_ms)

    def hear_leader(self, leader: ReplicaKey) -> None:
        self.leader = leader
        self.leader_heard_ms = self.now_ms
        self.set_election_deadline()

    @property
    def has_live_leader(self) -> bool:
        """Return whether this voter protects a leader from elections (section 4.2.3 of the Raft dissertation)."""
        if self.role is Role.LEADER:
            return True
        return self.leader is not None and self.now_ms < self.leader_heard_ms + self.settings.election_timeout_ms

    # Term, vote and role

    def enter_term(self, term: Term, *, voted_for: ReplicaKey | None = None) -> None:
        assert term > self.term, "terms only increase"
        self.hard_state = HardState(term=term, voted_for=voted_for)
        self.out.write_hard_state(self.hard_state)
        self.leader = None
        self.leader_heard_ms = NEVER_MS

    def vote_for(self, candidate: ReplicaKey) -> None:
        self.hard_state = HardState(term=self.term, voted_for=candidate)
        self.out.write_hard_state(self.hard_state)

    def change_role(self, event: RoleEvent) -> None:
        self.role = next_role(self.role, event)

    def follow_voter_set(self) -> None:
        """Become a follower or an observer by the voter sets of the log; a leader stays one until it resigns."""
        is_voter = self.is_voter
        if is_voter and self.role is Role.OBSERVER:
            self.change_role(RoleEvent.PROMOTED)
            self.set_election_deadline()
        elif not is_voter and self.role is Role.FOLLOWER:
            self.change_role(RoleEvent.REMOVED)

    # Log

    def append(self, entry: LogEntry) -> None:
        self.log.append(entry)
        self.out.write_entry(entry)

    def truncate_from(self, index: Index) -> None:
        assert index > self.commit_index, f"entry {index} is committed and must not be removed"
        self.log.truncate_from(index)
        self.out.write_truncation(index)

    def commit(self, index: Index) -> None:
        assert index <= self.log.last_index, "a replica commits only entries that it has"
        self.commit_index = max(self.commit_index, index)

    @property
    def has_unapplied(self) -> bool:
        return self.applied_index < self.commit_index

    def take_committed(self) -> tuple[LogEntry, ...]:
        """Return the next committed entries, a bounded number."""
        count = min(self.commit_index - self.applied_index, COMMITTED_PER_STEP_MAX)
        if count == 0:
            return ()
        first = Index(self.applied_index + 1)
        self.applied_index = Index(self.applied_index + count)
        return self.log.slice(first, entries_max=count, bytes_max=1 << 62)
