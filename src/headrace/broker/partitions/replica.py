"""One partition's copy on this node: the appends of a turn, their acknowledgement, and the fetches that wait for more.

A replica is a log and a role. The metadata image decides which role: `lead` begins a leader epoch, `follow` and
`resign` end the leadership. Only a leader serves clients; from any other replica they get the error in `refusal`.

The batches of all requests of a turn are staged and written by one call. Responses are encoded before the write and
sent after it. A response is changed afterwards only if it has to wait longer than its turn (for a sync, for followers),
or if its write fails.

A batch of a transaction is accepted when the transaction is open on this partition, or when its coordinator has
confirmed that the partition belongs to it; `verification` keeps these confirmations.
"""

from collections.abc import Callable

from headrace.broker.net.connection import ResponseSlot
from headrace.broker.partitions.acknowledgements import AckWaits, patch_error
from headrace.broker.partitions.fetch_waiters import FetchWaiter, FetchWaiters, ReadBound
from headrace.broker.partitions.record_rules import RecordRules
from headrace.broker.partitions.replication_hooks import NO_REPLICATION, ReplicationHooks
from headrace.broker.partitions.verification import Verifications
from headrace.broker.timers import Timers
from headrace.core.controller.partition_states import PartitionState
from headrace.core.replication.follower import Follower
from headrace.core.replication.leader import FollowerFetch, Leader
from headrace.core.replication.role import (
    Effects,
    ExpandIsr,
    FetchFrom,
    HighWatermarkRaised,
    Idle,
    ReplicaRole,
    ShrinkIsr,
)
from headrace.log.errors import DamagedLog
from headrace.log.partition_log import PartitionLog
from headrace.log.segment import Segment
from headrace.log.space import Space
from headrace.model.configs.values import TopicConfig
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_EPOCH, NodeId, Offset, TopicId
from headrace.wire.records.header import (
    BASE_TIMESTAMP,
    HEADER,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    RECORD_COUNT,
    HeaderFields,
)
from headrace.wire.records.markers import Marker, control_batch

ACKS_ALL = -1

_NONE = ErrorCode.NONE
_unpack_header = HEADER.unpack_from


