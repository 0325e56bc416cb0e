"""AlterPartitionReassignments (45): moves partitions to other replicas, or stops moving them (KIP-455)."""

from collections.abc import Sequence

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import cluster_refusal
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.reassignments import ReassignmentResult, WantedReplicas
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionReassignmentsResponsePartition,
    AlterPartitionReassignmentsResponseTopic,
)


def handle(
    request: AlterPartitionReassignmentsRequest, ctx: RequestContext
) -> AlterPartitionReassignmentsResponse | Parked:
    allowed = request.allow_replication_factor_change
    refusal = cluster_refusal(ctx, "partitions are moved")
    if refusal is not None:
        return _failed(ctx, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, refusal, allowed)
    wanted = [
        WantedReplicas(
            topic.name,
            partition.partition_index,
            None if partition.replicas is None else tuple(map(NodeId, partition.replicas)),
        )
        for topic in request.topics
        for partition in topic.partitions
    ]

    def respond(
        outcome: tuple[ReassignmentResult, ...] | ProposalFailed,
    ) -> AlterPartitionReassignmentsResponse:
        if isinstance(outcome, ProposalFailed):
            return _failed(ctx, outcome.code, outcome.message, allowed)
        return AlterPartitionReassignmentsResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            allow_replication_factor_change=allowed,
            error_message=None,
            responses=_by_topic(outcome),
        )

    proposal = ctx.controller.reassign(wanted, allow_factor_change=allowed)
    return park_until_committed(ctx, proposal, respond, timeout_ms=request.timeout_ms)


def _by_topic(results: Sequence[ReassignmentResult]) -> tuple[AlterPartitionReassignmentsResponseTopic, ...]:
    by_topic: dict[str, list[AlterPartitionReassignmentsResponsePartition]] = {}
    for result in results:
        by_topic.setdefault(result.topic, []).append(
            AlterPartitionReassignmentsResponsePartition(
                partition_index=result.partition, error_code=result.error, error_message=result.message
            )
        )
    return tuple(
        AlterPartitionReassignmentsResponseTopic(name=name, partitions=tuple(partitions))
        for name, partitions in by_topic.items()
    )


def _failed(ctx: RequestContext, code: ErrorCode, message: str, allowed: bool) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        allow_replication_factor_change=allowed,
        error_code=code,
        error_message=message,
    )
