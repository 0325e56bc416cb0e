"""Rules for changes of the voter set: one voter at a time, one change at a time (chapter 4 of the dissertation)."""

from headrace.core.raft.effects import RequestRefusal
from headrace.core.raft.ids import Index, ReplicaKey
from headrace.core.raft.progress import Progress
from headrace.core.raft.settings import PROMOTION_LAG_ENTRIES_MAX, VOTERS_MAX
from headrace.core.raft.state import RaftState


def change_refusal(state: RaftState, *, term_start: Index) -> RequestRefusal | None:
    """Refuse any change until the last one, and an entry of the leader's own term, is committed.

    Without the second rule two leaders could each change the set that they started from, and commit with majorities
    that do not overlap.
    """
    if state.commit_index < term_start:
        return RequestRefusal.TERM_NOT_COMMITTED
    if state.log.voters_index > state.commit_index:
        return RequestRefusal.CHANGE_IN_PROGRESS
    return None


def addition_refusal(state: RaftState, voter: ReplicaKey, progress: Progress | None) -> RequestRefusal | None:
    if voter in state.voters:
        return RequestRefusal.ALREADY_VOTER
    if any(each.node_id == voter.node_id for each in state.voters):
        return RequestRefusal.NODE_ID_IN_USE
    if len(state.voters) >= VOTERS_MAX:
        return RequestRefusal.TOO_MANY_VOTERS
    if progress is None or not has_caught_up(state, progress):
        return RequestRefusal.NOT_CAUGHT_UP
    return None


def has_caught_up(state: RaftState, progress: Progress) -> bool:
    """Return whether a replica responds and lacks few entries, so that as a voter it would not delay commits."""
    lag = state.log.last_index - progress.match_index
    silence_ms = state.now_ms - progress.heard_ms
    return lag <= PROMOTION_LAG_ENTRIES_MAX and silence_ms <= state.settings.election_timeout_ms


def removal_refusal(state: RaftState, voter: ReplicaKey) -> RequestRefusal | None:
    if voter not in state.voters:
        return RequestRefusal.NOT_VOTER
    if len(state.voters) == 1:
        return RequestRefusal.LAST_VOTER
    return None