class Replica:
    __slots__ = (
        "_acks",
        "_hooks",
        "_on_error",
        "_takes_plain",
        "_timers",
        "_touched",
        "_unconfirmed",
        "_waiters",
        "being_cut",
        "config",
        "has_lost_end",
        "index",
        "is_damaged",
        "log",
        "offline",
        "on_marker",
        "refusal",
        "role",
        "rules",
        "serves",
        "space",
        "topic",
        "topic_id",
        "touched",
        "unseen_bytes",
        "verifications",
    )

    def __init__(
        self,
        *,
        topic: str,
        index: int,
        topic_id: TopicId,
        log: PartitionLog,
        space: Space,
        role: ReplicaRole,
        config: TopicConfig,
        timers: Timers,
        touched: "list[Replica]",
        on_error: "Callable[[Replica, OSError | DamagedLog], None]",
        hooks: ReplicationHooks = NO_REPLICATION,
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.space = space
        """The free space of the log directory."""
        self.role = role
        self._take_config(config)
        self.offline = False
        """True once the log cannot be used: its directory failed, or its topic was deleted."""
        self.serves = False
        """True while this node leads the partition and can use the log."""
        self.refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
        """The error that clients get while it does not serve."""
        self._timers = timers
        self._touched = touched
        self.touched = False
        self._on_error = on_error
        self._hooks = hooks
        self._unconfirmed: list[tuple[ResponseSlot, int, int, int, int]] = []
        self._acks = AckWaits(timers)
        self._waiters = FetchWaiters(log, role)
        self.being_cut = False
        """True while a helper removes a part of the log: nothing is appended, and this node cannot lead."""
        self.has_lost_end = False
        """True if committed records were lost from the end of the log that other replicas have. It serves nothing, also
        no follower, who would drop them too, until the controller has decided."""
        self.is_damaged = False
        """True while a part of the log cannot be read. A follower that is not cut there must not be in sync again."""
        self.unseen_bytes = 0
        """Appended bytes that become readable with the high watermark."""
        self.verifications = Verifications(log)
        self.on_marker: Callable[[int, int, bool], None] | None = None
        """Called for every transaction marker that is staged: producer id, producer epoch, whether it commits."""

    # Roles

    def lead(self, node_id: NodeId, state: PartitionState, *, replica_lag_ms_max: float) -> None:
        """Begin a leader epoch of this node. Requests from an earlier epoch of this node keep waiting."""
        self.log.begin_epoch(state.leader_epoch)
        config, role = self.config, self.role
        self._take_role(
            Leader(
                node=node_id,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                replicas=state.replicas,
                isr=state.isr,
                log_end=Offset(self.log.end_offset),
                flushed=Offset(self.log.recovery_point),
                high_watermark=role.high_watermark,
                flush_before_commit=config.flush_messages == 1,
                min_insync_replicas=config.min_insync_replicas,
                replica_lag_ms_max=replica_lag_ms_max,
                now_ms=self._timers.now_ms(),
            )
        )
        self.serves = not self.offline and not self.has_lost_end
        if self.has_lost_end:
            self.refusal = ErrorCode.KAFKA_STORAGE_ERROR
        if self.role.high_watermark > role.high_watermark:
            self.high_watermark_raised()

    def take_isr(self, state: PartitionState) -> None:
        """Apply replicas and an in-sync set that the controller committed within the leader epoch of this node.

        Writes with acks=all that wait while too few replicas are left in sync fail: how long that lasts is not known.
        """
        role = self.role
        assert isinstance(role, Leader)
        self.execute(role.partition_changed(state.replicas, state.isr, state.partition_epoch))
        if not role.acks_all_allowed:
            self._acks.fail(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def follow(self, state: PartitionState) -> None:
        """Copy another leader, in a new leader epoch or the current one."""
        role = self.role
        if isinstance(role, Follower) and (role.leader, role.leader_epoch) == (state.leader, state.leader_epoch):
            role.partition_changed(state.partition_epoch)
            return
        self.resign(state)
        log = self.log
        log.epochs.truncate_from(log.end_offset)  # an epoch in which this node led and wrote nothing
        self._take_role(
            Follower(
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                log_start=Offset(log.start_offset),
                log_end=Offset(log.end_offset),
                last_epoch=log.epochs.epoch_at(log.end_offset - 1),
                flushed=Offset(log.synced_offset),
                high_watermark=self.role.high_watermark,
                flush_before_fetch=self.config.flush_messages == 1,
            )
        )

    def begin_cut(self) -> None:
        """Stop reads and appends, because a helper removes the end of the log, or all of it."""
        self.being_cut = True
        self.wake_all()

    def was_cut(self) -> None:
        """Continue with a log whose end, or everything, was removed."""
        self.being_cut = False
        self.review_damage()
        role, log = self.role, self.log
        if isinstance(role, Follower):
            self.execute(
                role.truncated(
                    log_start=Offset(log.start_offset),
                    log_end=Offset(log.end_offset),
                    last_epoch=log.epochs.epoch_at(log.end_offset - 1),
                )
            )
        else:
            role.high_watermark = Offset(max(log.start_offset, min(role.high_watermark, log.end_offset)))

    def resign(self, state: PartitionState) -> None:
        """End the leadership, or note another leader epoch of which this node is not the leader.

        The log takes back the batches of this turn. Every request that waits, and every later one, gets the error.
        """
        was_serving, role = self.serves, self.role
        self._take_role(
            Idle(
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                high_watermark=role.high_watermark,
            )
        )
        if was_serving:
            for slot in self._stop_serving(ErrorCode.NOT_LEADER_OR_FOLLOWER):
                self._hooks.leader_missed(slot)
            self.log.unstage()
        else:
            if not self.offline:
                self.refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
            self.wake_all()  # consumers that read from a follower

    def _take_role(self, role: ReplicaRole) -> None:
        self.role = role
        self._waiters.take_role(role)

    # Replication

    def follower_fetched(self, fetch: FollowerFetch) -> None:
        """Note what a follower has, which may commit records and change the in-sync set."""
        role = self.role
        assert isinstance(role, Leader)
        effects = role.follower_fetched(fetch, self._timers.now_ms())
        if effects:
            self.execute(effects)

    def execute(self, effects: Effects) -> None:
        """Carry out what the role has decided."""
        for effect in effects:
            match effect:
                case HighWatermarkRaised():
                    self.high_watermark_raised()
                case ShrinkIsr() | ExpandIsr():
                    self._hooks.change_isr(self, effect)
                case FetchFrom():
                    self._hooks.fetchable(self)

    # Produce

    def append_next(self, batch: memoryview, fields: HeaderFields, acks: int, wall_ms: int) -> int:
        """HOT. Stage a plain batch (`validation.is_plain`) that continues its producer's sequence; its base offset.

        Return -1 and stage nothing for any other batch, or where topic or node ask for more checks (`append_produced`).
        """
        config, log, role = self.config, self.log, self.role
        producers = log.producers
        if (
            not self.serves
            or self.space.full
            or (acks == ACKS_ALL and not role.acks_all_allowed)
            or not self._takes_plain
            or len(batch) > config.message_bytes_max
            or fields[MAX_TIMESTAMP] - wall_ms > config.timestamp_after_ms_max
            or wall_ms - fields[BASE_TIMESTAMP] > config.timestamp_before_ms_max
            or producers.open
            or not (fields[PRODUCER_ID] < 0 or producers.advance(fields, log.staged_end_offset, wall_ms))
        ):
            return -1
        self.unseen_bytes += len(batch)
        return log.stage(batch, fields, role.leader_epoch, wall_ms, True)

    def append_with_response(
        self, batch: bytearray, fields: HeaderFields, wall_ms: int, slot: ResponseSlot, timeout_ms: int
    ) -> int:
        """HOT. Stage a batch of this node as `append_own` does; the response is sent when the batch is committed."""
        log = self.log
        end_offset = log.stage(memoryview(batch), fields, self.role.leader_epoch, wall_ms) + fields[RECORD_COUNT]
        self.unseen_bytes += len(batch)
        self.confirm_later(slot, end_offset, ACKS_ALL, 0, timeout_ms)
        return end_offset

    def append_own(self, batch: bytearray, wall_ms: int) -> int:
        """Stage a batch that this node made itself, for an internal topic; return the offset after its last record.

        The caller is a fetch waiter: it is woken when the high watermark rises, and when the write failed.
        """
        view = memoryview(batch)
        fields: HeaderFields = _unpack_header(view)
        base_offset = self.log.stage(view, fields, self.role.leader_epoch, wall_ms)
        self._staged_own(len(batch))
        return base_offset + fields[RECORD_COUNT]

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        wall_ms: int,
    ) -> ErrorCode | int:
        """Stage the end of a producer's transaction; return the offset after the marker, or the error.

        The caller waits as after `append_own`. An `ErrorCode` is an int too, so test for the error first.
        """
        if not self.serves:
            return self.refusal
        if not self.role.acks_all_allowed:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        error = self.log.producers.refusal_of_marker(
            producer_id, producer_epoch, coordinator_epoch=coordinator_epoch, transaction_version=transaction_version
        )
        if error is not _NONE:
            return error
        batch = control_batch(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            timestamp=wall_ms,
        )
        view, marker = memoryview(batch), Marker(commit, coordinator_epoch)
        offset = self.log.transactions.stage_marker(view, _unpack_header(view), marker, self.role.leader_epoch, wall_ms)
        self.verifications.marker_came(producer_id, producer_epoch, transaction_version=transaction_version)
        self._staged_own(len(batch))
        if self.on_marker is not None:
            self.on_marker(producer_id, producer_epoch, commit)
        return offset + 1

    def _staged_own(self, size: int) -> None:
        self.unseen_bytes += size
        if not self.touched:
            self.touched = True
            self._touched.append(self)

    def confirm_later(self, slot: ResponseSlot, end_offset: int, acks: int, error_at: int, timeout_ms: int) -> None:
        """Make the response depend on this turn's write, and with acks=all on the commit of all below `end_offset`."""
        if not self.touched:
            self.touched = True
            self._touched.append(self)
        self._unconfirmed.append((slot, end_offset, acks, error_at, timeout_ms))

    def end_turn(self) -> None:
        """Write the staged batches, move the high watermark, release the responses and fetches that waited."""
        self.touched = False
        if self.offline:
            self.log.discard_staged()  # its directory failed earlier in this turn, and the responses have the error
            return
        try:
            self.log.write_staged()
        except OSError as error:
            self._on_error(self, error)
            if self.log.failed:
                return
            self._refuse_unwritten()
        raised = self.role.log_appended(Offset(self.log.end_offset))
        high_watermark = self.role.high_watermark
        if high_watermark < self.log.end_offset:
            self._park_acks(high_watermark)
        self._unconfirmed.clear()
        if raised:
            self.high_watermark_raised()
        if self._waiters.end_waiters:
            self._waiters.log_end_moved(self)

    def _refuse_unwritten(self) -> None:
        """Respond with an error to the batches that the log took back because the disk was full; stay online."""
        end_offset = self.log.end_offset
        for slot, needed, _, error_at, _ in self._unconfirmed:
            if needed > end_offset:
                patch_error(slot, error_at, ErrorCode.KAFKA_STORAGE_ERROR)
        self._unconfirmed = [entry for entry in self._unconfirmed if entry[1] <= end_offset]
        self.wake_all()

    def _park_acks(self, high_watermark: int) -> None:
        # With flush.messages=1 every acknowledgement waits for the sync, with acks=1 too.
        synced = self.config.flush_messages == 1
        now_ms = self._timers.now_ms()
        for slot, end_offset, acks, error_at, timeout_ms in self._unconfirmed:
            if (acks == ACKS_ALL or (synced and acks)) and end_offset > high_watermark:
                self._acks.add(slot, end_offset, error_at, timeout_ms, now_ms)
        if not self.role.acks_all_allowed:  # the in-sync set became too small within this turn
            self._acks.fail(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def high_watermark_raised(self) -> None:
        self._acks.committed(self.role.high_watermark)
        new_bytes, self.unseen_bytes = self.unseen_bytes, 0
        self._waiters.high_watermark_raised(self, new_bytes)

    def log_flushed(self, end_offset: int) -> None:
        effects = self.role.log_flushed(Offset(end_offset))
        if effects:
            self.execute(effects)

    def take_offline(self, error: ErrorCode) -> None:
        """Stop all writes and reads; the requests that wait get the error."""
        self.offline = True
        self._stop_serving(error)
        self._hooks.role_changed(self)

    def _stop_serving(self, error: ErrorCode) -> list[ResponseSlot]:
        """Fail every request that waits; return the complete responses of those whose records were written before."""
        self.serves = False
        self.refusal = error
        for slot, _, _, error_at, _ in self._unconfirmed:
            patch_error(slot, error_at, error)
        self._unconfirmed.clear()
        failed = self._acks.fail(error)
        self.wake_all()
        return failed

    # Fetch

    def add_waiter(self, waiter: FetchWaiter, bound: ReadBound = ReadBound.HIGH_WATERMARK) -> None:
        """Add a parked fetch, which is woken when its bound moves."""
        self._waiters.add(waiter, bound)

    def remove_waiter(self, waiter: FetchWaiter) -> None:
        self._waiters.remove(waiter)

    def wake_all(self) -> None:
        """Wake every parked fetch to read again and respond, after a change other than an append."""
        self._waiters.wake_all(self)

    def mark_damaged(self, segment: Segment, ranges: tuple[tuple[int, int], ...]) -> None:
        """Mark these positions of a segment as unreadable; none if it is whole again."""
        self.log.mark_damaged(segment, ranges)
        self.review_damage()

    def note_lost_end(self, *, is_lost: bool) -> None:
        """Note that the log ends below what was committed, or that this counts no more."""
        self.has_lost_end = is_lost
        self.review_damage()

    def review_damage(self) -> None:
        """Note whether a damaged part is left: retention, a cut or a repair may have removed it."""
        was_damaged = self.is_damaged
        self.is_damaged = self.has_lost_end or any(segment.damaged for segment in self.log.segments)
        if was_damaged != self.is_damaged:
            self._hooks.fetchable(self)

    @property
    def is_readable_copy(self) -> bool:
        """Return whether consumers may read here although another node leads."""
        role = self.role
        return isinstance(role, Follower) and not (self.offline or self.being_cut or role.is_truncating)

    def damage_found(self, damage: DamagedLog) -> None:
        """Report bytes in the log that are not a batch, which a reader has found."""
        self._on_error(self, damage)

    def refusal_of(self, leader_epoch: int) -> ErrorCode:
        """Return the error that a client gets while this replica does not serve.

        If the client and this broker know different leader epochs, the error says which of the two is behind.
        """
        return self.refusal if self.offline else self.check_leader_epoch(leader_epoch) or self.refusal

    def check_leader_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """Compare the leader epoch that a client knows with the current one (KIP-320)."""
        if current_leader_epoch == NO_EPOCH or current_leader_epoch == self.role.leader_epoch:
            return _NONE
        if current_leader_epoch < self.role.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def _take_config(self, config: TopicConfig) -> None:
        self.config = config
        self.rules = RecordRules(config)
        self._takes_plain = self.rules.takes_plain

    def configure(self, config: TopicConfig) -> None:
        self._take_config(config)
        self.execute(
            self.role.configure(
                flush_before_commit=config.flush_messages == 1, min_insync_replicas=config.min_insync_replicas
            )
        )
