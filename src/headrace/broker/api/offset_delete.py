"""OffsetDelete (47): forget what a group committed for topics that it does not read any more."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import ask_group, group_error
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(request: OffsetDeleteRequest, ctx: RequestContext) -> object:
    refused = {topic.name: _topic_error(ctx, topic.name) for topic in request.topics}
    doomed = [
        (topic.name, partition.partition_index)
        for topic in request.topics
        if refused[topic.name] is ErrorCode.NONE
        for partition in topic.partitions
    ]

    def respond(outcome: tuple[ErrorCode, list[ErrorCode]] | ProposalFailed) -> OffsetDeleteResponse:
        error, errors = (outcome.code, []) if isinstance(outcome, ProposalFailed) else outcome
        if error is not ErrorCode.NONE:
            return OffsetDeleteResponse(throttle_time_ms=ctx.throttle_time_ms, error_code=error)
        decided = iter(errors)
        topics = []
        for topic in request.topics:
            results = tuple(
                OffsetDeleteResponsePartition(
                    partition_index=partition.partition_index, error_code=refused[topic.name] or next(decided)
                )
                for partition in topic.partitions
            )
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=results))
        return OffsetDeleteResponse(throttle_time_ms=ctx.throttle_time_ms, topics=tuple(topics))

    error = group_error(ctx, Operation.DELETE, request.group_id)
    if error is not ErrorCode.NONE:
        return respond(ProposalFailed(error, ""))
    return ask_group(
        ctx,
        request.group_id,
        lambda groups, ticket, now: groups.delete_offsets(request.group_id, doomed, ticket, now),
        respond,
    )


def _topic_error(ctx: RequestContext, name: str) -> ErrorCode:
    if not ctx.authorized(Operation.READ, ResourceType.TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE if name in ctx.image.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
