"""Runs the controller on this node while it is the active one: decide, append, and respond after the commit.

Two images are built from the same records by the same `apply`. The controller's image holds what is appended, so that
the next proposal is decided on current state; it exists on the active controller alone. The committed image is on every
node, and is the only one that the rest of the broker sees. Every response waits for its commit, which is an event of a
later turn, even if there was nothing to write: its decision may depend on records that are not committed yet.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from headrace.broker.cluster.committed_metadata import CommittedMetadata, Subscriber
from headrace.broker.cluster.metadata_log import MetadataDamaged, Replay
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.cluster.quorum import AppendRefused, MetadataQuorum
from headrace.broker.cluster.snapshot_schedule import SnapshotSchedule
from headrace.broker.cluster.topic_ids import new_topic_id
from headrace.core.access.acls import AccessRule, RuleFilter
from headrace.core.controller.access_rules import DeletedRules, RuleResult
from headrace.core.controller.changes import ChangeBuilder
from headrace.core.controller.client_quotas import QuotaAlteration, QuotaResult
from headrace.core.controller.commands import (
    BrokerHeartbeat,
    BrokerRegistration,
    BrokerResult,
    BrokerState,
    ConfigAlteration,
    ConfigReplacement,
    ConfigResult,
    ControllerDecision,
    CreatableTopic,
    IsrAlteration,
    IsrResults,
    NewBroker,
    PartitionGrowth,
    ProducerIdBlock,
    TopicResult,
    TopicToDelete,
)
from headrace.core.controller.controller import Controller
from headrace.core.controller.credentials import CredentialResult, CredentialToRemove, NewCredential
from headrace.core.controller.elections import ElectionResult
from headrace.core.controller.features import FeatureResult, FeatureUpdate
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_changes import Election
from headrace.core.controller.reassignments import ReassignmentResult, WantedReplicas
from headrace.core.controller.records import Record
from headrace.core.controller.recoveries import LogEndReports
from headrace.core.controller.replica_faults import FaultyReplica
from headrace.core.controller.settings import ControllerSettings
from headrace.core.raft.effects import RequestRefusal
from headrace.core.raft.entries import LogEntry
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.ports.clock import Clock
from headrace.ports.entropy import Entropy
from headrace.ports.spawner import Lane, Spawner, call_all
from headrace.wire.errors import ProtocolError

RULE_ID_BYTES = 16
PROPOSALS_PENDING_MAX = 10_000

RECORDS_PER_TURN = 500
"""Records encoded or applied per turn; a larger change takes several turns, and later changes wait for it."""

Response = TypeVar("Response")

_REFUSALS = {
    RequestRefusal.OVERLOADED: ErrorCode.REQUEST_TIMED_OUT,
    RequestRefusal.TOO_LARGE: ErrorCode.INVALID_REQUEST,
}
"""Error codes of refused changes; for all other reasons the client looks for the active controller."""


class _Pending(NamedTuple):
    """A proposal that is answered once everything below `end_offset` is committed."""

    end_offset: int
    records: tuple[Record, ...]
    proposal: Proposal[Any]
    response: object


class _Change:
    """A decision that is being written to the log."""

    __slots__ = ("proposal", "steps")

    def __init__(self, proposal: Proposal[Any]) -> None:
        self.steps: Iterator[None] = iter(())
        self.proposal: Proposal[Any] | None = proposal
        """None once the change is in the log; it is then pending."""


def _nothing() -> None:
    """Does nothing; submitted so that a completion comes in a later turn."""


class ControllerHost:
    def __init__(
        self,
        quorum: MetadataQuorum,
        replay: Replay,
        *,
        settings: ControllerSettings,
        spawner: Spawner,
        clock: Clock,
        entropy: Entropy,
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._quorum = quorum
        self._settings = settings
        self._spawner = spawner
        self._entropy = entropy
        self._notice = notice
        self._metadata = CommittedMetadata(replay.image)
        self._snapshots = SnapshotSchedule(quorum, replay.image, spawner=spawner, clock=clock, notice=notice)
        self._controller: Controller | None = None
        """The controller; None while this node is not the active one."""
        self._pending: deque[_Pending] = deque()
        self._change: _Change | None = None
        """A change whose records take several turns."""
        self._waiting: deque[tuple[Callable[[Controller], ControllerDecision[Any]], Proposal[Any]]] = deque()
        """Proposals that wait until the change is written, others are committed, or this node is active."""
        self.on_offline: Callable[[], None] = lambda: None
        self.on_activity_changed: Callable[[bool], None] = lambda is_active: None
        """Called when this node becomes the active controller, before its first decision, and when it ceases to be."""
        self.refusal_of_new_partitions: Callable[[], str | None] = lambda: None
        """Returns the reason why no partition can be created now, or None."""
        self.next_turn: Callable[[Callable[[], None]], object] = self._in_a_later_turn
        quorum.on_committed = self._commit
        quorum.on_restored = self._restore
        quorum.on_activity_changed = self._activity_changed
        quorum.on_offline = self._went_offline
        self._note_repairs(replay)

    def _note_repairs(self, replay: Replay) -> None:
        log, recovered = self._quorum.log, replay.recovered
        if recovered.damage:
            self._notice(
                f"{log.folder}: cut {recovered.cut_bytes} bytes behind offset {log.end_offset} ({recovered.damage})"
            )
        for damage in replay.damaged_snapshots:
            self._notice(f"a metadata snapshot is damaged and was passed over: {damage}")

    def start(self) -> None:
        """Take part in the quorum. Earlier proposals wait until this node is active, unless it can never be."""
        self._quorum.start()

    @property
    def image(self) -> MetadataImage:
        """The committed image. It stays the same object for the life of the node."""
        return self._metadata.image

    @property
    def is_active(self) -> bool:
        """True while this node is the active controller, which alone decides."""
        return self._controller is not None

    @property
    def active_controller(self) -> NodeId | None:
        """The node of the active controller as far as this node knows."""
        return self._quorum.leader

    @property
    def quorum(self) -> MetadataQuorum:
        """This node's replica of the metadata log."""
        return self._quorum

    @property
    def term(self) -> int:
        return self._quorum.term

    @property
    def offline(self) -> str | None:
        """Reason why metadata cannot be changed until the next start, or None."""
        return self._quorum.offline

    @property
    def recovery_point(self) -> int:
        """The recovery point for the checkpoint of the log directory."""
        return self._quorum.log.recovery_point

    def subscribe(self, on_image_change: Subscriber) -> None:
        """Call back with the changes of every commit, after they are in `image` and before any response is sent."""
        self._metadata.subscribe(on_image_change)

    def when_applied(self, offset: int, then: Callable[[], None]) -> None:
        """Call back when the image contains every entry below `offset`; at once if it does already."""
        self._metadata.when_applied(offset, then)

    def configure(self, settings: ControllerSettings) -> None:
        """Use changed settings from the next proposal on."""
        self._settings = settings
        if self._controller is not None:
            self._controller.settings = settings

    # Commands

    def create_topics(
        self, topics: Sequence[CreatableTopic], *, validate_only: bool = False
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

    def heartbeat(
        self, beat: BrokerHeartbeat, *, moves_are_seen: Callable[[], bool] = lambda: True
    ) -> Proposal[BrokerState]:
        return self.propose(lambda controller: controller.heartbeat(beat, moves_are_seen=moves_are_seen))

    def fence_broker(self, node_id: NodeId, broker_epoch: int) -> Proposal[BrokerResult]:
        return self.propose(lambda controller: controller.fence_broker(node_id, broker_epoch))

    def set_impaired(self, node_id: NodeId, broker_epoch: int, *, impaired: bool) -> Proposal[bool]:
        return self.propose(lambda controller: controller.set_impaired(node_id, broker_epoch, impaired=impaired))

    def set_promotion(self, node_id: NodeId, *, allowed: bool) -> Proposal[None]:
        return self.propose(lambda controller: controller.set_promotion(node_id, allowed=allowed))

    def unregister_broker(self, node_id: NodeId) -> Proposal[BrokerResult]:
        return self.propose(lambda controller: controller.unregister_broker(node_id))

    def alter_isrs(self, alteration: IsrAlteration) -> Proposal[IsrResults]:
        return self.propose(lambda controller: controller.alter_isrs(alteration))

    def elect_leaders(
        self, election: Election, wanted: Sequence[tuple[str, Sequence[int]]] | None
    ) -> Proposal[tuple[ElectionResult, ...]]:
        return self.propose(lambda controller: controller.elect_leaders(election, wanted))

    def reassign(
        self, wanted: Sequence[WantedReplicas], *, allow_factor_change: bool
    ) -> Proposal[tuple[ReassignmentResult, ...]]:
        return self.propose(lambda controller: controller.reassign(wanted, allow_factor_change=allow_factor_change))

    def raise_internal_topics(self) -> Proposal[int]:
        return self.propose(lambda controller: controller.raise_internal_topics())

    def recover(self, reports: LogEndReports) -> Proposal[tuple[str, ...]]:
        return self.propose(lambda controller: controller.recover(reports))

    def exclude_faulty(
        self, node_id: NodeId, broker_epoch: int, faulty: Sequence[FaultyReplica]
    ) -> Proposal[BrokerResult]:
        return self.propose(lambda controller: controller.exclude_faulty(node_id, broker_epoch, faulty))

    def balance_leaders(self, topics: Sequence[str]) -> Proposal[int]:
        return self.propose(lambda controller: controller.balance_leaders(topics))

    def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> Proposal[tuple[FeatureResult, ...]]:
        return self.propose(lambda controller: controller.update_features(updates, validate_only=validate_only))

    def alter_credentials(
        self, added: Sequence[NewCredential], removed: Sequence[CredentialToRemove], *, new_secret: bytes
    ) -> Proposal[tuple[CredentialResult, ...]]:
        return self.propose(lambda controller: controller.alter_credentials(added, removed, new_secret=new_secret))

    def create_rules(self, rules: Sequence[AccessRule]) -> Proposal[tuple[RuleResult, ...]]:
        rule_ids = [self._entropy.random_bytes(RULE_ID_BYTES) for _ in rules]
        return self.propose(lambda controller: controller.create_rules(rules, rule_ids))

    def delete_rules(self, filters: Sequence[RuleFilter]) -> Proposal[tuple[DeletedRules, ...]]:
        return self.propose(lambda controller: controller.delete_rules(filters))

    def alter_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> Proposal[tuple[QuotaResult, ...]]:
        return self.propose(lambda controller: controller.alter_quotas(alterations, validate_only=validate_only))

    def remove_expired_tokens(self, now_ms: int) -> None:
        """Remove delegation tokens that have expired, if this node is the active controller."""
        if self.is_active:
            self.propose(lambda controller: controller.remove_expired_tokens(now_ms=now_ms))

    # Proposals

    def propose(self, decide: Callable[[Controller], ControllerDecision[Response]]) -> Proposal[Response]:
        """Decide now, on everything appended so far; the response comes when its records are committed."""
        if self.offline is not None:
            return self._refused(self.offline)
        proposal: Proposal[Response] = Proposal()
        if len(self._pending) + len(self._waiting) >= PROPOSALS_PENDING_MAX:
            message = f"{PROPOSALS_PENDING_MAX} metadata changes are waiting to be committed; retry later"
            self._fail_later(proposal, ProposalFailed(ErrorCode.REQUEST_TIMED_OUT, message))
        elif self._controller is None and not self._quorum.is_electing_itself:
            self._fail_later(proposal, self._not_controller())
        elif self._controller is None or self._change is not None or self._quorum.is_full:
            self._waiting.append((decide, proposal))
        else:
            self._decide(decide, proposal)
        return proposal

    def _not_controller(self) -> ProposalFailed:
        leader = self._quorum.leader
        known = "no active controller is known" if leader is None else f"the active controller is node {leader}"
        return ProposalFailed(ErrorCode.NOT_CONTROLLER, f"this node is not the active controller; {known}")

    def _decide(self, decide: Callable[[Controller], ControllerDecision[Any]], proposal: Proposal[Any]) -> None:
        self._change = change = _Change(proposal)
        change.steps = self._steps(change, decide)
        self._continue(change)

    def _continue(self, change: _Change) -> None:
        if change is not self._change:
            return  # it was given up
        try:
            for _ in change.steps:
                self.next_turn(lambda: self._continue_with_others(change))
                return
        except Exception as error:  # an internal error must not block all later changes
            if change is self._change:
                self._change = None
                failure = ProposalFailed(ErrorCode.UNKNOWN_SERVER_ERROR, f"metadata change failed: {error}")
                self._fail_change(change, failure)
            self.next_turn(self._decide_waiting)
            raise
        if change is self._change:
            self._change = None

    def _continue_with_others(self, change: _Change) -> None:
        self._continue(change)
        self._decide_waiting()

    def _decide_waiting(self) -> None:
        while self._waiting and self._change is None and self._controller is not None and not self._quorum.is_full:
            self._decide(*self._waiting.popleft())

    def _steps(self, change: _Change, decide: Callable[[Controller], ControllerDecision[Any]]) -> Iterator[None]:
        """Decide, encode, append and apply; pauses when a turn has done enough."""
        controller, proposal = self._controller, change.proposal
        assert controller is not None and proposal is not None, "only the active controller decides"  # noqa: PT018
        controller.image.version = self._quorum.end_offset  # not every entry of the log has records
        decision = decide(controller)
        records = decision.records
        if not records:
            change.proposal = None
            self._answer_in_order(proposal, decision.response)
            return
        parts = [records[first : first + RECORDS_PER_TURN] for first in range(0, len(records), RECORDS_PER_TURN)]
        builder = ChangeBuilder(controller.image.metadata_version)
        for number, part in enumerate(parts):
            if number:
                yield
            builder.add(part)
        end_offset = self._append(builder.build(), change)
        if end_offset is None:
            return
        change.proposal = None
        self._pending.append(_Pending(end_offset, records, proposal, decision.response))
        for number, part in enumerate(parts):
            if number:
                yield
            for record in part:
                controller.apply(record)
        controller.image.version = end_offset

    def _answer_in_order(self, proposal: Proposal[Any], response: object) -> None:
        """Respond to a proposal without records in a later turn, once the records that it saw are committed."""
        if self._pending:
            self._pending.append(_Pending(self._pending[-1].end_offset, (), proposal, response))
        else:
            self._in_a_later_turn(lambda: proposal.complete(response))

    def _append(self, payload: bytes, change: _Change) -> int | None:
        """Return the offset after the change; None if it was not appended, and the proposal failed."""
        try:
            return self._quorum.append(payload)
        except AppendRefused as refused:
            code = _REFUSALS.get(refused.reason, ErrorCode.NOT_CONTROLLER)
            self._fail_change(change, ProposalFailed(code, f"metadata cannot be changed: {refused}"))
        except OSError as error:
            message = f"metadata cannot be written: {error}"
            self._fail_change(change, ProposalFailed(ErrorCode.KAFKA_STORAGE_ERROR, message))
        return None

    def _refused(self, reason: str) -> Proposal[Any]:
        """Fail a proposal that was not appended; this response, too, comes in a later turn."""
        proposal: Proposal[Any] = Proposal()
        self._fail_later(proposal, ProposalFailed(ErrorCode.KAFKA_STORAGE_ERROR, reason))
        return proposal

    def _fail_later(self, proposal: Proposal[Any], failure: ProposalFailed) -> None:
        self._in_a_later_turn(lambda: proposal.complete(failure))

    def _in_a_later_turn(self, call: Callable[[], None]) -> None:
        self._spawner.submit(_nothing, lambda _result, _error: call(), Lane.METADATA)

    # Commits

    def _commit(self, entries: tuple[LogEntry, ...]) -> None:
        answered: list[_Pending] = []
        while self._pending and self._pending[0].end_offset <= entries[-1].index:
            answered.append(self._pending.popleft())
        own_records = {pending.end_offset: pending.records for pending in answered if pending.records}
        try:
            calls = self._metadata.apply(entries, own_records)
        except ProtocolError as wrong:
            self._pending.extendleft(reversed(answered))
            self._quorum.stop(str(MetadataDamaged(self._quorum.log.folder, str(wrong))))
            return
        calls.insert(0, self._snapshots.take_if_due)
        calls += [partial(pending.proposal.complete, pending.response) for pending in answered]
        calls += [*self._metadata.take_reached(), self._decide_waiting]
        call_all(calls)

    def _restore(self, image: MetadataImage) -> None:
        """Continue from a snapshot that the leader sent, because this node lacks entries that the leader dropped."""
        call_all([*self._metadata.restore(image), *self._metadata.take_reached()])

    def _activity_changed(self) -> None:
        if self._quorum.is_active:
            self._controller = Controller(self.image.copy(), self._settings)
            self.on_activity_changed(True)
            self._decide_waiting()
        else:
            self._resign()
            self.on_activity_changed(False)

    def _resign(self) -> None:
        """Forget everything that is not committed: another controller may decide otherwise."""
        self._controller = None
        failure = self._not_controller()
        self._fail_pending(failure)
        if not self._quorum.is_electing_itself:
            self._fail_waiting(failure)

    def _went_offline(self, reason: str) -> None:
        """Fail all changes; the committed metadata can still be read."""
        self._controller = None
        failure = ProposalFailed(ErrorCode.KAFKA_STORAGE_ERROR, reason)
        self._fail_pending(failure)
        self._fail_waiting(failure)
        self.on_offline()

    def _fail_pending(self, failure: ProposalFailed) -> None:
        """Fail proposals that are being written or are in the log."""
        while self._pending:
            self._fail_later(self._pending.popleft().proposal, failure)
        change, self._change = self._change, None
        if change is not None:
            self._fail_change(change, failure)

    def _fail_change(self, change: _Change, failure: ProposalFailed) -> None:
        """Fail a change, unless it is pending or has failed already."""
        if change.proposal is not None:
            self._fail_later(change.proposal, failure)
            change.proposal = None

    def _fail_waiting(self, failure: ProposalFailed) -> None:
        while self._waiting:
            self._fail_later(self._waiting.popleft()[1], failure)

    def close(self, *, clean: bool = True) -> None:
        """Sync the proposals that are not committed, without responses. This is the last work of the node."""
        self._pending.clear()
        self._quorum.log.close(clean=clean and self.offline is None)
