"""Raft machines with a known fault put in: the simulator is tested by how soon it notices each."""

from headrace.core.raft import leadership, machine
from headrace.core.raft.effects import RequestRefusal
from headrace.core.raft.entries import EntryKind
from headrace.core.raft.leadership import Leadership
from headrace.core.raft.outbox import Outbox
from headrace.core.raft.reads import PendingReads
from headrace.sim.results import NO_CRASH
from headrace.sim.run import run_seed


def is_noticed(seed):
    """Return whether a broken invariant is seen. A crash does not count: a patch that no longer fits crashes too."""
    result = run_seed(seed, scenario="machines")
    return not result.ok and not result.violation.startswith(NO_CRASH)


def answer_votes_before_the_sync(patch):
    patch.setattr(Outbox, "send_after_sync", Outbox.send)


def commit_old_terms_by_counting(patch):
    patch.setattr(Leadership, "_may_commit", lambda leadership, index: True)


def change_voters_before_a_commit_of_the_own_term(patch):
    """Refuse a change only while another change, and not the leader's first entry, is uncommitted."""

    def refusal(state, *, term_start):
        first = max(state.commit_index, state.log.snapshot.index) + 1
        entries = state.log.slice(first, entries_max=1_000, bytes_max=1 << 30)
        changes = [each for each in entries if each.kind is EntryKind.VOTERS and each.index != term_start]
        return RequestRefusal.CHANGE_IN_PROGRESS if any(each.term == state.term for each in changes) else None

    patch.setattr(leadership, "change_refusal", refusal)


def vote_by_node_id_alone(patch):
    patch.setattr(machine, "is_meant_for", lambda to, me: to.node_id == me.node_id)


def serve_reads_without_a_round(patch):
    patch.setattr(PendingReads, "_is_allowed", lambda reads, read, applied_index: read.commit_index <= applied_index)


KNOWN_BAD = [
    answer_votes_before_the_sync,
    commit_old_terms_by_counting,
    change_voters_before_a_commit_of_the_own_term,
    vote_by_node_id_alone,
    serve_reads_without_a_round,
]
