"""TxnOffsetCommit (28): how far a group has read, as a part of a transaction: it counts when that is committed."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.offset_places import OffsetPlaces
from headrace.broker.api.support.coordinators import group_error, when_known
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.coordination.machine import Now, Producer, Ticket
from headrace.core.groups.commands import Commit, Membership
from headrace.core.groups.coordinator import GroupCoordinator
from headrace.core.groups.tables import GroupDecision
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_LOADING_KNOWN_FROM = 2
_ABORTABLE_KNOWN_FROM = 4
_PARTITION_ADDED_FROM = 5
"""From here on the partition of the group becomes a part of the transaction by the commit itself (KIP-890)."""


def handle(request: TxnOffsetCommitRequest, ctx: RequestContext) -> object:
    places = OffsetPlaces(ctx)
    for topic in request.topics:
        places.add_topic(topic.name, topic.partitions)

    def respond(outcome: list[ErrorCode] | ProposalFailed) -> TxnOffsetCommitResponse:
        return _response(ctx, request, places, outcome)

    error = _error(request, ctx)
    if error is not ErrorCode.NONE:
        return respond(ProposalFailed(error, ""))
    if not places.offsets:
        return respond([])
    producer = Producer(request.producer_id, request.producer_epoch)
    command = Commit(
        member=Membership(
            group=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id,
        ),
        offsets=tuple(places.offsets),
        retention_ms=-1,
        unknown_group_error=ErrorCode.ILLEGAL_GENERATION,
        producer=producer,
    )

    def decide(groups: GroupCoordinator, ticket: Ticket, now: Now) -> GroupDecision:
        return groups.commit(command, ticket, now)

    proposal = ctx.groups.propose_in_transaction(
        request.group_id,
        request.transactional_id,
        producer,
        decide,
        add=ctx.version >= _PARTITION_ADDED_FROM,
    )
    return when_known(ctx, proposal, respond)


def _error(request: TxnOffsetCommitRequest, ctx: RequestContext) -> ErrorCode:
    if not ctx.authorized(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return group_error(ctx, Operation.READ, request.group_id)


def _response(
    ctx: RequestContext,
    request: TxnOffsetCommitRequest,
    places: OffsetPlaces,
    outcome: list[ErrorCode] | ProposalFailed,
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(partition_index=partition, error_code=_known(error, ctx.version))
                    for partition, error in errors
                ),
            )
            for topic, errors in zip(request.topics, places.errors(outcome), strict=True)
        ),
    )


def _known(error: ErrorCode, version: int) -> ErrorCode:
    """The code for it that clients of the version understand."""
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < _LOADING_KNOWN_FROM:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_KNOWN_FROM:
        return ErrorCode.INVALID_TXN_STATE
    return error
