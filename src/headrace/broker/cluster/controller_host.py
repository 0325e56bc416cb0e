"""Runs the controller on this node: decide, append, sync, and only then apply and respond.

Two images are built from the same records by the same `apply`. The controller's image holds what is appended, so that
the next proposal is decided on current state. The committed image holds what is synced, and is the only one that the
rest of the broker sees. Every response waits for its commit, which is an event of a later turn, even if there was
nothing to write: its decision may depend on records that are not committed yet.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from headrace.broker.cluster.metadata_log import Append, MetadataDamaged, MetadataLog, Replay
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.core.controller.commands import (
    BrokerHeartbeat,
    BrokerRegistration,
    BrokerResult,
    BrokerState,
    ConfigAlteration,
    ConfigReplacement,
    ConfigResult,
    Decision,
    NewBroker,
    NewTopic,
    PartitionGrowth,
    ProducerIdBlock,
    TopicResult,
    TopicToDelete,
)
from headrace.core.controller.controller import Controller
from headrace.core.controller.delta import MetadataDelta, apply_with_delta
from headrace.core.controller.features import FeatureResult, FeatureUpdate
from headrace.core.controller.records import Record
from headrace.core.controller.settings import ControllerSettings
from headrace.log.errors import is_full, is_transient
from headrace.log.flush import PartialFlush
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId, TopicId
from headrace.ports.clock import Clock
from headrace.ports.entropy import Entropy
from headrace.ports.spawner import Lane, Spawner, call_all

PROPOSALS_PENDING_MAX = 10_000

RECORDS_PER_TURN = 500
"""Records encoded or applied per turn; a larger change takes several turns, and later changes wait for it."""

Response = TypeVar("Response")


class _Pending(NamedTuple):
    """A proposal that is answered once everything below `end_offset` is committed."""

    end_offset: int
    records: tuple[Record, ...]
    proposal: Proposal[Any]
    response: object


class _Change(NamedTuple):
    """A decision that is being written to the log."""

    steps: Iterator[None]
    proposal: Proposal[Any]


def _nothing() -> None:
    """Does nothing; submitted so that a completion comes in a later turn."""


class ControllerHost:
    def __init__(
        self,
        log: MetadataLog,
        replay: Replay,
        *,
        settings: ControllerSettings,
        spawner: Spawner,
        clock: Clock,
        entropy: Entropy,
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._log = log
        self._settings = settings
        self._spawner = spawner
        self._clock = clock
        self._entropy = entropy
        self._notice = notice
        self.image = replay.image
        """The committed image. Only this object changes it; it stays the same object for the life of the node."""
        self._controller = Controller(replay.image.copy(), settings)
        self._pending: deque[_Pending] = deque()
        self._change: _Change | None = None
        """A change whose records take several turns."""
        self._waiting: deque[tuple[Callable[[Controller], Decision[Any]], Proposal[Any]]] = deque()
        """Decisions that wait until it is written."""
        self._sync_in_flight = False
        self._subscribers: list[Callable[[MetadataDelta], None]] = []
        self.offline: str | None = None
        """Reason why metadata cannot be changed until the next start, or None."""
        self.on_offline: Callable[[], None] | None = None
        self.on_no_room: Callable[[], None] = lambda: None
        """Called when the metadata directory is full."""
        self.refusal_of_new_partitions: Callable[[], str | None] = lambda: None
        """Returns the reason why no partition can be created now, or None."""
        self.later: Callable[[Callable[[], None]], object] = self._in_a_later_turn
        """Calls back after a while, to retry what failed for lack of disk space or file descriptors."""
        self.next_turn: Callable[[Callable[[], None]], object] = self._in_a_later_turn
        if replay.recovered.damage:
            cut_bytes, damage = replay.recovered.cut_bytes, replay.recovered.damage
            notice(f"{log.folder}: cut {cut_bytes} bytes behind offset {log.end_offset} ({damage})")
        for damage in replay.damaged_snapshots:
            notice(f"a metadata snapshot is damaged and was passed over: {damage}")

    @property
    def term(self) -> int:
        return self._log.term

    @property
    def recovery_point(self) -> int:
        """The recovery point for the checkpoint of the log directory."""
        return self._log.recovery_point

    def subscribe(self, on_image_change: Callable[[MetadataDelta], None]) -> None:
        """Call back with the changes of every commit, after they are in `image` and before any response is sent."""
        self._subscribers.append(on_image_change)

    def configure(self, settings: ControllerSettings) -> None:
        """Use changed settings from the next proposal on."""
        self._settings = settings
        self._controller.settings = settings

    # Commands

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Proposal[tuple[TopicResult, ...]]:
        refusal = None if validate_only else self.refusal_of_new_partitions()
        if refusal is not None:
            return self._refused(refusal)
        topic_ids = [new_topic_id(self._entropy) for _ in topics]
        return self.propose(
            lambda controller: controller.create_topics(topics, topic_ids=topic_ids, validate_only=validate_only)
        )

    def delete_topics(self, topics: Sequence[TopicToDelete]) -> Proposal[tuple[TopicResult, ...]]:
        return self.propose(lambda controller: controller.delete_topics(topics))

    def create_partitions(
        self, growths: Sequence[PartitionGrowth], *, validate_only: bool = False
    ) -> Proposal[tuple[TopicResult, ...]]:
        refusal = None if validate_only else self.refusal_of_new_partitions()
        if refusal is not None:
            return self._refused(refusal)
        return self.propose(lambda controller: controller.create_partitions(growths, validate_only=validate_only))

    def alter_configs(
        self, alterations: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Proposal[tuple[ConfigResult, ...]]:
        return self.propose(lambda controller: controller.alter_configs(alterations, validate_only=validate_only))

    def replace_configs(
        self, replacements: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> Proposal[tuple[ConfigResult, ...]]:
        return self.propose(lambda controller: controller.replace_configs(replacements, validate_only=validate_only))

    def allocate_producer_ids(self, node_id: NodeId) -> Proposal[ProducerIdBlock]:
        return self.propose(lambda controller: controller.allocate_producer_ids(node_id))

    def found_cluster(self) -> Proposal[None]:
        """Write the first records of a new cluster; does nothing in a cluster that exists."""
        return self.propose(Controller.found_cluster)

    def register_broker(
        self, new: NewBroker, *, cluster_id: str, session_is_live: Callable[[], bool] = lambda: False
    ) -> Proposal[BrokerRegistration]:
        return self.propose(
            lambda controller: controller.register_broker(new, cluster_id=cluster_id, session_is_live=session_is_live())
        )

    def heartbeat(self, beat: BrokerHeartbeat) -> Proposal[BrokerState]:
        return self.propose(lambda controller: controller.heartbeat(beat))

    def fence_broker(self, node_id: NodeId, broker_epoch: int) -> Proposal[BrokerResult]:
        return self.propose(lambda controller: controller.fence_broker(node_id, broker_epoch))

    def unregister_broker(self, node_id: NodeId) -> Proposal[BrokerResult]:
        return self.propose(lambda controller: controller.unregister_broker(node_id))

    def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> Proposal[tuple[FeatureResult, ...]]:
        return self.propose(lambda controller: controller.update_features(updates, validate_only=validate_only))

    # Proposals

    def propose(self, decide: Callable[[Controller], Decision[Response]]) -> Proposal[Response]:
        """Decide now, on everything appended so far; the response comes when its records are committed."""
        if self.offline is not None:
            return self._refused(self.offline)
        proposal: Proposal[Response] = Proposal()
        if len(self._pending) + len(self._waiting) >= PROPOSALS_PENDING_MAX:
            message = f"{PROPOSALS_PENDING_MAX} metadata changes are waiting to be committed; retry later"
            self._fail_later(proposal, ProposalFailed(ErrorCode.REQUEST_TIMED_OUT, message))
        elif self._change is not None:
            self._waiting.append((decide, proposal))
        else:
            self._decide(decide, proposal)
        return proposal

    def _decide(self, decide: Callable[[Controller], Decision[Any]], proposal: Proposal[Any]) -> None:
        self._change = _Change(self._steps(decide, proposal), proposal)
        self._go_on(self._change)

    def _go_on(self, change: _Change) -> None:
        if change is not self._change:
            return  # it was given up
        try:
            for _ in change.steps:
                self.next_turn(lambda: self._go_on_with_others(change))
                return
        except Exception as error:  # an internal error must not block all later changes
            if change is self._change:
                self._change = None
                failure = ProposalFailed(ErrorCode.UNKNOWN_SERVER_ERROR, f"metadata change failed: {error}")
                self._fail_later(change.proposal, failure)
            self.next_turn(self._decide_waiting)
            raise
        self._change = None

    def _go_on_with_others(self, change: _Change) -> None:
        self._go_on(change)
        self._decide_waiting()

    def _decide_waiting(self) -> None:
        while self._waiting and self._change is None:
            self._decide(*self._waiting.popleft())

    def _steps(self, decide: Callable[[Controller], Decision[Any]], proposal: Proposal[Any]) -> Iterator[None]:
        """Decide, encode, write, apply, and wait for the sync; pauses when a turn has done enough."""
        controller = self._controller
        decision = decide(controller)
        records = decision.records
        parts = [records[first : first + RECORDS_PER_TURN] for first in range(0, len(records), RECORDS_PER_TURN)]
        begun = self._log.begin(metadata_version=controller.image.metadata_version, wall_ms=self._clock.wall_ms())
        for number, part in enumerate(parts):
            if number:
                yield
            begun.add(part)
        if records and not self._append(begun, proposal):
            return
        for number, part in enumerate(parts):
            if number:
                yield
            for record in part:
                controller.apply(record)
        assert controller.image.version == self._log.end_offset, "image and log differ in their offsets"
        self._pending.append(_Pending(controller.image.version, records, proposal, decision.response))
        self._change = None  # it is pending from here on: a failure of pending proposals must not fail it twice
        self._sync()

    def _refused(self, reason: str) -> Proposal[Any]:
        """Fail a proposal that was not appended; this response, too, comes in a later turn."""
        proposal: Proposal[Any] = Proposal()
        self._fail_later(proposal, ProposalFailed(ErrorCode.KAFKA_STORAGE_ERROR, reason))
        return proposal

    def _append(self, begun: Append, proposal: Proposal[Any]) -> bool:
        """Return False if the write failed, and the proposal with it."""
        before = self._log.end_offset
        try:
            self._log.append(begun)
        except OSError as error:
            if self._log.failed or self._log.end_offset != before:  # otherwise the log has undone the append
                self._reload(before)
            message = f"metadata cannot be written: {error}"
            self._notice(message)
            if is_full(error):
                self.on_no_room()
            if self._change is not None:  # otherwise it failed when the log went offline
                self._fail_later(proposal, ProposalFailed(ErrorCode.KAFKA_STORAGE_ERROR, message))
            return False
        return True

    def _reload(self, end_offset: int) -> None:
        """Replace the controller with one built from the log, which ends where it did before the failure."""
        try:
            self._log, replay = self._log.reopened(end_offset=end_offset, wall_ms=self._clock.wall_ms())
            if replay.image.version != end_offset:
                raise MetadataDamaged(self._log.folder, f"the log was cut at offset {replay.image.version}")
        except (OSError, MetadataDamaged) as error:
            self._go_offline(str(error))
            return
        self._controller = Controller(replay.image, self._settings)

    def _fail_later(self, proposal: Proposal[Any], failure: ProposalFailed) -> None:
        self._spawner.submit(_nothing, lambda _result, _error: proposal.complete(failure), Lane.METADATA)

    # Commits

    def _sync(self) -> None:
        """Run one sync at a time; changes proposed meanwhile share the next one."""
        if self._sync_in_flight or not self._pending:
            return
        self._sync_in_flight = True
        log, end_offset = self._log, self._log.end_offset
        work = log.sync_work()
        if work is None and not log.is_synced:
            self._sync_later(log)
            return

        def completed(result: object, error: BaseException | None) -> None:
            try:
                if work is not None:
                    work.done(result, error)
                if isinstance(result, PartialFlush) and is_full(result.error):
                    self.on_no_room()
            except Exception:
                self._sync_later(log)  # otherwise no later change would ever be committed
                raise
            if isinstance(result, PartialFlush) and not result.durable:
                self._sync_later(log)
            else:
                self._sync_in_flight = False
                self._synced(log, end_offset, error)

        self._spawner.submit(_nothing if work is None else work.run, completed, Lane.METADATA)

    def _sync_later(self, log: MetadataLog) -> None:
        """Wait for resources that a sync needs, unless the log failed because of their lack."""
        if log.failed and log is self._log:
            self._sync_in_flight = False
            self._go_offline("the metadata log failed while a sync was prepared")
            return

        def again() -> None:
            self._sync_in_flight = False
            self._sync()

        self.later(again)

    def _in_a_later_turn(self, call: Callable[[], None]) -> None:
        self._spawner.submit(_nothing, lambda _result, _error: call(), Lane.METADATA)

    def _synced(self, log: MetadataLog, end_offset: int, error: BaseException | None) -> None:
        if isinstance(error, OSError):
            self._go_offline(f"metadata could not be synced to disk; restart the broker: {error}")
        elif log is not self._log:
            self._sync()  # the log was reopened and synced meanwhile; this result belongs to the old one
        elif error is not None:
            self._give_up(f"metadata was not committed: {error}")
        else:
            self._commit(end_offset)

    def _commit(self, end_offset: int) -> None:
        committed: list[_Pending] = []
        while self._pending and self._pending[0].end_offset <= end_offset:
            committed.append(self._pending.popleft())
        delta = apply_with_delta(self.image, [record for pending in committed for record in pending.records])
        calls: list[Callable[[], object]] = [self._sync, self._snapshot_if_due]
        if any(pending.records for pending in committed):
            calls += [partial(subscriber, delta) for subscriber in self._subscribers]
        calls += [partial(pending.proposal.complete, pending.response) for pending in committed]
        call_all(calls)

    def _give_up(self, reason: str) -> None:
        """Go back to the committed state after a commit that failed for another reason than the disk."""
        self._notice(reason)
        self._fail_pending(ProposalFailed(ErrorCode.NOT_CONTROLLER, reason))
        self._reload(self.image.version)
        self._decide_waiting()

    def _go_offline(self, reason: str) -> None:
        """Stop using a disk that failed to sync, since nothing that was not synced may be acknowledged ("Power loss" in
        docs/guarantees.md). The committed metadata can still be read.
        """
        self.offline = reason
        self._notice(reason)
        self._controller = Controller(self.image.copy(), self._settings)
        failure = ProposalFailed(ErrorCode.KAFKA_STORAGE_ERROR, reason)
        self._fail_pending(failure)
        while self._waiting:
            self._fail_later(self._waiting.popleft()[1], failure)
        if self.on_offline is not None:
            self.on_offline()

    def _fail_pending(self, failure: ProposalFailed) -> None:
        """Proposals that are being written or are in the log."""
        while self._pending:
            self._fail_later(self._pending.popleft().proposal, failure)
        if self._change is not None:
            self._fail_later(self._change.proposal, failure)
            self._change = None

    # Snapshots

    def _snapshot_if_due(self) -> None:
        if not self._log.snapshot_due:
            return
        work = self._log.snapshot_work(
            self.image, end_offset=self.image.version, wall_ms=self._clock.wall_ms(), ended=self._snapshot_ended
        )
        self._spawner.submit(work.run, work.done)

    def _snapshot_ended(self, error: BaseException | None) -> None:
        if error is not None:
            self._notice(f"the metadata snapshot could not be written; the log is kept instead: {error}")
            self._look_at(error)
            return
        self._tidy()

    def _look_at(self, error: BaseException) -> None:
        """Handle an error of work other than a sync: the disk is full, or it failed and is not used again."""
        if is_full(error):
            self.on_no_room()
        elif isinstance(error, OSError) and not is_transient(error) and self.offline is None:
            self._go_offline(f"the metadata directory failed: {error}")

    def _tidy(self) -> None:
        """Delete old segments in two steps, renaming and then unlinking."""
        work = self._log.tidy_work(self._clock.wall_ms())
        if work is None:
            return

        def completed(result: object, error: BaseException | None) -> None:
            work.done(result, error)
            if error is None:
                self._tidy()
            else:
                self._notice(f"old metadata segments could not be removed: {error}")
                self._look_at(error)

        self._spawner.submit(work.run, completed)

    def close(self, *, clean: bool = True) -> None:
        """Sync what was proposed and not committed, without responses; the last work of the node."""
        self._pending.clear()
        self._log.close(clean=clean and self.offline is None)


def new_topic_id(entropy: Entropy) -> TopicId:
    """Draw a random UUID of version 4; tools that check the version bits accept it."""
    drawn = bytearray(entropy.random_bytes(16))
    drawn[6] = drawn[6] & 0x0F | 0x40
    drawn[8] = drawn[8] & 0x3F | 0x80
    if drawn[0] >> 2 == 0x3E:  # its base64 form would begin with "-", which command lines take for an option
        drawn[0] &= 0x7F
    return TopicId(bytes(drawn))
