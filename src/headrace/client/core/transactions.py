"""A producer's transactions: its identity from the coordinator, the partitions in them, offsets, and their end.

The rules of KIP-98 as every broker serves them: a partition is added before its first batch is sent, and an epoch
fences whoever used the same transactional id before. What goes wrong is either temporary, or ends the transaction
(abort it and begin another), or ends the producer (make a new one).
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import partial
from typing import Any

from headrace.client.core.admin.routing import by_topic
from headrace.client.core.calls import Call, Errand, Operation, Pause
from headrace.client.core.cluster import Cluster
from headrace.client.core.groups.coordinator import COORDINATOR_LANE, MOVED_ERRORS, Coordinator, CoordinatorKind
from headrace.client.errors import BrokerError, ClientError, InvalidArgument, ProducerFenced, TransactionFailed
from headrace.client.types import GroupIdentity, OffsetAndMetadata, PreparedTransaction
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.model.ids import TopicPartition
from headrace.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    txn_offset_commit,
)

ATTEMPTS_MAX = 1_000
"""A deadline ends the attempts before that."""

_CLIENTS_ADD_PARTITIONS_MAX_VERSION = 3
_WITHOUT_EPOCH_BUMP_MAX_VERSION = 4
_GROUP_MEMBERS_FROM_VERSION = 3
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
    """Something in it failed: it can only be aborted."""
    AWAY = "handed over"
    """Somebody else ends it; the producer is of no more use, for its next identity would abort it."""
    BROKEN = "broken"


class Transactions:
    def __init__(self, transactional_id: str, cluster: Cluster, *, timeout_ms: int, retry_pause_ms: float) -> None:
        self.state = State.NEW
        self.producer_id = self.producer_epoch = -1
        self.error: ClientError | None = None
        """Why it is doomed or broken."""
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

    @property
    def is_new(self) -> bool:
        """Whether it has no identity yet."""
        return self.state == State.NEW

    def begin(self) -> None:
        if self.state == State.BROKEN:
            raise self._broken()
        if self.state == State.AWAY:
            raise InvalidArgument("the producer's transaction was handed over: make another producer, with another id")
        if self.state != State.READY:
            raise InvalidArgument("a transaction is open already: commit or abort it first")
        self.state, self.error = State.OPEN, None

    def check_may_send(self) -> None:
        if self.state == State.BROKEN:
            raise self._broken()
        if self.state == State.DOOMED:
            raise TransactionFailed(f"the transaction can only be aborted: {self.error}") from self.error
        if self.state != State.OPEN:
            raise InvalidArgument("a transactional producer sends within `with producer.transaction():`")

    def check_may_commit(self) -> None:
        self.check_may_send()

    def _broken(self) -> ClientError:
        return self.error or ProducerFenced("the producer cannot go on: make a new one")

    def hand_over(self) -> PreparedTransaction:
        """Leave the transaction to somebody else; all batches are settled before this is called."""
        self.check_may_commit()
        self.state = State.AWAY
        return PreparedTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            partitions=tuple(sorted(self._added)),
            has_offsets=self._has_offsets,
        )

    def includes(self, partition: TopicPartition) -> bool:
        """Whether batches may be sent there; a new partition is added first."""
        if partition in self._added:
            return True
        self._to_add.add(partition)
        return False

    def batch_failed(self, error: ClientError, *, is_numbered: bool) -> None:
        """A batch of the transaction was given up; one that had its numbers leaves a gap."""
        if self.state in (State.OPEN, State.DOOMED):
            self._fail(error)
            self._needs_new_epoch = self._needs_new_epoch or is_numbered

    def poll(self, now_ms: float) -> tuple[list[Errand], float]:
        """The call that adds the partitions of waiting batches."""
        if not self._to_add or self._adds or self.state != State.OPEN:
            return [], float("inf")
        errands, wakeup_ms = self._coordinator.poll(now_ms)
        node = self._coordinator.node
        if self._coordinator.is_hopeless():
            assert self._coordinator.trouble is not None
            self._fail(self._coordinator.trouble)
        elif node is not None and self._add_ms <= now_ms:
            self._adds = True
            adding = frozenset(self._to_add)
            errands.append(Errand(self._add_call(adding, node), partial(self._partitions_added, node, adding)))
        elif node is not None:
            wakeup_ms = min(wakeup_ms, self._add_ms)
        return errands, wakeup_ms

    def _add_call(self, partitions: Iterable[TopicPartition], node: int) -> Call:
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=tuple(
                add_partitions_to_txn.AddPartitionsToTxnRequestTopic(name=topic, partitions=tuple(indexes))
                for topic, indexes in by_topic(sorted(partitions)).items()
            ),
        )
        return Call(
            add_partitions_to_txn,
            request,
            node,
            max_version=_CLIENTS_ADD_PARTITIONS_MAX_VERSION,
            lane=COORDINATOR_LANE,
        )

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
        else:
            wrong = next((code for code in codes if code not in RETRIABLE and code), None)
            if wrong is not None and wrong != ErrorCode.OPERATION_NOT_ATTEMPTED:
                self._refused(wrong, "partitions cannot be added to the transaction")

    # Operations

    def initialize(self) -> Operation[None]:
        """Become the one producer of this transactional id: others are fenced, their open transaction is aborted."""
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms
        )
        reply = yield from self._ask(Call(init_producer_id, request), "no producer id")
        self.producer_id, self.producer_epoch = reply.producer_id, reply.producer_epoch
        self._needs_new_epoch = False
        self.state = State.READY

    def end(self, *, commit: bool) -> Operation[None]:
        """Commit or abort what was sent; all batches are settled before this is called."""
        if commit:
            self.check_may_commit()
        elif self.state == State.BROKEN:
            raise self._broken()
        elif self.state not in (State.OPEN, State.DOOMED):
            raise InvalidArgument("there is no transaction to abort")
        if self._added or self._has_offsets:
            request = end_txn.EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                committed=commit,
            )
            call = Call(end_txn, request, max_version=_WITHOUT_EPOCH_BUMP_MAX_VERSION)
            yield from self._ask(call, f"the transaction cannot be {'committed' if commit else 'aborted'}")
        self._added.clear()
        self._to_add.clear()
        self._has_offsets = False
        self.state, self.error = State.READY, None
        if self._needs_new_epoch:
            yield from self.initialize()  # Numbers were left out: they begin again under another epoch (KIP-360).

    def add_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupIdentity) -> Operation[None]:
        """Commit a group's offsets with the transaction: they count if and only if it is committed."""
        self.check_may_send()
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            group_id=group.group_id,
        )
        call = Call(add_offsets_to_txn, request, max_version=3)
        yield from self._ask(call, "offsets cannot be added to the transaction")
        self._has_offsets = True
        coordinator = Coordinator(
            CoordinatorKind.GROUP, group.group_id, self._cluster, retry_pause_ms=self._retry_pause_ms
        )
        commit = _offsets_call(self, offsets, group)
        yield from self._ask(commit, "the offsets are not in the transaction", coordinator=coordinator)

    def _ask(self, call: Call, what: str, *, coordinator: Coordinator | None = None) -> Operation[Any]:
        """The answer of a coordinator that has no error; others doom the transaction or break the producer."""
        coordinator = coordinator or self._coordinator
        trouble: ClientError | None = None
        for _ in range(ATTEMPTS_MAX):
            node = yield from coordinator.find()
            (reply,) = yield (call._replace(target=node, lane=COORDINATOR_LANE),)
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
            yield Pause(self._retry_pause_ms)
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


def _offsets_call(
    transactions: Transactions, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupIdentity
) -> Call:
    request = txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=transactions.transactional_id,
        group_id=group.group_id,
        producer_id=transactions.producer_id,
        producer_epoch=transactions.producer_epoch,
        generation_id=group.generation,
        member_id=group.member_id,
        group_instance_id=group.instance_id,
        topics=tuple(
            txn_offset_commit.TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    txn_offset_commit.TxnOffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offsets[TopicPartition(topic, index)].offset,
                        committed_leader_epoch=offsets[TopicPartition(topic, index)].leader_epoch,
                        committed_metadata=offsets[TopicPartition(topic, index)].metadata,
                    )
                    for index in indexes
                ),
            )
            for topic, indexes in by_topic(offsets).items()
        ),
    )
    return Call(
        txn_offset_commit,
        request,
        min_version=_GROUP_MEMBERS_FROM_VERSION if group.member_id else 0,
        max_version=_WITHOUT_EPOCH_BUMP_MAX_VERSION,
    )
