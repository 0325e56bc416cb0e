"""The replication state of one followed partition: what to fetch, and what of its own log to give up.

One object lives for one leader epoch. A follower's log is made equal to the leader's by epochs alone: each fetch names
the epoch of the last batch in the follower's log, and the leader answers where the two logs diverge (KIP-101, KIP-279,
KIP-595). The high watermark never decides about truncation: a replica may have more committed records than it knows of.
"""

from headrace.core.replication.role import (
    AdvanceStart,
    Effects,
    FetchFrom,
    HighWatermarkRaised,
    ReplicaRole,
    RestartAt,
    TruncateTo,
)
from headrace.model.ids import NO_EPOCH, LeaderEpoch, NodeId, Offset


class WrongAnswer(Exception):
    """The leader's answer contradicts the log of this node or itself; nothing was changed."""


class Follower(ReplicaRole):
    """The view of a node that copies one partition from its leader in one leader epoch."""

    __slots__ = (
        "_flush_before_fetch",
        "_flushed",
        "_leader_start",
        "is_truncating",
        "last_epoch",
        "leader",
        "log_end",
        "log_start",
    )

    def __init__(
        self,
        *,
        leader: NodeId,
        leader_epoch: LeaderEpoch,
        partition_epoch: int,
        log_start: Offset,
        log_end: Offset,
        last_epoch: int,
        flushed: Offset,
        high_watermark: Offset,
        flush_before_fetch: bool = False,
        is_truncating: bool = False,
    ) -> None:
        """`last_epoch` is the epoch of the last batch in the log; with `flush_before_fetch` a fetch, which tells the
        leader what this node has, waits until it is on disk.
        """
        super().__init__(
            leader_epoch=leader_epoch, partition_epoch=partition_epoch, high_watermark=min(high_watermark, log_end)
        )
        self.leader = leader
        self.log_start = log_start
        self.log_end = log_end
        self.last_epoch = last_epoch
        self._flushed = flushed
        self._flush_before_fetch = flush_before_fetch
        self._leader_start = log_start
        """The offset from which an empty log fetches; the batch that the leader sends first may begin below it."""
        self.is_truncating = is_truncating
        """True while the log is cut, when nothing is fetched."""

    # Queries

    def next_fetch(self) -> FetchFrom | None:
        """Return the next fetch; None while the log is cut, or must be on disk first."""
        if self.is_truncating or (self._flush_before_fetch and self._flushed < self.log_end):
            return None
        if self.log_end > self.log_start:
            return FetchFrom(self.log_end, self.last_epoch)
        # An empty log has no last batch, and nothing in it can differ from the leader's.
        return FetchFrom(max(self.log_end, self._leader_start), NO_EPOCH)

    # Events of this node's log

    def log_flushed(self, end: Offset) -> Effects:
        was_waiting = self.next_fetch() is None
        if end > self._flushed:
            self._flushed = end
        fetch = self.next_fetch() if was_waiting else None
        return () if fetch is None else (fetch,)

    def configure(
        self, *, flush_before_commit: bool, min_insync_replicas: int, replica_lag_ms_max: float | None = None
    ) -> Effects:
        was_waiting = self.next_fetch() is None
        self._flush_before_fetch = flush_before_commit
        fetch = self.next_fetch() if was_waiting else None
        return () if fetch is None else (fetch,)

    def truncated(self, *, log_start: Offset, log_end: Offset, last_epoch: int) -> Effects:
        """Note that the log was cut, or begun at another offset."""
        self.is_truncating = False
        self.log_start, self.log_end, self.last_epoch = log_start, log_end, last_epoch
        self._flushed = min(self._flushed, log_end)
        self.high_watermark = max(log_start, min(self.high_watermark, log_end))
        fetch = self.next_fetch()
        return () if fetch is None else (fetch,)

    # Answers of the leader

    def appended(self, log_end: Offset, last_epoch: int) -> None:
        """Note that batches of a response are in the log, which now ends at `log_end`."""
        assert log_end >= self.log_end, f"a follower's log went back from {self.log_end} to {log_end} without a cut"
        self.log_end, self.last_epoch = log_end, last_epoch

    def fetched(self, *, leader_high_watermark: int, leader_log_start: int) -> Effects:
        """Take over the offsets of a response whose batches are in the log."""
        log_end = self.log_end
        effects: Effects = ()
        committed = min(Offset(leader_high_watermark), log_end)
        if committed > self.high_watermark:
            self.high_watermark = committed
            effects = (HighWatermarkRaised(committed),)
        start = min(Offset(leader_log_start), log_end)
        if start > self.log_start:
            self.log_start = start
            effects = (*effects, AdvanceStart(start))
        return effects

    def diverging_epoch(self, epoch: int, end_offset: int, own: tuple[int, int]) -> Effects:
        """Cut the log where it leaves the leader's.

        The leader's epoch `epoch` ends at `end_offset`. `own` is the largest epoch of this node's log that is not above
        it, and its end here. If this node lacks the epoch, another round finds the place below it.
        """
        if not (NO_EPOCH <= epoch <= self.last_epoch and end_offset >= 0):
            raise WrongAnswer(
                f"the leader says that its epoch {epoch} ends at {end_offset}, asked about epoch {self.last_epoch}"
            )
        own_epoch, own_end = own
        if own_epoch == NO_EPOCH:
            target = end_offset
        elif own_epoch == epoch:
            target = min(own_end, end_offset)
        else:
            target = own_end
        if target >= self.log_end:
            raise WrongAnswer(
                f"the leader says that the logs differ after its epoch {epoch}, which ends at {end_offset}, but this "
                f"log ends at {self.log_end} and agrees up to {target}"
            )
        self.is_truncating = True
        return (RestartAt(Offset(target)) if target < self.log_start else TruncateTo(Offset(target)),)

    def out_of_range(self, leader_log_start: int) -> Effects:
        """Begin the log again where the leader's log begins: the leader has deleted what would come next."""
        if leader_log_start < 0 or not (leader_log_start > self.log_end or self.log_end == self.log_start):
            raise WrongAnswer(
                f"the leader cannot read at {self.log_end}, although it says that its log begins at {leader_log_start}"
            )
        if leader_log_start == self.log_end:
            raise WrongAnswer(f"the leader cannot read at {self.log_end}, where it says that its log begins")
        self.is_truncating = True
        return (RestartAt(Offset(leader_log_start)),)

    def batch_begins_at(self, base_offset: int) -> Effects:
        """Begin an empty log where the leader's first batch begins: the leader's log may start inside that batch."""
        if self.log_end > self.log_start or not 0 <= base_offset < self.log_end:
            raise WrongAnswer(f"the leader sends a batch at {base_offset}, asked for {self.log_end}")
        self.is_truncating = True
        self._leader_start = self.log_end
        return (RestartAt(Offset(base_offset)),)

    def give_up_from(self, offset: Offset) -> TruncateTo:
        """Cut the log where its damage begins; the leader has what follows."""
        self.is_truncating = True
        return TruncateTo(max(offset, self.log_start))

    # Events of the controller

    def partition_changed(self, partition_epoch: int) -> None:
        """Note a change of the partition within this leader epoch."""
        self.partition_epoch = max(self.partition_epoch, partition_epoch)
