"""Produce with a transactional id: requests that wait until the coordinator has said that they belong to a transaction.

The first batch of a transaction on a partition is appended only when its coordinator agrees, which is a question
answered in a later turn. Until then the request is held, and so is everything that its producer sends behind it, in
order; the bytes are copied, because the memory they were received in is used again. A request whose transactions are
all open here is not held and takes the way of any other.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.api.produce import Refusals, carry_out
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.net.connection import Answer, Connection
from headrace.broker.partitions.leader import LedPartition
from headrace.broker.partitions.verification import CHECK_WAIT_MS_MAX, Verification
from headrace.broker.timers import Timer
from headrace.core.controller.names import INTERNAL_TOPICS
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.ports.disk import FileHandle
from headrace.wire.produce import ADD_TO_TRANSACTION_FROM, TOPIC_IDS_FROM, ProduceRequest, copied
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_SEQUENCE,
    HEADER,
    HEADER_SIZE,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    TRANSACTIONAL_BIT,
)

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

HELD_BYTES_MAX = 128 << 20
"""Of all held requests together. Above it they are refused for now, and their producers send them again."""
HELD_PER_PRODUCER_MAX = 256
CONCURRENT_RETRY_MS_MIN = 1
"""Until the question is asked again when the transaction before is not quite over; twice as long each time."""
CONCURRENT_RETRY_MS_MAX = 20
CONCURRENT_WAIT_MS_MAX = 100
ABORTABLE_FROM = 11
"""The version of Produce whose clients know TRANSACTION_ABORTABLE."""

_NONE = ErrorCode.NONE
_FOR_NOW = ErrorCode.NOT_ENOUGH_REPLICAS
"""What producers of all ages take for: not now, try again, and need no other leader for it."""
_CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
_PASSES = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Writer(NamedTuple):
    producer_id: int
    epoch: int


class _Check(NamedTuple):
    """One partition of a request whose transaction is not open there."""

    topic_key: bytes
    partition: LedPartition
    verification: Verification


class HeldRequest:
    """One request and the place of its answer; a `ParkedRequest` of its connection."""

    __slots__ = (
        "_retry_ms",
        "_timer",
        "_until_ms",
        "answer",
        "checks",
        "connection",
        "ended",
        "held",
        "request",
        "writer",
    )

    def __init__(
        self, held: "HeldProduces", connection: Connection, request: ProduceRequest, writer: Writer, answer: Answer
    ) -> None:
        self.held = held
        self.connection = connection
        self.request = request
        self.writer = writer
        self.answer = answer
        self.checks: list[_Check] = []
        self.ended = False
        self._timer: Timer | None = None
        self._until_ms = 0.0
        self._retry_ms = CONCURRENT_RETRY_MS_MIN
        connection.parked[self] = None

    def ask(self) -> None:
        """Ask the coordinator, the head of its producer's queue."""
        broker = self.held.broker
        wait_ms = min(self.request.timeout_ms, CHECK_WAIT_MS_MAX)
        self._timer = broker.timers.after(wait_ms, lambda: self.held.refuse(self, _FOR_NOW))
        self._until_ms = broker.clock.monotonic_ms() + CONCURRENT_WAIT_MS_MAX
        self._ask_again()

    def _ask_again(self) -> None:
        if self.ended:
            return
        assert self.request.transactional_id is not None
        partitions = [(check.partition.topic, check.partition.index) for check in self.checks]
        self.held.broker.transactions.check(
            self.request.transactional_id.decode(errors="replace"),
            self.writer.producer_id,
            self.writer.epoch,
            partitions,
            add=self.request.version >= ADD_TO_TRANSACTION_FROM,
        ).then(self._answered)

    def _answered(self, outcome: Mapping[tuple[str, int], ErrorCode] | ProposalFailed) -> None:
        if self.ended:
            return  # too late
        if isinstance(outcome, ProposalFailed):
            outcome = {(check.partition.topic, check.partition.index): outcome.code for check in self.checks}
        broker = self.held.broker
        is_soon_over = self.request.version >= ADD_TO_TRANSACTION_FROM and _CONCURRENT in outcome.values()
        if is_soon_over and broker.clock.monotonic_ms() < self._until_ms:
            broker.timers.after(self._retry_ms, self._ask_again)
            self._retry_ms = min(2 * self._retry_ms, CONCURRENT_RETRY_MS_MAX)
        else:
            self.held.answered(self, outcome)

    def end(self) -> None:
        self.ended = True
        self.connection.parked.pop(self, None)
        if self._timer is not None:
            self.held.broker.timers.cancel(self._timer)

    # ParkedRequest

    def abandon(self) -> None:
        """The client is gone, its records are not: as with any request that was received whole."""

    def answer_now(self) -> None:
        self.held.refuse(self, _FOR_NOW)

    def files(self) -> Iterator[FileHandle]:
        return iter(())


