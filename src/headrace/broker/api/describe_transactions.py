"""DescribeTransactions (65): state, producer and partitions of transactional ids."""

from typing import Any

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import ask_each, known
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.core.transactions.commands import DescribedTransaction
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTopic,
    DescribeTransactionsResponseTransactionState,
)

DESCRIBE_TRANSACTIONS_IDS_MAX = 10_000
"""Transactional ids of one DescribeTransactions request that are described. The others get INVALID_REQUEST: the
client must request them separately.
"""


def handle(request: DescribeTransactionsRequest, ctx: RequestContext) -> object:
    # An id that is requested twice is described once.
    ids = tuple(dict.fromkeys(request.transactional_ids))

    def ask(transactional_id: str) -> Proposal[Any]:
        if not ctx.authorized(Operation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, transactional_id):
            return known(ProposalFailed(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ""))
        if not transactional_id:
            return known(ProposalFailed(ErrorCode.INVALID_REQUEST, ""))
        return ctx.transactions.describe(transactional_id)

    def result_of(
        transactional_id: str, outcome: DescribedTransaction | ProposalFailed
    ) -> DescribeTransactionsResponseTransactionState:
        return _state(ctx, transactional_id, outcome)

    def respond(states: list[DescribeTransactionsResponseTransactionState]) -> DescribeTransactionsResponse:
        return DescribeTransactionsResponse(throttle_time_ms=ctx.throttle_time_ms, transaction_states=tuple(states))

    return ask_each(ctx, ids, ask, result_of, respond, items_max=DESCRIBE_TRANSACTIONS_IDS_MAX)


def _state(
    ctx: RequestContext, transactional_id: str, outcome: DescribedTransaction | ProposalFailed
) -> DescribeTransactionsResponseTransactionState:
    if isinstance(outcome, ProposalFailed):
        outcome = DescribedTransaction(outcome.code, transactional_id)
    topics: dict[str, list[int]] = {}
    for topic, partition in outcome.partitions:
        topics.setdefault(topic, []).append(partition)
    return DescribeTransactionsResponseTransactionState(
        error_code=outcome.error,
        transactional_id=transactional_id,
        transaction_state=outcome.state,
        transaction_timeout_ms=outcome.timeout_ms,
        transaction_start_time_ms=outcome.started_at_ms,
        producer_id=outcome.producer.producer_id,
        producer_epoch=outcome.producer.producer_epoch,
        topics=tuple(
            DescribeTransactionsResponseTopic(topic=topic, partitions=tuple(partitions))
            for topic, partitions in topics.items()
            if ctx.authorized(Operation.DESCRIBE, AclResourceType.TOPIC, topic)
        ),
    )
