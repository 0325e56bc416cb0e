"""AddPartitionsToTxn (24): adds partitions to a transaction, or verifies that they are part of it.

Up to version 3 a producer adds to its own transaction. Later versions are for brokers, which send several at once.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.authorization import stranger_refusal
from headrace.broker.api.support.coordinators import Result, ask_each, known, when_each_known
from headrace.broker.api.support.transactions import BUMPING_VERSION, PLAIN_VERSION, error_for_version, id_error
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.partitions.verification import CHECK_WAIT_MS_MAX
from headrace.core.controller.names import INTERNAL_TOPICS
from headrace.core.coordination.machine import PendingProducer
from headrace.core.transactions.commands import VerifyPartitions
from headrace.core.transactions.records import LeaderBoot, Partition
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnRequestTopic,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResponsePartition,
    AddPartitionsToTxnResponseTopic,
    AddPartitionsToTxnResponseTransaction,
)

TRANSACTIONS_MAX = 10_000
_BATCHED_FROM = 4
_FENCED_FROM = 2

Errors = Mapping[Partition, ErrorCode]


class _Asked(NamedTuple):
    """One transaction of the request."""

    transactional_id: str
    producer: PendingProducer
    verify_only: bool
    topics: tuple[AddPartitionsToTxnRequestTopic, ...]
    leader: LeaderBoot | None = None
    """The broker that asks, which leads the partitions."""

    def partitions(self) -> list[Partition]:
        return [(topic.name, index) for topic in self.topics for index in topic.partitions]


def handle(request: AddPartitionsToTxnRequest, ctx: RequestContext) -> object:
    if ctx.version >= _BATCHED_FROM:
        return _batched(request, ctx)
    producer = PendingProducer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    asked = _Asked(request.v3_and_below_transactional_id, producer, False, request.v3_and_below_topics)

    def respond(topics: list[tuple[AddPartitionsToTxnResponseTopic, ...]]) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            throttle_time_ms=ctx.throttle_time_ms, results_by_topic_v3_and_below=topics[0]
        )

    return _ask(ctx, [asked], lambda _asked, topics: topics, respond)


def _batched(request: AddPartitionsToTxnRequest, ctx: RequestContext) -> object:
    allowed = ctx.authorized(Operation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME)
    if not allowed or stranger_refusal(ctx, "partitions are added to transactions of others") is not None:
        return AddPartitionsToTxnResponse(
            throttle_time_ms=ctx.throttle_time_ms, error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )
    leader = LeaderBoot(request.leader_id, request.boot_id) if request.leader_id != NO_NODE else None
    asked = [
        _Asked(
            each.transactional_id,
            PendingProducer(each.producer_id, each.producer_epoch),
            each.verify_only,
            each.topics,
            leader,
        )
        for each in request.transactions[:TRANSACTIONS_MAX]
    ]

    def result_of(
        asked: _Asked, topics: tuple[AddPartitionsToTxnResponseTopic, ...]
    ) -> AddPartitionsToTxnResponseTransaction:
        return AddPartitionsToTxnResponseTransaction(transactional_id=asked.transactional_id, topic_results=topics)

    def respond(results: list[AddPartitionsToTxnResponseTransaction]) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(throttle_time_ms=ctx.throttle_time_ms, results_by_transaction=tuple(results))

    return _ask(ctx, asked, result_of, respond, request.metadata_offset)


def _ask(
    ctx: RequestContext,
    asked: list[_Asked],
    result_of: Callable[[_Asked, tuple[AddPartitionsToTxnResponseTopic, ...]], Result],
    respond: Callable[[list[Result]], object],
    metadata_offset: int = -1,
) -> object:
    transactions = ctx.transactions
    version = BUMPING_VERSION if ctx.version >= _BATCHED_FROM else PLAIN_VERSION

    def ask(each: _Asked) -> Proposal[Any]:
        refused = _refused(ctx, each)
        if refused is not None:
            return known(refused)
        if each.verify_only:
            return transactions.verify_partitions(
                VerifyPartitions(
                    transactional_id=each.transactional_id,
                    producer=each.producer,
                    partitions=each.partitions(),
                    leader=each.leader,
                )
            )
        return transactions.add_partitions(
            each.transactional_id, each.producer, each.partitions(), version, leader=each.leader
        )

    def answered(each: _Asked, outcome: Errors | ErrorCode | ProposalFailed) -> Result:
        return result_of(each, _topics(each, _errors(each, outcome), ctx.version))

    if ctx.image.version >= metadata_offset:
        return ask_each(ctx, asked, ask, answered, respond)
    # The record of the transaction must cover the metadata by which the leader knows its partitions.
    parked = ctx.park(
        timeout_ms=CHECK_WAIT_MS_MAX,
        on_timeout=lambda: AddPartitionsToTxnResponse(
            throttle_time_ms=ctx.throttle_time_ms, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE
        ),
    )

    def applied() -> None:
        if not parked.completed:
            when_each_known(ctx, asked, ask, answered, lambda results: parked.complete(respond(results)))

    ctx.controller.when_applied(metadata_offset, applied)
    return parked


def _refused(ctx: RequestContext, asked: _Asked) -> Errors | ErrorCode | None:
    """Return the errors of the request itself: one wrong partition makes the whole transaction fail."""
    if ctx.version < _BATCHED_FROM:
        error = id_error(ctx, asked.transactional_id)
        if error is not ErrorCode.NONE:
            return error
    elif not asked.transactional_id:
        return ErrorCode.INVALID_REQUEST
    wrong = {partition: error for partition in asked.partitions() if (error := _partition_error(ctx, partition))}
    if not wrong:
        return None
    return {partition: wrong.get(partition, ErrorCode.OPERATION_NOT_ATTEMPTED) for partition in asked.partitions()}


def _partition_error(ctx: RequestContext, partition: Partition) -> ErrorCode:
    topic, _ = partition
    # A broker with ClusterAction on the cluster adds what its producer was allowed to write.
    of_a_client = ctx.version < _BATCHED_FROM
    if of_a_client and (topic in INTERNAL_TOPICS or not ctx.authorized(Operation.WRITE, AclResourceType.TOPIC, topic)):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = ctx.image.partition(*partition) is not None
    return ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _errors(asked: _Asked, outcome: Errors | ErrorCode | ProposalFailed) -> Errors:
    if isinstance(outcome, ProposalFailed):
        outcome = outcome.code
    return dict.fromkeys(asked.partitions(), outcome) if isinstance(outcome, ErrorCode) else outcome


def _topics(asked: _Asked, errors: Errors, version: int) -> tuple[AddPartitionsToTxnResponseTopic, ...]:
    return tuple(
        AddPartitionsToTxnResponseTopic(
            name=topic.name,
            results_by_partition=tuple(
                AddPartitionsToTxnResponsePartition(
                    partition_index=index,
                    partition_error_code=error_for_version(
                        errors[topic.name, index], version, fenced_from=_FENCED_FROM
                    ),
                )
                for index in topic.partitions
            ),
        )
        for topic in asked.topics
    )
