"""OffsetCommit (8): how far a group, or a consumer without one, has read."""

from typing import NamedTuple

from headrace.broker.api.context import RequestContext
from headrace.broker.api.coordinating import ask_group, group_error, topic_name
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import Commit, Membership, OffsetToCommit
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

GROUP_NOT_FOUND_FROM = 9


class _Place(NamedTuple):
    """One partition of the request: refused here, or the next one of those that the group is asked about."""

    partition: int
    error: ErrorCode | None


def handle(request: OffsetCommitRequest, ctx: RequestContext) -> object:
    offsets: list[OffsetToCommit] = []
    places = [_places(ctx, topic, offsets) for topic in request.topics]
    error = group_error(ctx, Operation.READ, request.group_id)
    command = Commit(
        member=Membership(
            group=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
        ),
        offsets=tuple(offsets),
        retention_ms=request.retention_time_ms,
        unknown_group_error=ErrorCode.GROUP_ID_NOT_FOUND
        if ctx.version >= GROUP_NOT_FOUND_FROM
        else ErrorCode.ILLEGAL_GENERATION,
    )

    def respond(outcome: list[ErrorCode] | ProposalFailed) -> OffsetCommitResponse:
        return _response(ctx, request, places, outcome)

    if error is not ErrorCode.NONE:
        return respond(ProposalFailed(error, ""))
    if not offsets:
        return respond([])
    return ask_group(ctx, request.group_id, lambda groups, ticket, now: groups.commit(command, ticket, now), respond)


def _places(ctx: RequestContext, topic: OffsetCommitRequestTopic, offsets: list[OffsetToCommit]) -> list[_Place]:
    """What of a topic may be committed goes to `offsets`."""
    name = topic_name(ctx, topic.name, topic.topic_id)
    found = None if name is None else ctx.broker.image.topics.get(name)
    places = []
    for asked in topic.partitions:
        error = None
        if name is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not ctx.authorized(Operation.READ, ResourceType.TOPIC, name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif found is None or not 0 <= asked.partition_index < len(found.partitions):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            metadata = asked.committed_metadata or ""
            offset = asked.committed_offset
            offsets.append(OffsetToCommit(name, asked.partition_index, offset, asked.committed_leader_epoch, metadata))
        places.append(_Place(asked.partition_index, error))
    return places


def _response(
    ctx: RequestContext,
    request: OffsetCommitRequest,
    places: list[list[_Place]],
    outcome: list[ErrorCode] | ProposalFailed,
) -> OffsetCommitResponse:
    decided = iter(outcome) if not isinstance(outcome, ProposalFailed) else None
    topics = []
    for topic, asked in zip(request.topics, places, strict=True):
        partitions = []
        for partition, error in asked:
            if error is None:
                error = next(decided) if decided is not None else outcome.code  # type: ignore[union-attr]
            partitions.append(OffsetCommitResponsePartition(partition_index=partition, error_code=error))
        topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions)))
    return OffsetCommitResponse(throttle_time_ms=ctx.throttle_time_ms, topics=tuple(topics))
