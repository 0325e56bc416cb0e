"""DeleteTopics (20): deletes topics by name, and from version 6 also by id."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import split_by_access
from headrace.broker.api.support.mutation_quota import MutationQuota
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.commands import TopicResult, TopicToDelete
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicId
from headrace.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicsResponseTopic,
)

_IDS_FROM = 6
_DELETION_DISABLED_FROM = 3
_STRICT_QUOTA_FROM = 5


def handle(request: DeleteTopicsRequest, ctx: RequestContext) -> Parked:
    asked = (
        [TopicToDelete(name=topic.name, topic_id=TopicId(topic.topic_id)) for topic in request.topics]
        if ctx.version >= _IDS_FROM
        else [TopicToDelete(name=name) for name in request.topic_names]
    )
    allowed, others = split_by_access(asked, lambda topic: _allowed(ctx, topic))
    refused = [TopicResult(topic.name, topic.topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in others]
    quota = MutationQuota(ctx, strict_from=_STRICT_QUOTA_FROM)
    allowed, beyond = split_by_access(
        allowed, lambda topic: quota.admits(topic.name or topic.topic_id, _partition_count(ctx, topic))
    )
    refused += [quota.refusal(topic.name, topic.topic_id) for topic in beyond]
    proposal = ctx.controller.delete_topics(allowed)

    def respond(outcome: tuple[TopicResult, ...] | ProposalFailed) -> DeleteTopicsResponse:
        if isinstance(outcome, ProposalFailed):
            outcome = tuple(TopicResult(topic.name, topic.topic_id, outcome.code, outcome.message) for topic in allowed)
        else:
            quota.settle(outcome)
        return DeleteTopicsResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            responses=tuple(_result(ctx, result) for result in (*outcome, *refused)),
        )

    return park_until_committed(ctx, proposal, respond, timeout_ms=request.timeout_ms)


def _partition_count(ctx: RequestContext, topic: TopicToDelete) -> int:
    image = ctx.image
    known = image.topics_by_id.get(topic.topic_id) if topic.name is None else image.topics.get(topic.name)
    return 0 if known is None else len(known.partitions)


def _allowed(ctx: RequestContext, topic: TopicToDelete) -> bool:
    name = topic.name
    if name is None:
        found = ctx.image.topics_by_id.get(topic.topic_id)
        if found is None:
            return True  # nothing to protect: the controller answers that the id is unknown
        name = found.name
    # A client that may describe the topic learns that it is missing.
    operation = Operation.DELETE if name in ctx.image.topics else Operation.DESCRIBE
    return ctx.authorized(Operation.DELETE, AclResourceType.CLUSTER, CLUSTER_NAME) or ctx.authorized(
        operation, AclResourceType.TOPIC, name
    )


def _result(ctx: RequestContext, result: TopicResult) -> DeleteTopicsResponseTopic:
    error = result.error
    if error is ErrorCode.TOPIC_DELETION_DISABLED and ctx.version < _DELETION_DISABLED_FROM:
        error = ErrorCode.INVALID_REQUEST
    name = result.name if ctx.version >= _IDS_FROM else result.name or ""
    return DeleteTopicsResponseTopic(
        name=name, topic_id=result.topic_id, error_code=error, error_message=result.message
    )
