"""The replication state of one replica in one leader epoch, whatever this node does for the partition.

`leader.Leader` is the state of the node that leads the partition, `follower.Follower` of a node that copies the leader.
`Idle` is the state of a node that knows no leader: it appends nothing and commits nothing, and keeps what it knows for
the next role.
"""

from typing import NamedTuple

from headrace.model.ids import LeaderEpoch, NodeId, Offset


class HighWatermarkRaised(NamedTuple):
    """Everything below `offset` is committed: parked acks and fetches that waited for it can complete."""

    offset: Offset


class ShrinkIsr(NamedTuple):
    """Ask the controller to commit this smaller in-sync set; `partition_epoch` is the one on which it was decided."""

    isr: tuple[NodeId, ...]
    partition_epoch: int
    broker_epochs: tuple[int, ...]
    """The broker epoch with which each member last fetched; NO_BROKER_EPOCH for the leader and for members that have
    not fetched from it (KIP-903).
    """


class ExpandIsr(NamedTuple):
    """Ask the controller to commit this larger in-sync set."""

    isr: tuple[NodeId, ...]
    partition_epoch: int
    broker_epochs: tuple[int, ...]


class DivergingEpoch(NamedTuple):
    """Tell a follower that its log differs from the leader's: the largest epoch of the leader's log that is not above
    the follower's last one, and where that epoch ends in the leader's log (KIP-595).
    """

    epoch: int
    end_offset: int


class FetchFrom(NamedTuple):
    """Fetch from the leader at this offset; the batch before it in this node's log has the epoch."""

    offset: Offset
    last_fetched_epoch: int


class TruncateTo(NamedTuple):
    """Remove everything from `offset` on: the leader does not have it."""

    offset: Offset


class RestartAt(NamedTuple):
    """Remove everything and begin the log at `offset`: the leader has nothing in common with it any more."""

    offset: Offset


class AdvanceStart(NamedTuple):
    """Remove what lies below `offset`, as the leader has."""

    offset: Offset


NO_BROKER_EPOCH = -1

Effect = (
    HighWatermarkRaised | ShrinkIsr | ExpandIsr | DivergingEpoch | FetchFrom | TruncateTo | RestartAt | AdvanceStart
)
Effects = tuple[Effect, ...]


class ReplicaRole:
    """The state that every role has. A role that commits nothing by itself ignores the events of the log."""

    __slots__ = ("first_unstable_offset", "high_watermark", "leader_epoch", "partition_epoch")

    acks_all_allowed: bool = False
    """True if enough replicas are in sync to promise acks=all (else NOT_ENOUGH_REPLICAS)."""

    def __init__(self, *, leader_epoch: LeaderEpoch, partition_epoch: int, high_watermark: Offset) -> None:
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.high_watermark = high_watermark
        self.first_unstable_offset: Offset | None = None
        """The start of the oldest open transaction, or None."""

    # Queries

    @property
    def last_stable_offset(self) -> Offset:
        """Return the last stable offset: below it every transaction has ended, so read_committed may read up to it."""
        first_unstable = self.first_unstable_offset
        return self.high_watermark if first_unstable is None else min(first_unstable, self.high_watermark)

    @property
    def knows_latest_offset(self) -> bool:
        """Return false where `latest` could go back (KIP-207)."""
        return False

    # Events of this node's log

    def log_appended(self, end: Offset) -> Effects:
        """Note that this node's log now ends at `end`."""
        return ()

    def log_flushed(self, end: Offset) -> Effects:
        """Note that everything below `end` survives a power cut on this node."""
        return ()

    def configure(
        self, *, flush_before_commit: bool, min_insync_replicas: int, replica_lag_ms_max: float | None = None
    ) -> Effects:
        """Apply changed topic configs; committed records stay committed."""
        return ()


class Idle(ReplicaRole):
    """The role of a replica whose partition has no leader, or that is not one of the partition's replicas any more."""

    __slots__ = ()
