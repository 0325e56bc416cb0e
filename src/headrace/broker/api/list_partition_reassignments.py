"""ListPartitionReassignments (46): the partitions that are being moved (KIP-455)."""

from headrace.broker.api.context import RequestContext
from headrace.core.controller.reassignments import reassignments
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsResponsePartition,
    ListPartitionReassignmentsResponseTopic,
)


def handle(request: ListPartitionReassignmentsRequest, ctx: RequestContext) -> ListPartitionReassignmentsResponse:
    if not ctx.authorized(Operation.DESCRIBE, AclResourceType.CLUSTER, CLUSTER_NAME):
        message = "reassignments are listed only for a client that may describe the cluster"
        return _failed(ctx, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message)
    if not ctx.controller.is_active:
        return _failed(ctx, ErrorCode.NOT_CONTROLLER, "this node is not the active controller")
    wanted = None if request.topics is None else [(topic.name, topic.partition_indexes) for topic in request.topics]
    by_topic: dict[str, list[ListPartitionReassignmentsResponsePartition]] = {}
    for moving in reassignments(ctx.image, wanted):
        by_topic.setdefault(moving.topic, []).append(
            ListPartitionReassignmentsResponsePartition(
                partition_index=moving.partition,
                replicas=moving.replicas,
                adding_replicas=moving.adding,
                removing_replicas=moving.removing,
            )
        )
    return ListPartitionReassignmentsResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_message=None,
        topics=tuple(
            ListPartitionReassignmentsResponseTopic(name=name, partitions=tuple(partitions))
            for name, partitions in by_topic.items()
        ),
    )


def _failed(ctx: RequestContext, code: ErrorCode, message: str) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        throttle_time_ms=ctx.throttle_time_ms, error_code=code, error_message=message
    )
