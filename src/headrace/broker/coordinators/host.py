"""Runs one coordinator on one led partition: loads it, lets it decide, appends its records, and sends its responses.

Records are staged in the turn in which the coordinator decides and are written with the other appends of that turn. A
response leaves when the high watermark has passed everything that was appended when it was decided. This holds for a
response that changed nothing too: it may depend on records that are not committed yet. When a write fails, or the
partition is lost, the host discards the coordinator, fails the waiting requests with a retriable error, and builds
another coordinator from the log.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.coordinators.record_applier import RecordApplier
from headrace.broker.coordinators.replay import PartitionReplay, ReplayFailed, ReplayQueue
from headrace.broker.logs import NodeLogger
from headrace.broker.net.connection import ResponseSlot
from headrace.broker.partitions.replica import Replica
from headrace.broker.timers import Timer, Timers
from headrace.core.coordination.machine import (
    Decision,
    Machine,
    Now,
    PendingProducer,
    RecordFormat,
    Ticket,
    TransactionalMachine,
)
from headrace.model.errors import ErrorCode
from headrace.ports.clock import Clock
from headrace.wire.records.builder import BatchBuilder
from headrace.wire.records.header import HeaderFields

RESPONSES_PER_TURN = 100
"""Responses that one coordinator sends in one turn; the rest follows in the next turns."""

TICKETS_MAX = 100_000
"""Requests to one coordinator that wait for a response."""

MachineT = TypeVar("MachineT", bound=Machine[Any])
RecordT = TypeVar("RecordT")
Response = TypeVar("Response")

Decide = Callable[[MachineT, Ticket, Now], Decision[RecordT]]

_LOADING = ProposalFailed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the coordinator is loading: try again")
_LOST = ProposalFailed(ErrorCode.NOT_COORDINATOR, "this broker is no longer the coordinator: find the new one")
_NOT_WRITTEN = ProposalFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the records could not be written: try again")
_TOO_LATE = ProposalFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE, "commit timed out; the outcome is unknown")
_TOO_FEW_REPLICAS = ProposalFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE, "too few replicas are in sync: try again")
_TOO_MANY = ProposalFailed(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the coordinator has {TICKETS_MAX} waiting requests: try again"
)


class Runtime(NamedTuple):
    """The services of the node that every host uses."""

    clock: Clock
    timers: Timers
    logger: NodeLogger
    replays: ReplayQueue


class _HeldResponse(NamedTuple):
    """A response that leaves when everything below `end_offset` is committed."""

    end_offset: int
    since_ms: float
    proposal: Proposal[Any]
    response: object


class CoordinatorHost(Generic[MachineT, RecordT]):
    def __init__(
        self,
        partition: Replica,
        *,
        new_machine: Callable[[], MachineT],
        record_format: RecordFormat[RecordT],
        runtime: Runtime,
        commit_wait_ms_max: int,
        on_loaded: Callable[[MachineT], None] = lambda machine: None,
    ) -> None:
        self.partition = partition
        self._new_machine = new_machine
        self._format = record_format
        self._clock, self._timers, self._logger, self._replays = runtime
        self.commit_wait_ms_max = commit_wait_ms_max
        self._on_loaded = on_loaded
        self.machine: MachineT | None = None
        """None while the coordinator is loaded, and forever after the partition is lost."""
        self._unavailable = _LOADING
        self._tickets: dict[Proposal[Any], None] = {}
        """Requests without a response, in the order of their arrival."""
        self._held: deque[_HeldResponse] = deque()
        self._releasing = False
        self._appended_end = 0
        self._timer: Timer | None = None
        self._armed_ms = 0.0
        self._commit_timer: Timer | None = None
        partition.on_marker = self._marker_staged
        partition.add_waiter(self)
        self._load()

    @property
    def lost(self) -> bool:
        return self._unavailable is _LOST

    def now(self) -> Now:
        return Now(self._clock.monotonic_ms(), self._clock.wall_ms())

    # Decisions

    def propose(self, decide: Decide[MachineT, RecordT]) -> Proposal[Any]:
        """Decide now, based on everything appended so far; the proposal completes when all of that is committed."""
        proposal: Proposal[Any] = Proposal()
        failure = self._refusal()
        if failure is not None:
            proposal.complete(failure)
            return proposal
        assert self.machine is not None
        self._tickets[proposal] = None
        self._apply_decision(decide(self.machine, proposal, self.now()))
        self._arm()
        return proposal

    def _refusal(self) -> ProposalFailed | None:
        if self.machine is None:
            return self._unavailable
        if not self.partition.role.acks_all_allowed:
            return _TOO_FEW_REPLICAS
        return _TOO_MANY if len(self._tickets) >= TICKETS_MAX else None

    def _apply_decision(self, decision: Decision[RecordT]) -> None:
        if decision.records:
            self._append(decision)
        if decision.responses:
            end_offset, since_ms = self.partition.log.staged_end_offset, self._clock.monotonic_ms()
            for ticket, response in decision.responses:
                assert isinstance(ticket, Proposal)
                assert response is not None, "a response must not be None"
                self._held.append(_HeldResponse(end_offset, since_ms, ticket, response))
            self._release()

    def _append(self, decision: Decision[RecordT]) -> None:
        wall_ms = self._clock.wall_ms()
        builder = BatchBuilder()
        for record in decision.records:
            builder.append(wall_ms, *self._format.encode(record))
        if decision.producer is None:
            batch = builder.build()
        else:
            batch = builder.build(**decision.producer._asdict(), transactional=True)
        self._appended_end = self.partition.append_own(batch, wall_ms)

    def append_with_response(self, batch: bytearray, fields: HeaderFields, wall_ms: int, slot: ResponseSlot) -> None:
        """HOT. Stage records that the coordinator has applied; the response in the slot is sent on their commit."""
        self._appended_end = self.partition.append_with_response(batch, fields, wall_ms, slot, self.commit_wait_ms_max)

    # Transactions

    def producer_error(self, producer: PendingProducer) -> ErrorCode:
        """Return an error if the log has records of a newer producer epoch, which fences this one."""
        known = self.partition.log.producers.get(producer.producer_id)
        stale = known is not None and producer.producer_epoch < known.epoch
        return ErrorCode.INVALID_PRODUCER_EPOCH if stale else ErrorCode.NONE

    def _marker_staged(self, producer_id: int, _producer_epoch: int, commit: bool) -> None:
        """Apply a transaction marker, called by the partition. A loading coordinator reads the marker from its log."""
        if self.machine is not None and isinstance(self.machine, TransactionalMachine):
            self.machine.end_transaction(producer_id, commit=commit)
            self._appended_end = self.partition.log.staged_end_offset

    # Commits

    def readable(self, partition: Replica, new_bytes: int) -> None:
        """React to the partition: its high watermark rose, a write failed, or another broker leads it."""
        if not partition.serves:
            self._lose()
        elif self.machine is not None and partition.log.staged_end_offset < self._appended_end:
            self._reload()
        elif self._held:
            self._release()

    def _release(self) -> None:
        """Send responses whose records are committed, a limited number per turn."""
        if self._releasing:
            return  # the next turn sends the rest
        high_watermark, held = self.partition.role.high_watermark, self._held
        for _ in range(RESPONSES_PER_TURN):
            if not held or held[0].end_offset > high_watermark:
                break
            due = held.popleft()
            self._respond(due.proposal, due.response)
        if held and held[0].end_offset <= high_watermark:
            self._releasing = True
            self._timers.next_turn(self._release_more)
        elif held and self._commit_timer is None:
            self._commit_timer = self._timers.at(held[0].since_ms + self.commit_wait_ms_max, self._fail_late)

    def _release_more(self) -> None:
        self._releasing = False
        self._release()

    def _fail_late(self) -> None:
        """Fail requests that have waited too long for a commit; their records stay appended."""
        self._commit_timer = None
        before_ms = self._clock.monotonic_ms() - self.commit_wait_ms_max
        while self._held and self._held[0].since_ms <= before_ms:
            self._respond(self._held.popleft().proposal, _TOO_LATE)
        self._release()

    def _respond(self, proposal: Proposal[Any], outcome: object) -> None:
        if proposal in self._tickets:  # else it has failed already
            del self._tickets[proposal]
            proposal.complete(outcome)

    def _fail_unheld(self, failure: ProposalFailed) -> None:
        """Fail the requests for which no response is held."""
        held = {each.proposal for each in self._held}
        for proposal in tuple(self._tickets):
            if proposal not in held:
                self._respond(proposal, failure)

    # Time

    def _arm(self) -> None:
        if self.machine is None:
            return
        due_ms = self.machine.next_deadline_ms()
        if due_ms is None or (self._timer is not None and self._armed_ms <= due_ms):
            return
        if self._timer is not None:
            self._timers.cancel(self._timer)
        self._armed_ms = due_ms
        self._timer = self._timers.at(due_ms, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self.machine is None:
            return
        self._apply_decision(self.machine.expire(self.now()))
        due_ms = self.machine.next_deadline_ms() if self.machine is not None else None
        if due_ms is not None and due_ms <= self._clock.monotonic_ms():
            self._timers.next_turn(self._expire)  # one turn does not process all that is due
        else:
            self._arm()

    # Loading

    def _load(self) -> None:
        self.machine = None
        self._unavailable = _LOADING
        machine = self._new_machine()
        applier = RecordApplier(machine, self._format, str(self.partition.log.topic_partition), self._logger)
        self._replays.add(PartitionReplay(self.partition, applier, lambda failure: self._loaded(machine, failure)))

    def _loaded(self, machine: MachineT, failure: ReplayFailed | None) -> None:
        if self.lost:
            return
        if failure is not None:
            partition = str(self.partition.log.topic_partition)
            self._logger.error("coordinator failed to load", partition=partition, reason=str(failure))
            self._lose()
            return
        self._appended_end = self.partition.log.end_offset
        machine.loaded(self.now())
        self.machine = machine
        self._arm()
        self._on_loaded(machine)

    def _reload(self) -> None:
        """Load the coordinator again after a failed write: its state contains records that the log does not."""
        end_offset = self.partition.log.end_offset
        self._held = deque(each for each in self._held if each.end_offset <= end_offset)
        self._fail_unheld(_NOT_WRITTEN)
        self._load()
        self._release()

    def _lose(self) -> None:
        self.machine = None
        self._unavailable = _LOST
        self._held.clear()
        self.partition.on_marker = None
        self.partition.remove_waiter(self)
        for timer in (self._timer, self._commit_timer):
            if timer is not None:
                self._timers.cancel(timer)
        self._timer = self._commit_timer = None
        self._fail_unheld(_LOST)

    def begin_stop(self) -> None:
        """Fail the requests that wait for other members, so that they do not delay the stop of the node."""
        self._fail_unheld(_LOST)
