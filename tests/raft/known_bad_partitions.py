"""Decisions about partitions with a known fault put in: the simulator is tested by how soon it notices each."""

from headrace.core.controller import brokers, isr_changes, partition_changes
from headrace.model.errors import ErrorCode
from headrace.sim.machines.partition_node import LedPartition


def keep_the_isr_at_an_unclean_registration(patch):
    """Take the restart of a machine for the restart of a process."""
    patch.setattr(brokers, "may_have_lost_records", lambda new, registered: False)


def drop_the_check_of_broker_epochs(patch):
    """Let a replica join by what its former process had fetched (KIP-903)."""
    check = isr_changes._check_members

    def check_without_epochs(image, node_id, asked, state):
        current = tuple(
            member._replace(broker_epoch=image.brokers[member.node_id].broker_epoch)
            if member.node_id in image.brokers
            else member
            for member in asked.isr
        )
        check(image, node_id, asked._replace(isr=current), state)

    patch.setattr(isr_changes, "_check_members", check_without_epochs)


def apply_a_refused_change(patch):
    """Let a leader count with the in-sync set that it asked for, although the controller refused it."""

    def answered(led, error):
        if error != ErrorCode.NONE and led.pending is not None:
            led.isr, led.pending = tuple(member.node_id for member in led.pending), None

    patch.setattr(LedPartition, "answered", answered)


def drop_the_check_of_partition_epochs(patch):
    """Commit in-sync sets that were decided on an earlier state."""
    check = isr_changes._check_leader

    def check_without_epoch(node_id, asked, state):
        check(node_id, asked._replace(partition_epoch=state.partition_epoch), state)

    patch.setattr(isr_changes, "_check_leader", check_without_epoch)


def keep_eligible_leaders_that_lost_records(patch):
    """Forget what was lost when the eligible replicas are computed."""
    eligible = partition_changes._eligible
    patch.setattr(
        partition_changes,
        "_eligible",
        lambda state, replicas, in_sync, lost, rules: eligible(state, replicas, in_sync, frozenset(), rules),
    )


KNOWN_BAD = (
    keep_the_isr_at_an_unclean_registration,
    drop_the_check_of_broker_epochs,
    apply_a_refused_change,
    drop_the_check_of_partition_epochs,
    keep_eligible_leaders_that_lost_records,
)
