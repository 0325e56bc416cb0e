"""Machines with a known fault put in: the simulator is tested by how soon it notices each."""

from headrace.core.controller.lifecycle import CatchUp, Lifecycle, OpenPartitions
from headrace.core.controller.sessions import BrokerSessions
from headrace.core.raft import leadership, machine
from headrace.core.raft.effects import RequestRefusal
from headrace.core.raft.entries import EntryKind
from headrace.core.raft.leadership import Leadership
from headrace.core.raft.outbox import Outbox
from headrace.core.raft.reads import PendingReads
from headrace.sim.machines.members import SimulatedMember
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


# Of brokers and the controller


def fence_on_a_reset_alone(patch):
    gone = BrokerSessions.gone
    patch.setattr(BrokerSessions, "gone", lambda sessions, session, *, refused: gone(sessions, session, refused=True))


def fence_by_a_hint_of_an_earlier_epoch(patch):
    """Take evidence about a former process for evidence about the one that has registered since."""
    gone = BrokerSessions.gone

    def any_epoch(sessions, session, *, refused):
        epoch, _ = sessions._deadlines.get(session.node_id, (session.broker_epoch, 0.0))
        return gone(sessions, session._replace(broker_epoch=epoch), refused=refused)

    fence = SimulatedMember._fence

    def fence_it(member, session):
        broker = member.controller.image.brokers[session.node_id] if member.controller is not None else None
        fence(member, session._replace(broker_epoch=broker.broker_epoch) if broker is not None else session)

    patch.setattr(BrokerSessions, "gone", any_epoch)
    patch.setattr(SimulatedMember, "_fence", fence_it)


def open_folders_before_the_image_has_caught_up(patch):
    registered = Lifecycle.registered

    def open_at_once(lifecycle, registration, now_ms):
        effects = registered(lifecycle, registration, now_ms)
        return (OpenPartitions(), *effects) if any(isinstance(each, CatchUp) for each in effects) else effects

    patch.setattr(Lifecycle, "registered", open_at_once)


KNOWN_BAD = [
    answer_votes_before_the_sync,
    commit_old_terms_by_counting,
    change_voters_before_a_commit_of_the_own_term,
    vote_by_node_id_alone,
    serve_reads_without_a_round,
    fence_on_a_reset_alone,
    fence_by_a_hint_of_an_earlier_epoch,
    open_folders_before_the_image_has_caught_up,
]
