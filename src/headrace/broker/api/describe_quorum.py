"""DescribeQuorum (55): the leader, the voters and the observers of the metadata quorum, as the leader sees them."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from headrace.broker.api.context import RequestContext
from headrace.broker.cluster.quorum import MetadataQuorum, ReplicaState
from headrace.core.controller.names import CLUSTER_METADATA_TOPIC
from headrace.log.checkpoints import decode_uuid
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponseListener,
    DescribeQuorumResponseNode,
    DescribeQuorumResponsePartition,
    DescribeQuorumResponseReplica,
    DescribeQuorumResponseTopic,
)

UNKNOWN_TIME = -1


def handle(request: DescribeQuorumRequest, ctx: RequestContext) -> DescribeQuorumResponse:
    if not ctx.authorized(Operation.DESCRIBE, AclResourceType.CLUSTER, CLUSTER_NAME):
        return DescribeQuorumResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    quorum = ctx.controller.quorum
    if not ctx.controller.is_active:
        return DescribeQuorumResponse(error_code=ErrorCode.NOT_CONTROLLER, error_message=_no_controller(quorum))
    topics = tuple(
        DescribeQuorumResponseTopic(
            topic_name=topic.topic_name,
            partitions=tuple(
                _partition(quorum, ctx) if is_metadata else _unknown(partition.partition_index)
                for partition in topic.partitions
                for is_metadata in (topic.topic_name == CLUSTER_METADATA_TOPIC and partition.partition_index == 0,)
            ),
        )
        for topic in request.topics
    )
    return DescribeQuorumResponse(topics=topics, nodes=tuple(_nodes(quorum.replicas(), ctx)))


def _no_controller(quorum: MetadataQuorum) -> str:
    """Say since when this broker knows no controller."""
    if quorum.leaderless_since_ms is None:
        return f"this broker is not the active controller, which is node {quorum.leader}"
    since = datetime.fromtimestamp(quorum.leaderless_since_ms / 1000, UTC).isoformat(timespec="seconds")
    return f"there is no active controller since {since.replace('+00:00', 'Z')}"


def _unknown(index: int) -> DescribeQuorumResponsePartition:
    return DescribeQuorumResponsePartition(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _partition(quorum: MetadataQuorum, ctx: RequestContext) -> DescribeQuorumResponsePartition:
    replicas = quorum.replicas()
    return DescribeQuorumResponsePartition(
        partition_index=0,
        leader_id=ctx.node_id,
        leader_epoch=quorum.term,
        high_watermark=quorum.committed_offset,
        current_voters=_replicas((each for each in replicas if each.is_voter), quorum, ctx),
        observers=_replicas((each for each in replicas if not each.is_voter), quorum, ctx),
    )


def _replicas(
    replicas: Iterable[ReplicaState], quorum: MetadataQuorum, ctx: RequestContext
) -> tuple[DescribeQuorumResponseReplica, ...]:
    now_ms, wall_ms = ctx.clock.monotonic_ms(), ctx.clock.wall_ms()
    found = []
    for replica in sorted(replicas, key=lambda each: each.key.node_id):
        heard_ms = wall_ms - round(now_ms - replica.heard_ms)
        is_caught_up = replica.end_offset >= quorum.committed_offset
        found.append(
            DescribeQuorumResponseReplica(
                replica_id=replica.key.node_id,
                replica_directory_id=decode_uuid(replica.key.directory_id),
                log_end_offset=replica.end_offset,
                last_fetch_timestamp=heard_ms,
                last_caught_up_timestamp=heard_ms if is_caught_up else UNKNOWN_TIME,
            )
        )
    return tuple(found)


def _nodes(replicas: Iterable[ReplicaState], ctx: RequestContext) -> Iterator[DescribeQuorumResponseNode]:
    """Yield the addresses at which other nodes reach the voters."""
    for node_id in sorted({replica.key.node_id for replica in replicas if replica.is_voter}):
        listeners = tuple(_listeners(node_id, ctx))
        if listeners:
            yield DescribeQuorumResponseNode(node_id=node_id, listeners=listeners)


def _listeners(node_id: NodeId, ctx: RequestContext) -> Iterator[DescribeQuorumResponseListener]:
    listener, broker = ctx.config.cluster.listener, ctx.image.brokers.get(node_id)
    endpoint = broker.endpoints.get(listener.name) if listener is not None and broker is not None else None
    if endpoint is not None:
        yield DescribeQuorumResponseListener(name=endpoint.listener, host=endpoint.host, port=endpoint.port)
