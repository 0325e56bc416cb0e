"""Calls from the replicas of this node to the part of the broker that replicates them."""

from typing import TYPE_CHECKING

from headrace.core.replication.role import ExpandIsr, ShrinkIsr

if TYPE_CHECKING:
    from headrace.broker.net.connection import ResponseSlot
    from headrace.broker.partitions.replica import Replica


class ReplicationHooks:
    """Does nothing, as on a node that has no other replicas."""

    def role_changed(self, replica: "Replica") -> None:
        """Follow the replica's leader from now on, or stop, as its role says."""

    def fetchable(self, replica: "Replica") -> None:
        """Fetch for a follower that could not fetch before, or can no longer fetch."""

    def change_isr(self, replica: "Replica", change: ShrinkIsr | ExpandIsr) -> None:
        """Ask the controller for another in-sync set of a partition that this node leads."""

    def leader_missed(self, slot: "ResponseSlot") -> None:
        """Name the new leaders in the complete response of a producer: this node has stopped leading a partition."""


NO_REPLICATION = ReplicationHooks()
