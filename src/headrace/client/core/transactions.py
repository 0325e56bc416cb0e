"""The transactions of a producer: its identity, their partitions and offsets, and their ends.

By KIP-98, a producer epoch fences earlier producers of the transactional id. On clusters with transaction.version 2
(KIP-890), the leaders add partitions to the transaction, and the response to its end has the next producer epoch. On
others, the producer adds a partition before it sends the first batch to it. An error is temporary, or ends the
transaction (abort it and begin another), or ends the producer (make a new one).
"""

from collections.abc import Mapping
from enum import Enum
from functools import partial
from typing import Any

from headrace.client.core.calls import Call, Operation, Pause, PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.core.groups.coordinator import COORDINATOR_CHANNEL, MOVED_ERRORS, Coordinator, CoordinatorKind
from headrace.client.core.produce_requests import CONCURRENT_PAUSE_MS
from headrace.client.core.transaction_calls import (
    add_offsets_call,
    add_partitions_call,
    end_call,
    is_implicit,
    offsets_call,
)
from headrace.client.errors import BrokerError, ClientError, InvalidArgument, ProducerFenced, TransactionFailed
from headrace.client.types import GroupIdentity, OffsetAndMetadata, PreparedTransaction
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.model.ids import TopicPartition
from headrace.wire.messages import (
    init_producer_id,
    txn_offset_commit,
)

ATTEMPTS_MAX = 1_000
"""A safety limit; the deadline of the call ends the attempts earlier."""

_FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_FATAL = frozenset(
    {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


class State(Enum):
    NEW = "new"
    READY = "ready"
    OPEN = "open"
    DOOMED = "doomed"
    """A part of the transaction has failed: it can only be aborted."""
    AWAY = "handed over"
    """Another process ends the transaction. The producer cannot continue: its next identity would abort it."""
    BROKEN = "broken"


class TransactionManager:
    def __init__(self, transactional_id: str, cluster: Cluster, *, timeout_ms: int, retry_pause_ms: float) -> None:
        self.state = State.NEW
        self.producer_id = self.producer_epoch = -1
        self.error: ClientError | None = None
        """The reason why the transaction is doomed or the producer broken."""
        self.transactional_id = transactional_id
        self._cluster = cluster
        self._timeout_ms = timeout_ms
        self._retry_pause_ms = retry_pause_ms
        self._coordinator = Coordinator(
            CoordinatorKind.TRANSACTION, transactional_id, cluster, retry_pause_ms=retry_pause_ms
        )
        self._added: set[TopicPartition] = set()
        self._to_add: set[TopicPartition] = set()
        self._adds = False
        self._add_ms = 0.0
        self._has_offsets = False
        self._needs_new_epoch = False
        self._is_sealed = False
        """True if all records are delivered and the end has begun: a further record would be in no transaction."""
        self._under_way = 0
        self.is_ending = False
        """True if its end is in progress, possibly after its caller has stopped waiting."""
        self.is_implicit = False
        """True if the leaders add the partitions of this transaction (KIP-890)."""

    @property
    def is_new(self) -> bool:
        """Return whether the producer has no identity yet."""
        return self.state == State.NEW

    @property
    def is_busy(self) -> bool:
        """Return whether a request for an identity or offsets is in progress; its caller may have stopped waiting."""
        return self._under_way > 0

    @property
    def is_begun(self) -> bool:
        """Return whether there is a transaction to commit or abort."""
        return self.state in (State.OPEN, State.DOOMED)

    @property
    def is_lost(self) -> bool:
        """Return whether unsent records can no longer be committed."""
        return self.state in (State.DOOMED, State.BROKEN)

    def begin(self) -> None:
        if self.state == State.BROKEN:
            raise self._broken()
        if self.state == State.AWAY:
            raise InvalidArgument(
                "the producer's transaction was handed over: make another producer with another transactional id"
            )
        if self.state != State.READY:
            raise InvalidArgument("a transaction is open already: commit or abort it first")
        self.state, self.error, self._is_sealed = State.OPEN, None, False
        self.is_implicit = is_implicit(self._cluster)

    def adopt(self, prepared: PreparedTransaction) -> Operation[None]:
        """Continue a transaction that another process has begun and in which nothing is written yet."""
        if self.state != State.NEW:
            raise InvalidArgument("only a new producer can adopt a transaction: make another one")
        if prepared.transactional_id != self.transactional_id:
            raise InvalidArgument(
                f"the transaction belongs to {prepared.transactional_id!r}, not to {self.transactional_id!r}"
            )
        if prepared.partitions:
            raise InvalidArgument("the transaction has records, whose sequences are unknown: adopt an empty one")
        yield from self._coordinator.find()  # The connection also learns the features of the cluster.
        self.producer_id, self.producer_epoch = prepared.producer_id, prepared.producer_epoch
        self._has_offsets = prepared.has_offsets
        self.state = State.READY
        self.begin()

    def check_may_send(self) -> None:
        self.check_may_commit()
        if self._is_sealed:
            raise InvalidArgument("the transaction is being ended: send within the next one")

    def check_may_commit(self) -> None:
        if self.state == State.BROKEN:
            raise self._broken()
        if self.state == State.DOOMED:
            raise TransactionFailed(f"the transaction can only be aborted: {self.error}") from self.error
        if self.state != State.OPEN:
            raise InvalidArgument("a transactional producer sends within `with producer.transaction():`")

    def seal(self) -> None:
        """Accept no further records. The caller has awaited the delivery of all batches, and calls `end` next."""
        if self.is_ending:
            raise InvalidArgument("the transaction is being ended already: wait for that, or make another producer")
        self._is_sealed = self.is_ending = True

    def _broken(self) -> ClientError:
        return self.error or ProducerFenced("the producer cannot continue: make a new one")

    def hand_over(self) -> PreparedTransaction:
        """Hand the open transaction over to another process. The caller has awaited the delivery of all batches."""
        self.check_may_commit()
        self.state = State.AWAY
        return self._identified()

    def _identified(self) -> PreparedTransaction:
        return PreparedTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            partitions=tuple(sorted(self._added)),
            has_offsets=self._has_offsets,
        )

    def includes(self, partition: TopicPartition) -> bool:
        """Return whether batches may be sent to the partition; a new partition is added first."""
        if self.is_implicit:
            self._added.add(partition)
        if partition in self._added:
            return True
        self._to_add.add(partition)
        return False

    def batch_failed(self, error: ClientError, *, is_numbered: bool) -> None:
        """Note that a batch has failed; one that had sequences leaves a gap."""
        if self.state in (State.OPEN, State.DOOMED):
            self._fail(error)
            self._needs_new_epoch = self._needs_new_epoch or is_numbered

    def poll(self, now_ms: float) -> tuple[list[PendingCall], float]:
        """Return the call that adds the partitions of waiting batches."""
        if not self._to_add or self._adds or self.state != State.OPEN:
            return [], float("inf")
        calls, wakeup_ms = self._coordinator.poll(now_ms)
        node = self._coordinator.node
        if self._coordinator.has_failed():
            assert self._coordinator.trouble is not None
            self._fail(self._coordinator.trouble)
        elif node is not None and self._add_ms <= now_ms:
            self._adds = True
            adding = frozenset(self._to_add)
            call = add_partitions_call(self._identified(), adding, node)
            calls.append(PendingCall(call, partial(self._partitions_added, node, adding)))
        elif node is not None:
            wakeup_ms = min(wakeup_ms, self._add_ms)
        return calls, wakeup_ms

    def _partitions_added(self, node: int, adding: frozenset[TopicPartition], reply: Any, now_ms: float) -> None:
        self._adds = False
        self._add_ms = now_ms + self._retry_pause_ms
        if isinstance(reply, ClientError):
            self._coordinator.lost(node, now_ms)
            return
        codes = {
            each.partition_error_code
            for topic in reply.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        }
        if codes == {ErrorCode.NONE}:
            self._added |= adding
            self._to_add -= adding
            self._add_ms = now_ms
        elif codes & MOVED_ERRORS:
            self._coordinator.lost(node, now_ms)
        elif ErrorCode.CONCURRENT_TRANSACTIONS in codes:
            self._add_ms = now_ms + CONCURRENT_PAUSE_MS
        else:
            wrong = next((code for code in codes if code not in RETRIABLE and code), None)
            if wrong is not None and wrong != ErrorCode.OPERATION_NOT_ATTEMPTED:
                self._refused(wrong, "partitions cannot be added to the transaction")

    # Operations

    def _counted(self, operation: Operation[None]) -> Operation[None]:
        self._under_way += 1

        def counted() -> Operation[None]:
            try:
                yield from operation
            finally:
                self._under_way -= 1

        return counted()

    def initialize(self) -> Operation[None]:
        """Take the transactional id over: the coordinator fences other producers and aborts their open transaction."""
        return self._counted(self._initialize())

    def _initialize(self) -> Operation[None]:
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms
        )
        reply = yield from self._ask(Call(init_producer_id, request), "no producer id")
        self.producer_id, self.producer_epoch = reply.producer_id, reply.producer_epoch
        self._needs_new_epoch = False
        self.state = State.READY

    def end(self, *, commit: bool) -> Operation[None]:
        """Commit or abort the transaction, after `seal`."""
        try:
            yield from self._end(commit=commit)
        finally:
            self.is_ending = False

    def _end(self, *, commit: bool) -> Operation[None]:
        if commit:
            self.check_may_commit()
        elif self.state == State.BROKEN:
            raise self._broken()
        elif self.state not in (State.OPEN, State.DOOMED):
            raise InvalidArgument("there is no transaction to abort")
        if self._added or self._has_offsets:
            call = end_call(self._identified(), commit=commit, is_implicit=self.is_implicit)
            reply = yield from self._ask(call, f"the transaction cannot be {'committed' if commit else 'aborted'}")
            if self.is_implicit and reply.producer_id >= 0:
                self.producer_id, self.producer_epoch = reply.producer_id, reply.producer_epoch
                self._needs_new_epoch = False
        self._added.clear()
        self._to_add.clear()
        self._has_offsets = False
        self.state, self.error = State.READY, None
        if self._needs_new_epoch:
            yield from self._initialize()  # After a gap, sequences restart under a new producer epoch (KIP-360).

    def add_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupIdentity) -> Operation[None]:
        """Commit a group's offsets with the transaction: they take effect only if it is committed."""
        return self._counted(self._add_offsets(offsets, group))

    def _add_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupIdentity
    ) -> Operation[None]:
        self.check_may_send()
        if not self.is_implicit:
            call = add_offsets_call(self._identified(), group)
            yield from self._ask(call, "offsets cannot be added to the transaction")
        self._has_offsets = True
        coordinator = Coordinator(
            CoordinatorKind.GROUP, group.group_id, self._cluster, retry_pause_ms=self._retry_pause_ms
        )
        commit = offsets_call(self._identified(), offsets, group, is_implicit=self.is_implicit)
        yield from self._ask(commit, "the offsets could not be added to the transaction", coordinator=coordinator)

    def _ask(self, call: Call, what: str, *, coordinator: Coordinator | None = None) -> Operation[Any]:
        """Send the call until a response has no error; a fatal error dooms the transaction or breaks the producer."""
        coordinator = coordinator or self._coordinator
        trouble: ClientError | None = None
        for _ in range(ATTEMPTS_MAX):
            node = yield from coordinator.find()
            (reply,) = yield (call._replace(target=node, channel=COORDINATOR_CHANNEL),)
            if isinstance(reply, ClientError):
                trouble = reply
                coordinator.lost(node, 0.0)
            else:
                code = _first_error(reply)
                if not code:
                    return reply
                trouble = BrokerError(code, what)
                if code in MOVED_ERRORS:
                    coordinator.lost(node, 0.0)
                elif code not in RETRIABLE:
                    self._refused(code, what)
                    assert self.error is not None
                    raise self.error
            is_concurrent = isinstance(trouble, BrokerError) and trouble.code == ErrorCode.CONCURRENT_TRANSACTIONS
            yield Pause(CONCURRENT_PAUSE_MS if is_concurrent else self._retry_pause_ms)
        raise trouble or BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, what)

    def _refused(self, code: int, what: str) -> None:
        if code in _FENCED:
            self.state = State.BROKEN
            self.error = ProducerFenced(
                f'{what}: another producer with the transactional id "{self.transactional_id}" has taken over, or the '
                "transaction took longer than transaction_timeout_ms; make a new producer"
            )
        elif code in _FATAL:
            self.state, self.error = State.BROKEN, BrokerError(code, what)
        else:
            self._fail(BrokerError(code, what))

    def _fail(self, error: ClientError) -> None:
        if self.state == State.OPEN:
            self.state = State.DOOMED
        if self.error is None or self.state != State.BROKEN:
            self.error = error


def _first_error(reply: Any) -> int:
    if isinstance(reply, txn_offset_commit.TxnOffsetCommitResponse):
        return next((each.error_code for topic in reply.topics for each in topic.partitions if each.error_code), 0)
    code: int = reply.error_code
    return code
