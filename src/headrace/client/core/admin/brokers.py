"""Describe the cluster, its brokers and their log directories."""

from collections.abc import Iterable

from headrace.client.core.calls import Call, Operation
from headrace.client.core.cluster import Cluster, error_code, fetch_metadata
from headrace.client.errors import BrokerError, ClientError
from headrace.client.types import Broker, ClusterDescription, LogDirDescription, ReplicaSize
from headrace.wire.messages import describe_log_dirs as describe_log_dirs_api


def describe_cluster(cluster: Cluster) -> Operation[ClusterDescription]:
    """Describe the cluster by Metadata, which every broker serves and which returns the same as DescribeCluster."""
    response = yield from fetch_metadata(())
    cluster.learn(response)
    return ClusterDescription(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        brokers=tuple(
            sorted(Broker(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers)
        ),
    )


def log_dirs(cluster: Cluster, nodes: Iterable[int] | None) -> Operation[tuple[LogDirDescription, ...]]:
    """Describe the log directories of these brokers, or of all."""
    cluster.learn((yield from fetch_metadata(())))
    targets = sorted(cluster.brokers if nodes is None else nodes)
    request = describe_log_dirs_api.DescribeLogDirsRequest(topics=None)
    replies = yield tuple(Call(describe_log_dirs_api, request, node) for node in targets)
    described: list[LogDirDescription] = []
    for node, reply in zip(targets, replies, strict=True):
        if isinstance(reply, ClientError):
            raise reply
        if reply.error_code:
            raise BrokerError(reply.error_code, f"the log directories of broker {node} could not be described")
        described.extend(_log_dir(node, result) for result in reply.results)
    return tuple(described)


def _log_dir(node: int, result: describe_log_dirs_api.DescribeLogDirsResponseResult) -> LogDirDescription:
    return LogDirDescription(
        node_id=node,
        path=result.log_dir,
        error=error_code(result.error_code),
        total_bytes=result.total_bytes,
        usable_bytes=result.usable_bytes,
        replicas=tuple(
            ReplicaSize(
                topic=topic.name,
                partition=partition.partition_index,
                size_bytes=partition.partition_size,
                offset_lag=partition.offset_lag,
                is_future=partition.is_future_key,
            )
            for topic in result.topics
            for partition in topic.partitions
        ),
    )
