"""TxnOffsetCommit (28): commits offsets as part of a transaction; they take effect when the transaction commits."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.commit_partitions import CommitPartitions
from headrace.broker.api.support.coordinators import group_error, when_known
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.coordination.machine import PendingProducer
from headrace.core.groups.commands import Commit, MemberClaim
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_LOADING_UNDERSTOOD_FROM = 2
_ABORTABLE_UNDERSTOOD_FROM = 4
_PARTITION_ADDED_FROM = 5
"""From this version on the commit itself adds the group's partition to the transaction (KIP-890)."""


def handle(request: TxnOffsetCommitRequest, ctx: RequestContext) -> object:
    partitions = CommitPartitions(ctx)
    for topic in request.topics:
        partitions.add_topic(topic.name, topic.partitions)

    def respond(outcome: list[ErrorCode] | ProposalFailed) -> TxnOffsetCommitResponse:
        return _response(ctx, request, partitions, outcome)

    error = _error(request, ctx)
    if error is not ErrorCode.NONE:
        partitions.refuse(error)
    if not partitions.offsets:
        return respond([])
    command = Commit(
        member=MemberClaim(
            group=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id,
        ),
        offsets=tuple(partitions.offsets),
        retention_ms=-1,
        unknown_group_error=ErrorCode.ILLEGAL_GENERATION,
        producer=PendingProducer(request.producer_id, request.producer_epoch),
    )
    committed = ctx.groups.commit_offsets_in_transaction(
        request.transactional_id, command, add_partition=ctx.version >= _PARTITION_ADDED_FROM
    )
    return when_known(ctx, committed, respond)


def _error(request: TxnOffsetCommitRequest, ctx: RequestContext) -> ErrorCode:
    if not ctx.authorized(Operation.WRITE, AclResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return group_error(ctx, Operation.READ, request.group_id)


def _response(
    ctx: RequestContext,
    request: TxnOffsetCommitRequest,
    partitions: CommitPartitions,
    outcome: list[ErrorCode] | ProposalFailed,
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition, error_code=_understood(error, ctx.version)
                    )
                    for partition, error in errors
                ),
            )
            for topic, errors in zip(request.topics, partitions.errors(outcome), strict=True)
        ),
    )


def _understood(error: ErrorCode, version: int) -> ErrorCode:
    """Translate an error into a code that clients of the version understand."""
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < _LOADING_UNDERSTOOD_FROM:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_UNDERSTOOD_FROM:
        return ErrorCode.INVALID_TXN_STATE
    return error
