"""Replicated partitions with a known fault put in: what the simulator of whole brokers must notice."""

from headrace.broker.partitions.replica import Replica
from headrace.core.controller import brokers
from headrace.core.replication.follower import Follower
from headrace.core.replication.leader import FollowerFetch, Leader
from headrace.core.replication.role import TruncateTo
from headrace.log.errors import SequenceRejected
from headrace.log.partition_log import PartitionLog
from headrace.log.producers import APPEND, ProducerStates


def acknowledge_before_the_high_watermark(patch):
    confirm = Replica.confirm_later

    def confirm_at_once(replica, slot, end_offset, acks, error_at, timeout_ms):
        confirm(replica, slot, end_offset, 1, error_at, timeout_ms)

    patch.setattr(Replica, "confirm_later", confirm_at_once)


def commit_without_joining_replicas(patch):
    """Let the high watermark wait for the committed in-sync set alone."""

    def choose(leader):
        leader._waited_for = tuple(leader._progress[node] for node in leader.isr if node in leader._progress)
        leader.acks_all_allowed = len(leader.isr) >= leader.effective_min_insync_replicas

    patch.setattr(Leader, "_choose_waited_for", choose)


def truncate_to_the_high_watermark(patch):
    """Cut a follower's log where it knows of commits, as was done before KIP-101."""
    follow = Replica.follow

    def follow_and_cut(replica, state):
        before = replica.role
        follow(replica, state)
        role = replica.role
        if role is not before and isinstance(role, Follower) and role.high_watermark < role.log_end:
            role.is_truncating = True
            replica._hooks._logs.cut(replica, TruncateTo(role.high_watermark))

    patch.setattr(Replica, "follow", follow_and_cut)


def skip_the_check_of_the_last_epoch(patch):
    """Take the log of a follower for a beginning of the leader's, whatever its last epoch is."""
    patch.setattr(FollowerFetch, "diverging", None)


def lead_on_after_a_resignation(patch):
    """Stay the leader whatever the metadata says."""
    for name in ("resign", "follow"):
        change = getattr(Replica, name)

        def stay(replica, state, change=change):
            if not isinstance(replica.role, Leader):
                change(replica, state)

        patch.setattr(Replica, name, stay)


def keep_the_producers_of_a_truncated_log(patch):
    exchange = PartitionLog.exchange

    def exchange_and_keep(log, loaded):
        kept = log.producers
        exchange(log, loaded)
        log.producers = kept

    patch.setattr(PartitionLog, "exchange", exchange_and_keep)


def accept_any_sequence(patch):
    admit = ProducerStates.admit

    def admit_all(states, fields):
        try:
            return admit(states, fields)
        except SequenceRejected:
            return APPEND

    patch.setattr(ProducerStates, "admit", admit_all)


def keep_the_isr_at_an_unclean_registration(patch):
    """Take the restart of a machine for the restart of a process."""
    patch.setattr(brokers, "may_have_lost_records", lambda new, registered: False)


KNOWN_BAD_REPLICAS = [
    acknowledge_before_the_high_watermark,
    commit_without_joining_replicas,
    truncate_to_the_high_watermark,
    skip_the_check_of_the_last_epoch,
    lead_on_after_a_resignation,
    keep_the_producers_of_a_truncated_log,
    accept_any_sequence,
    keep_the_isr_at_an_unclean_registration,
]
