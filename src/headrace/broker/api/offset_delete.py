"""OffsetDelete (47): deletes committed offsets of topics that the group no longer reads."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import group_error, when_known
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import DeleteOffsets, DeleteOffsetsResult
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(request: OffsetDeleteRequest, ctx: RequestContext) -> object:
    topic_errors = {topic.name: _topic_error(ctx, topic.name) for topic in request.topics}

    def respond(outcome: DeleteOffsetsResult | ProposalFailed) -> OffsetDeleteResponse:
        result = DeleteOffsetsResult(outcome.code) if isinstance(outcome, ProposalFailed) else outcome
        return _response(ctx, request, topic_errors, result)

    error = group_error(ctx, Operation.DELETE, request.group_id)
    if error is not ErrorCode.NONE:
        return respond(DeleteOffsetsResult(error))
    command = DeleteOffsets(
        group=request.group_id,
        partitions=tuple(
            (topic.name, partition.partition_index)
            for topic in request.topics
            if topic_errors[topic.name] is ErrorCode.NONE
            for partition in topic.partitions
        ),
    )
    return when_known(ctx, ctx.groups.delete_offsets(command), respond)


def _topic_error(ctx: RequestContext, name: str) -> ErrorCode:
    if not ctx.authorized(Operation.READ, AclResourceType.TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE if name in ctx.image.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _response(
    ctx: RequestContext, request: OffsetDeleteRequest, topic_errors: dict[str, ErrorCode], result: DeleteOffsetsResult
) -> OffsetDeleteResponse:
    if result.error is not ErrorCode.NONE:
        return OffsetDeleteResponse(throttle_time_ms=ctx.throttle_time_ms, error_code=result.error)
    partition_errors = iter(result.partition_errors)
    topics = []
    for topic in request.topics:
        results = tuple(
            OffsetDeleteResponsePartition(
                partition_index=partition.partition_index,
                error_code=topic_errors[topic.name] or next(partition_errors),
            )
            for partition in topic.partitions
        )
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=results))
    return OffsetDeleteResponse(throttle_time_ms=ctx.throttle_time_ms, topics=tuple(topics))
