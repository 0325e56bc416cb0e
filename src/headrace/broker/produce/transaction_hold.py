"""The hold for transactions: requests wait here until the coordinator confirms that they belong to a transaction.

The first batch of a transaction on a partition is appended only after the transaction coordinator has agreed, which it
does in a later turn (KIP-890). Until then the request is held with its bytes copied, because the receive buffer is
reused after the turn. Every later request of the same producer is held behind it, in order. A request whose
transactions are all open on their partitions is passed on at once.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.net.connection import Connection, ResponseSlot
from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.verification import CHECK_WAIT_MS_MAX, Verification
from headrace.broker.produce.admit import (
    Writer,
    is_transactional,
    may_use_transactional_id,
    topic_error,
    transaction_writer,
)
from headrace.broker.produce.answer import Confirmations
from headrace.broker.produce.append import NO_PARTITION_ERRORS, AppendStage, PartitionErrors
from headrace.broker.produce.parse import ProduceRequest, copied, record_bytes
from headrace.broker.services import AccessControl, PartitionLookup
from headrace.broker.timers import Timer, Timers
from headrace.model.errors import ErrorCode
from headrace.ports.disk import FileHandle
from headrace.wire.produce import ADD_TO_TRANSACTION_FROM, TOPIC_IDS_FROM
from headrace.wire.records.header import BASE_SEQUENCE, HEADER

TRANSACTIONS_HELD_BYTES_MAX = 128 << 20
"""Bytes of all Produce requests that wait for the coordinator to add their partitions to a transaction. Above it
requests are rejected with a retriable error.
"""
HELD_PER_PRODUCER_MAX = 256
CONCURRENT_RETRY_MS_MIN = 1
"""The pause before the coordinator is asked again while it completes the previous transaction; doubled each time."""
CONCURRENT_RETRY_MS_MAX = 20
CONCURRENT_WAIT_MS_MAX = 100
ABORTABLE_FROM = 11
"""The version of Produce from which clients know TRANSACTION_ABORTABLE."""

_NONE = ErrorCode.NONE
_RETRY_LATER = ErrorCode.NOT_ENOUGH_REPLICAS
"""An error that producers of every age retry without looking for another leader."""
_CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
_TRANSIENT = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)

Partition = tuple[str, int]
"""(topic, partition)."""


class TransactionChecks(Protocol):
    """The transaction coordinators, as this stage uses them."""

    def check(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[Partition],
        *,
        add: bool,
    ) -> Proposal[Mapping[Partition, ErrorCode]]:
        """Ask whether the partitions belong to the producer's ongoing transaction; with `add`, make them belong."""


class _Check(NamedTuple):
    """A partition of a request on which the transaction is not open yet."""

    topic_key: bytes
    partition: Replica
    verification: Verification


class HeldRequest:
    """A request with its response's place; one of the parked requests of its connection."""

    __slots__ = (
        "_retry_ms",
        "_timer",
        "_until_ms",
        "checks",
        "ended",
        "hold",
        "request",
        "slot",
        "writer",
    )

    def __init__(self, hold: "TransactionHold", request: ProduceRequest, writer: Writer, slot: ResponseSlot) -> None:
        self.hold = hold
        self.request = request
        self.writer = writer
        self.slot = slot
        self.checks: list[_Check] = []
        self.ended = False
        self._timer: Timer | None = None
        self._until_ms = 0.0
        self._retry_ms = CONCURRENT_RETRY_MS_MIN
        slot.connection.parked[self] = None

    def ask(self) -> None:
        """Ask the coordinator about the request, which is now the first of its producer."""
        timers = self.hold.timers
        wait_ms = min(self.request.timeout_ms, CHECK_WAIT_MS_MAX)
        self._timer = timers.after(wait_ms, lambda: self.hold.reject(self, _RETRY_LATER))
        self._until_ms = timers.now_ms() + CONCURRENT_WAIT_MS_MAX
        self._ask_again()

    def _ask_again(self) -> None:
        if self.ended:
            return
        assert self.request.transactional_id is not None
        partitions = [(check.partition.topic, check.partition.index) for check in self.checks]
        self.hold.transactions.check(
            self.request.transactional_id.decode(errors="replace"),
            self.writer.producer_id,
            self.writer.epoch,
            partitions,
            add=self.request.version >= ADD_TO_TRANSACTION_FROM,
        ).then(self._answered)

    def _answered(self, outcome: Mapping[tuple[str, int], ErrorCode] | ProposalFailed) -> None:
        if self.ended:
            return  # the request's time was over before the coordinator answered
        if isinstance(outcome, ProposalFailed):
            outcome = {(check.partition.topic, check.partition.index): outcome.code for check in self.checks}
        timers = self.hold.timers
        is_soon_over = self.request.version >= ADD_TO_TRANSACTION_FROM and _CONCURRENT in outcome.values()
        if is_soon_over and timers.now_ms() < self._until_ms:
            timers.after(self._retry_ms, self._ask_again)
            self._retry_ms = min(2 * self._retry_ms, CONCURRENT_RETRY_MS_MAX)
        else:
            self.hold.answered(self, outcome)

    def end(self) -> None:
        self.ended = True
        self.slot.connection.parked.pop(self, None)
        if self._timer is not None:
            self.hold.timers.cancel(self._timer)

    # ParkedRequest

    def abandon(self) -> None:
        """Do nothing: a request that was received completely is carried out although its client is gone."""

    def answer_now(self) -> None:
        self.hold.reject(self, _RETRY_LATER)

    def files(self) -> Iterator[FileHandle]:
        return iter(())


