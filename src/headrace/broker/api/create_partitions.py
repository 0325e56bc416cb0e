"""CreatePartitions (37): increases the partition count of topics."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import split_by_access
from headrace.broker.api.support.mutation_quota import MutationQuota
from headrace.broker.api.support.proposals import park_until_committed, with_failed_storage
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.commands import PartitionGrowth, TopicResult
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsRequestTopic,
    CreatePartitionsResponse,
    CreatePartitionsResponseResult,
)

_STRICT_QUOTA_FROM = 3


def handle(request: CreatePartitionsRequest, ctx: RequestContext) -> Parked:
    allowed, others = split_by_access(
        request.topics, lambda topic: ctx.authorized(Operation.ALTER, AclResourceType.TOPIC, topic.name)
    )
    refused = [TopicResult(topic.name, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in others]
    quota = MutationQuota(ctx, strict_from=_STRICT_QUOTA_FROM, charges=not request.validate_only)
    allowed, beyond = split_by_access(allowed, lambda topic: quota.admits(topic.name, _new_partitions(ctx, topic)))
    refused += [quota.refusal(topic.name) for topic in beyond]
    proposal = ctx.controller.create_partitions(
        [_growth(topic) for topic in allowed], validate_only=request.validate_only
    )

    def respond(outcome: tuple[TopicResult, ...] | ProposalFailed) -> CreatePartitionsResponse:
        if isinstance(outcome, ProposalFailed):
            outcome = tuple(TopicResult(topic.name, error=outcome.code, message=outcome.message) for topic in allowed)
        else:
            quota.settle(outcome)
        return CreatePartitionsResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            results=tuple(
                CreatePartitionsResponseResult(
                    name=result.name or "", error_code=result.error, error_message=result.message
                )
                for result in (*with_failed_storage(ctx, outcome), *refused)
            ),
        )

    return park_until_committed(ctx, proposal, respond, timeout_ms=request.timeout_ms)


def _new_partitions(ctx: RequestContext, topic: CreatePartitionsRequestTopic) -> int:
    known = ctx.image.topics.get(topic.name)
    return 0 if known is None else max(0, topic.count - len(known.partitions))


def _growth(topic: CreatePartitionsRequestTopic) -> PartitionGrowth:
    assignments = None
    if topic.assignments is not None:
        assignments = [[NodeId(node) for node in assignment.broker_ids] for assignment in topic.assignments]
    return PartitionGrowth(name=topic.name, partition_count=topic.count, assignments=assignments)
