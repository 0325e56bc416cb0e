"""The replication state of one led partition: its high watermark and its in-sync replicas. No clock, socket or file.

One object lives for one leader epoch. Every method is an event; it changes only the object and returns effects for the
host, which are the empty tuple on most calls: the append path calls `log_appended` once per partition and turn.
"""

from collections.abc import Sequence
from typing import NamedTuple

from headrace.core.replication.role import (
    NO_BROKER_EPOCH,
    DivergingEpoch,
    Effects,
    ExpandIsr,
    HighWatermarkRaised,
    ReplicaRole,
    ShrinkIsr,
)
from headrace.model.ids import NO_EPOCH, NO_OFFSET, LeaderEpoch, NodeId, Offset


class UnknownReplica(Exception):
    """A node that is not in the replica set sent a fetch as a follower."""


NEVER_MS = float("-inf")


class FollowerFetch(NamedTuple):
    """A follower's fetch of one partition, and what this node knows about it."""

    replica: NodeId
    leader_epoch: int
    """The leader epoch in which the follower fetches."""
    broker_epoch: int
    registered_epoch: int
    """The broker epoch of the follower in this node's metadata; NO_BROKER_EPOCH if it is not registered."""
    may_join: bool
    """False while the follower is fenced or shuts down."""
    offset: Offset
    last_fetched_epoch: int
    """The epoch of the last batch in the follower's log; NO_EPOCH if its log is empty."""
    epoch_end: tuple[int, int]
    """The largest epoch of this node's log that is not above it, and the end of that epoch."""
    log_start: int = NO_OFFSET
    """Where the follower's log begins."""

    @property
    def diverging(self) -> DivergingEpoch | None:
        """Return where the follower's log leaves this node's log; None if it is a beginning of it."""
        if self.last_fetched_epoch == NO_EPOCH:
            return None
        epoch, end_offset = self.epoch_end
        if epoch < self.last_fetched_epoch or end_offset < self.offset:
            return DivergingEpoch(epoch, end_offset)
        return None


class FollowerProgress:
    """The known log end of one follower, and when it last had everything."""

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "fetched_at_ms",
        "joining",
        "leader_end_at_fetch",
        "log_end",
        "log_start",
    )

    def __init__(self, *, caught_up_ms: float) -> None:
        self.broker_epoch = NO_BROKER_EPOCH
        """The broker epoch of the newest fetch that counted."""
        self.log_end = NO_OFFSET
        self.log_start: int = NO_OFFSET
        self.caught_up_ms = caught_up_ms
        self.fetched_at_ms = caught_up_ms
        self.leader_end_at_fetch = NO_OFFSET
        self.joining = False
        """Caught up but not yet in the in-sync set: the high watermark waits for it, or it would never catch up."""

    def advance(self, log_end: Offset, *, leader_end: Offset, now_ms: float) -> None:
        # A follower that reached the end as of its previous fetch was caught up at that fetch, even if the leader has
        # moved on since: lag is time behind, not a number of records (Kafka's rule).
        if log_end >= leader_end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif log_end >= self.leader_end_at_fetch >= 0:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_at_ms)
        self.log_end = log_end
        self.leader_end_at_fetch = leader_end
        self.fetched_at_ms = now_ms

    def restarted(self, broker_epoch: int, *, is_in_sync: bool, now_ms: float) -> None:
        """Note the first fetch of another process of the same node: what its predecessor had reached does not count."""
        self.broker_epoch = broker_epoch
        self.joining = False
        self.leader_end_at_fetch = NO_OFFSET
        self.log_start = NO_OFFSET
        self.caught_up_ms = now_ms if is_in_sync else NEVER_MS

    def lags(self, *, leader_end: Offset, now_ms: float, lag_ms_max: float) -> bool:
        return self.log_end < leader_end and now_ms - self.caught_up_ms > lag_ms_max