class HeldProduces:
    """The held requests of every producer, in order; the coordinator is asked for the first of each."""

    def __init__(self, broker: "Broker") -> None:
        self.broker = broker
        self._queues: dict[int, deque[HeldRequest]] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def takes(self, connection: Connection, request: ProduceRequest, answer: Answer) -> bool | ErrorCode:
        """Whether the request is held now, until when its answer waits; an error if all of it is refused."""
        writer = _writer(request)
        if writer is None:
            return False
        if isinstance(writer, ErrorCode):
            return writer
        if not self._authorized(connection, request):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        queue = self._queues.get(writer.producer_id)
        checks = self._checks(request, writer) if queue is None else []
        if queue is None and not checks:
            return False
        size = sum(stop - start for _, record_sets in request.topics for _, start, stop in record_sets if start >= 0)
        if self.bytes + size > HELD_BYTES_MAX or (queue is not None and len(queue) >= HELD_PER_PRODUCER_MAX):
            return _FOR_NOW
        held = HeldRequest(self, connection, copied(request), writer, answer)
        self.bytes += len(held.request.frame)
        if queue is None:
            self._queues[writer.producer_id] = deque((held,))
            held.checks = checks
            held.ask()
        else:
            queue.append(held)
        return True

    def _authorized(self, connection: Connection, request: ProduceRequest) -> bool:
        access = self.broker.access
        if access.open_to_all:
            return True
        assert request.transactional_id is not None
        name = request.transactional_id.decode(errors="replace")
        return access.authorize(connection.principal, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)

    def _checks(self, request: ProduceRequest, writer: Writer) -> list[_Check]:
        """The partitions on which the transaction has to be verified first."""
        partitions = self.broker.partitions
        find_topic = partitions.by_id.get if request.version >= TOPIC_IDS_FROM else partitions.by_name.get
        adds = request.version >= ADD_TO_TRANSACTION_FROM
        checks: list[_Check] = []
        for topic_key, record_sets in request.topics:
            led = find_topic(topic_key)
            if led is None or led.name in INTERNAL_TOPICS:
                continue  # refused without a question
            for index, start, stop in record_sets:
                partition = partitions.partition_of(led, index)
                if isinstance(partition, LedPartition) and _is_transactional(request, start, stop):
                    sequence = HEADER.unpack_from(request.frame, start)[BASE_SEQUENCE]
                    verification = partition.verifications.begin(*writer, sequence, add=adds)
                    if verification is not None:
                        checks.append(_Check(topic_key, partition, verification))
        return checks

    def answered(self, held: HeldRequest, outcome: Mapping[tuple[str, int], ErrorCode]) -> None:
        """The coordinator has spoken: append what it agrees to, then go on with what came behind."""
        refusals: dict[tuple[bytes, int], ErrorCode] = {}
        for topic_key, partition, verification in held.checks:
            code = outcome.get((partition.topic, partition.index), ErrorCode.UNKNOWN_SERVER_ERROR)
            error = refusal_of(code, held.request.version)
            if error is _NONE and not partition.verifications.still_counts(held.writer.producer_id, verification):
                error = ErrorCode.INVALID_TXN_STATE  # the transaction the coordinator spoke of has ended since
            verification.passed = error is _NONE
            if error is not _NONE:
                refusals[topic_key, partition.index] = error
        self._leave(held)
        self._carry_out(held, refusals)
        self._go_on(held, failing=_FOR_NOW in refusals.values())

    def refuse(self, held: HeldRequest, error: ErrorCode) -> None:
        """All of it, for now."""
        if not held.ended:
            self._leave(held)
            self._carry_out(held, error)
            self._go_on(held, failing=True)

    def _leave(self, held: HeldRequest) -> None:
        held.end()
        for check in held.checks:
            check.verification.is_asked = False
        self.bytes -= len(held.request.frame)
        self._queues[held.writer.producer_id].remove(held)

    def _go_on(self, held: HeldRequest, *, failing: bool) -> None:
        """The next of the same producer. Behind one that is to come again, none can follow in sequence."""
        producer_id = held.writer.producer_id
        queue = self._queues[producer_id]
        while queue:
            following = queue[0]
            if failing:
                self._leave(following)
                self._carry_out(following, _FOR_NOW)
                continue
            following.checks = self._checks(following.request, following.writer)
            if following.checks:
                following.ask()
                return
            self._leave(following)
            self._carry_out(following, {})
        del self._queues[producer_id]

    def _carry_out(self, held: HeldRequest, refusals: Refusals) -> None:
        carry_out(self.broker, held.connection, held.request, refusals, held.answer)
        for _topic_key, partition, verification in held.checks:
            if verification.passed:
                partition.verifications.forget(held.writer.producer_id)
        held.connection.mark_dirty()


def refusal_of(code: ErrorCode, version: int) -> ErrorCode:
    """What a producer is told of what its coordinator said."""
    if code in _PASSES or (code is _CONCURRENT and version < ADD_TO_TRANSACTION_FROM):
        return _FOR_NOW
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_FROM:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _is_transactional(request: ProduceRequest, start: int, stop: int) -> bool:
    if start < 0 or stop - start < HEADER_SIZE:
        return False
    fields = HEADER.unpack_from(request.frame, start)
    return fields[PRODUCER_ID] >= 0 and bool(fields[ATTRIBUTES] & TRANSACTIONAL_BIT)


def _writer(request: ProduceRequest) -> Writer | ErrorCode | None:
    """Whose transaction the records belong to: there can be only one. None if they belong to none."""
    writer: Writer | None = None
    for _, record_sets in request.topics:
        for _, start, stop in record_sets:
            if _is_transactional(request, start, stop):
                fields = HEADER.unpack_from(request.frame, start)
                found = Writer(fields[PRODUCER_ID], fields[PRODUCER_EPOCH])
                if writer not in (None, found):
                    return ErrorCode.INVALID_PRODUCER_ID_MAPPING
                writer = found
    return writer