class TransactionHold:
    """The held requests of every producer, in order. The coordinator is asked about the first of each producer."""

    def __init__(
        self,
        next_stage: AppendStage,
        *,
        partitions: PartitionLookup,
        transactions: TransactionChecks,
        access: AccessControl,
        timers: Timers,
    ) -> None:
        self._next_stage = next_stage
        self._partitions = partitions
        self._access = access
        self.transactions = transactions
        self.timers = timers
        self._queues: dict[int, deque[HeldRequest]] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def accept(self, request: ProduceRequest, slot: ResponseSlot, error: ErrorCode = _NONE) -> Confirmations:
        """Pass the request on, or hold it and return no confirmations. A request with an error is never held."""
        if request.transactional_id is not None and error is _NONE:
            is_held = self._hold(request, slot, request.transactional_id)
            if is_held is True:
                return []
            error = is_held or _NONE
        return self._next_stage.accept(request, slot, error)

    def _hold(self, request: ProduceRequest, slot: ResponseSlot, transactional_id: bytes) -> bool | ErrorCode:
        """Hold the request if it has to wait, and return whether it does; an error if all of it is rejected."""
        writer = transaction_writer(request)
        if writer is None:
            return False
        if isinstance(writer, ErrorCode):
            return writer
        if not may_use_transactional_id(self._access, slot.connection, transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        queue = self._queues.get(writer.producer_id)
        checks = self._checks(request, writer, slot.connection) if queue is None else []
        if queue is None and not checks:
            return False
        is_crowded = queue is not None and len(queue) >= HELD_PER_PRODUCER_MAX
        if is_crowded or self.bytes + record_bytes(request) > TRANSACTIONS_HELD_BYTES_MAX:
            return _RETRY_LATER
        held = HeldRequest(self, copied(request), writer, slot)
        self.bytes += len(held.request.frame)
        if queue is None:
            self._queues[writer.producer_id] = deque((held,))
            held.checks = checks
            held.ask()
        else:
            queue.append(held)
        return True

    def _checks(self, request: ProduceRequest, writer: Writer, connection: Connection) -> list[_Check]:
        """Return the partitions on which the coordinator has to confirm the transaction first.

        Topics that the next stage rejects are left out: the transaction would end with a marker in each of them.
        """
        partitions = self._partitions
        find_topic = partitions.by_id.get if request.version >= TOPIC_IDS_FROM else partitions.by_name.get
        adds = request.version >= ADD_TO_TRANSACTION_FROM
        checks: list[_Check] = []
        for topic_key, record_sets in request.topics:
            local = find_topic(topic_key)
            if local is None or topic_error(self._access, connection, local, topic_key, request.version):
                continue
            for index, start, stop in record_sets:
                partition = partitions.partition_of(local, index)
                if isinstance(partition, Replica) and is_transactional(request, start, stop):
                    sequence = HEADER.unpack_from(request.frame, start)[BASE_SEQUENCE]
                    verification = partition.verifications.begin(*writer, sequence, add=adds)
                    if verification is not None:
                        checks.append(_Check(topic_key, partition, verification))
        return checks

    def answered(self, held: HeldRequest, outcome: Mapping[tuple[str, int], ErrorCode]) -> None:
        """Append the batches that the coordinator agrees to, then continue with the producer's next request."""
        errors: dict[tuple[bytes, int], ErrorCode] = {}
        for topic_key, partition, verification in held.checks:
            code = outcome.get((partition.topic, partition.index), ErrorCode.UNKNOWN_SERVER_ERROR)
            error = producer_error(code, held.request.version)
            if error is _NONE and not partition.verifications.still_counts(held.writer.producer_id, verification):
                error = ErrorCode.INVALID_TXN_STATE  # a marker has ended that transaction since
            verification.passed = error is _NONE
            if error is not _NONE:
                errors[topic_key, partition.index] = error
        self._leave(held)
        self._pass_on(held, partition_errors=errors)
        self._continue_after(held, failing=_RETRY_LATER in errors.values())

    def reject(self, held: HeldRequest, error: ErrorCode) -> None:
        """Reject the whole request with a retriable error, unless it has ended already."""
        if not held.ended:
            self._leave(held)
            self._pass_on(held, error)
            self._continue_after(held, failing=True)

    def _leave(self, held: HeldRequest) -> None:
        held.end()
        for check in held.checks:
            check.verification.is_asked = False
        self.bytes -= len(held.request.frame)
        self._queues[held.writer.producer_id].remove(held)

    def _continue_after(self, held: HeldRequest, *, failing: bool) -> None:
        """Continue with the producer's next requests; reject them if they follow one that has to be sent again."""
        producer_id = held.writer.producer_id
        queue = self._queues[producer_id]
        while queue:
            following = queue[0]
            if failing:
                self._leave(following)
                self._pass_on(following, _RETRY_LATER)
                continue
            following.checks = self._checks(following.request, following.writer, following.slot.connection)
            if following.checks:
                following.ask()
                return
            self._leave(following)
            self._pass_on(following)
        del self._queues[producer_id]

    def _pass_on(
        self, held: HeldRequest, error: ErrorCode = _NONE, partition_errors: PartitionErrors = NO_PARTITION_ERRORS
    ) -> None:
        self._next_stage.accept(held.request, held.slot, error, partition_errors)
        for _topic_key, partition, verification in held.checks:
            if verification.passed:
                partition.verifications.forget(held.writer.producer_id)


def producer_error(code: ErrorCode, version: int) -> ErrorCode:
    """Translate an error of the coordinator into one that producers understand at this version of Produce."""
    if code in _TRANSIENT or (code is _CONCURRENT and version < ADD_TO_TRANSACTION_FROM):
        return _RETRY_LATER
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_FROM:
        return ErrorCode.INVALID_TXN_STATE
    return code