class Leader(ReplicaRole):
    """The leader's view of one partition in one leader epoch."""

    __slots__ = (
        "_flush_before_commit",
        "_flushed",
        "_lag_ms_max",
        "_min_insync_replicas",
        "_node",
        "_pending_isr",
        "_progress",
        "_waited_for",
        "acks_all_allowed",
        "epoch_start_offset",
        "isr",
        "log_end",
        "replicas",
    )

    def __init__(
        self,
        *,
        node: NodeId,
        leader_epoch: LeaderEpoch,
        partition_epoch: int,
        replicas: Sequence[NodeId],
        isr: Sequence[NodeId],
        log_end: Offset,
        flushed: Offset,
        high_watermark: Offset,
        flush_before_commit: bool = False,
        min_insync_replicas: int = 1,
        replica_lag_ms_max: float = 30_000,
        now_ms: float = 0,
    ) -> None:
        assert node in replicas, f"node {node} leads a partition it does not replicate: {replicas}"
        assert node in isr, f"leader {node} is not in sync with itself: {isr}"
        super().__init__(
            leader_epoch=leader_epoch, partition_epoch=partition_epoch, high_watermark=min(high_watermark, log_end)
        )
        self._node = node
        self.replicas = tuple(replicas)
        self.isr = tuple(isr)
        self.log_end = log_end
        self.epoch_start_offset = log_end
        self._flushed = min(flushed, log_end)
        self._flush_before_commit = flush_before_commit
        self._min_insync_replicas = min_insync_replicas
        self._lag_ms_max = replica_lag_ms_max
        self._pending_isr: tuple[NodeId, ...] | None = None
        # Followers in the in-sync set get one lag period to fetch from their new leader.
        self._progress = {
            replica: FollowerProgress(caught_up_ms=now_ms if replica in isr else NEVER_MS)
            for replica in replicas
            if replica != node
        }
        self._waited_for: tuple[FollowerProgress, ...] = ()
        self.acks_all_allowed = False
        self._choose_waited_for()
        self._raise_high_watermark()

    # Queries

    @property
    def effective_min_insync_replicas(self) -> int:
        """Return the minimum, limited by the number of replicas: a larger one would refuse every write."""
        return min(self._min_insync_replicas, len(self.replicas))

    @property
    def knows_latest_offset(self) -> bool:
        """Return false until the high watermark reaches this epoch's start: before that `latest` could go back
        (KIP-207).
        """
        return self.high_watermark >= self.epoch_start_offset

    @property
    def isr_change_pending(self) -> bool:
        return self._pending_isr is not None

    def replicas_with(self, offset: int) -> list[NodeId]:
        """Return the in-sync followers that have every record below `offset`, those with the longest log first."""
        known = [(node, self._progress[node].log_end) for node in self.isr if node != self._node]
        return [node for node, end in sorted(known, key=lambda each: -each[1]) if end >= offset]

    def begins_everywhere(self, offset: int) -> bool:
        """Return whether no replica in sync has records below the offset any more."""
        return all(progress.log_start >= offset for progress in self._waited_for)

    # Events of this node's log

    def log_appended(self, end: Offset) -> Effects:
        assert end >= self.log_end, f"a leader's log went back from {self.log_end} to {end}"
        self.log_end = end
        return () if self._flush_before_commit else self._raise_high_watermark()

    def log_flushed(self, end: Offset) -> Effects:
        if end > self._flushed:
            self._flushed = end
        return self._raise_high_watermark() if self._flush_before_commit else ()

    def configure(
        self, *, flush_before_commit: bool, min_insync_replicas: int, replica_lag_ms_max: float | None = None
    ) -> Effects:
        self._flush_before_commit = flush_before_commit
        self._min_insync_replicas = min_insync_replicas
        if replica_lag_ms_max is not None:
            self._lag_ms_max = replica_lag_ms_max
        self._choose_waited_for()
        return self._raise_high_watermark()

    # Events of the followers

    def follower_fetched(self, fetch: FollowerFetch, now_ms: float) -> Effects:
        """Note a fetch: the follower has everything below its offset, if the two logs are equal up to there.

        A fetch counts only in this leader epoch, and only from the newest process of that node (KIP-903): the log of an
        older one may be lost.
        """
        progress = self._progress.get(fetch.replica)
        if progress is None:
            raise UnknownReplica(f"node {fetch.replica} is not one of the replicas {self.replicas}")
        newest = max(progress.broker_epoch, fetch.registered_epoch)
        if fetch.leader_epoch != self.leader_epoch or fetch.broker_epoch < newest:
            return ()
        diverging = fetch.diverging
        if diverging is not None:
            return (diverging,)
        if fetch.offset > self.log_end:
            return ()  # a log longer than its leader's has diverged: it must truncate before it counts
        if fetch.broker_epoch != progress.broker_epoch:
            progress.restarted(fetch.broker_epoch, is_in_sync=fetch.replica in self.isr, now_ms=now_ms)
            self._choose_waited_for()
        progress.advance(fetch.offset, leader_end=self.log_end, now_ms=now_ms)
        progress.log_start = fetch.log_start
        grown = self._grow_isr(fetch.replica, progress, now_ms) if fetch.may_join else ()
        return (*grown, *self._raise_high_watermark())

    def check_lag(self, now_ms: float) -> Effects:
        """Check the time: remove followers that have been behind for too long."""
        lagging = {
            replica
            for replica, progress in self._progress.items()
            if progress.lags(leader_end=self.log_end, now_ms=now_ms, lag_ms_max=self._lag_ms_max)
        }
        for replica in lagging:
            self._progress[replica].joining = False
        self._choose_waited_for()
        effects = self._raise_high_watermark()
        remaining = tuple(replica for replica in self.isr if replica not in lagging)
        if len(remaining) == len(self.isr) or self._pending_isr is not None:
            return effects
        self._pending_isr = remaining
        return (ShrinkIsr(remaining, self.partition_epoch, self._broker_epochs(remaining)), *effects)

    # Events of the controller

    def partition_changed(self, replicas: Sequence[NodeId], isr: Sequence[NodeId], partition_epoch: int) -> Effects:
        """Apply replicas and an in-sync set that the controller committed; older ones than ours are ignored."""
        if partition_epoch <= self.partition_epoch:
            return ()
        assert self._node in isr, f"leader {self._node} was removed from its own in-sync set {isr}"
        self.replicas = tuple(replicas)
        self._progress = {
            replica: self._progress.get(replica) or FollowerProgress(caught_up_ms=NEVER_MS)
            for replica in replicas
            if replica != self._node
        }
        self.isr = tuple(isr)
        self.partition_epoch = partition_epoch
        self._pending_isr = None
        for replica in isr:
            if replica != self._node:
                self._progress[replica].joining = False
        self._choose_waited_for()
        return self._raise_high_watermark()

    def isr_change_refused(self) -> Effects:
        """Handle a change that the controller has refused and will never commit: the committed set counts again."""
        self._pending_isr = None
        self._choose_waited_for()
        return self._raise_high_watermark()

    # Decisions

    def _grow_isr(self, replica: NodeId, progress: FollowerProgress, now_ms: float) -> Effects:
        if replica in self.isr:
            return ()
        if not progress.joining and now_ms - progress.caught_up_ms <= self._lag_ms_max:
            progress.joining = True
            self._choose_waited_for()
        behind = progress.log_end < self.high_watermark or progress.log_end < self.epoch_start_offset
        if behind or self._pending_isr is not None:
            return ()
        # Kept in the order of the replica list, so that the same history gives the same record.
        wanted = tuple(node for node in self.replicas if node == replica or node in self.isr)
        self._pending_isr = wanted
        self._choose_waited_for()
        return (ExpandIsr(wanted, self.partition_epoch, self._broker_epochs(wanted)),)

    def _broker_epochs(self, isr: Sequence[NodeId]) -> tuple[int, ...]:
        return tuple(NO_BROKER_EPOCH if node == self._node else self._progress[node].broker_epoch for node in isr)

    def _choose_waited_for(self) -> None:
        """Update the maximal in-sync set, which the high watermark waits for: all replicas that are in sync under any
        outcome of the change in flight, and those joining. Also update whether acks=all is allowed.

        A replica being removed still counts until that is committed, one being added counts at once: any leader that
        the controller may elect next has everything below the high watermark.
        """
        pending = self._pending_isr or ()
        self._waited_for = tuple(
            progress
            for replica, progress in self._progress.items()
            if replica in self.isr or replica in pending or progress.joining
        )
        self.acks_all_allowed = len(self.isr) >= self.effective_min_insync_replicas

    def _raise_high_watermark(self) -> Effects:
        committed = min(self._flushed, self.log_end) if self._flush_before_commit else self.log_end
        for progress in self._waited_for:
            if progress.log_end < committed:
                committed = progress.log_end
        # Below the minimum nothing more is committed, so that committed records survive on any of them (KIP-966).
        if committed <= self.high_watermark or not self.acks_all_allowed:
            return ()
        self.high_watermark = committed
        return (HighWatermarkRaised(committed),)
