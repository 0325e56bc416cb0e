"""Describe the cluster, its brokers, their log directories and the metadata quorum; change its members and features."""

from collections.abc import Iterable, Mapping

from headrace.client.core.calls import Call, Operation, ask
from headrace.client.core.cluster import Cluster, fetch_metadata
from headrace.client.core.connection import VERSIONS_REQUEST
from headrace.client.errors import BadResponse, BrokerError, ClientError
from headrace.client.types import (
    Broker,
    ClusterDescription,
    ClusterInvitation,
    FeatureDescription,
    LogDirDescription,
    QuorumDescription,
    QuorumReplica,
    ReplicaSize,
)
from headrace.model.errors import error_code
from headrace.wire.messages import add_raft_voter as add_raft_voter_api
from headrace.wire.messages import api_versions as api_versions_api
from headrace.wire.messages import create_invitation as create_invitation_api
from headrace.wire.messages import describe_cluster as describe_cluster_api
from headrace.wire.messages import describe_log_dirs as describe_log_dirs_api
from headrace.wire.messages import describe_quorum as describe_quorum_api
from headrace.wire.messages import remove_raft_voter as remove_raft_voter_api
from headrace.wire.messages import unregister_broker as unregister_broker_api
from headrace.wire.messages import update_features as update_features_api

METADATA_TOPIC = "__cluster_metadata"
FENCED_BROKERS_VERSION = 2
"""The first version of DescribeCluster that can describe fenced brokers."""
FEATURES_VERSION = 3
"""The first version of ApiVersions that describes features."""
UPGRADE_TYPES_VERSION = 1
"""The first version of UpdateFeatures that has upgrade types."""
UPGRADE, SAFE_DOWNGRADE = 1, 2
VOTER_TIMEOUT_MS = 30_000


def describe_cluster(cluster: Cluster, *, include_fenced: bool = False) -> Operation[ClusterDescription]:
    """Describe the cluster by Metadata, which every broker serves; with fenced brokers, by DescribeCluster."""
    if include_fenced:
        return (yield from _describe_with_fenced())
    response = yield from fetch_metadata(())
    cluster.learn(response)
    return ClusterDescription(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        brokers=tuple(
            sorted(Broker(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers)
        ),
    )


def _describe_with_fenced() -> Operation[ClusterDescription]:
    request = describe_cluster_api.DescribeClusterRequest(include_fenced_brokers=True)
    response = yield from ask(describe_cluster_api, request, min_version=FENCED_BROKERS_VERSION)
    if response.error_code:
        raise BrokerError(response.error_code, response.error_message or "the cluster could not be described")
    return ClusterDescription(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        brokers=tuple(
            sorted(
                Broker(broker.broker_id, broker.host, broker.port, broker.rack, broker.is_fenced)
                for broker in response.brokers
            )
        ),
    )


def describe_quorum() -> Operation[QuorumDescription]:
    """Describe the metadata quorum; every broker forwards the request to the active controller."""
    wanted = describe_quorum_api.DescribeQuorumRequestPartition(partition_index=0)
    topic = describe_quorum_api.DescribeQuorumRequestTopic(topic_name=METADATA_TOPIC, partitions=(wanted,))
    response = yield from ask(describe_quorum_api, describe_quorum_api.DescribeQuorumRequest(topics=(topic,)))
    found = next((partition for topic in response.topics for partition in topic.partitions), None)
    for part in (response, found):
        if part is not None and part.error_code:
            raise BrokerError(part.error_code, part.error_message or "the metadata quorum could not be described")
    if found is None:
        raise BadResponse("the broker describes no metadata quorum; use a newer broker")
    end = max((replica.log_end_offset for replica in found.current_voters), default=found.high_watermark)
    return QuorumDescription(
        leader=found.leader_id,
        leader_epoch=found.leader_epoch,
        high_watermark=found.high_watermark,
        voters=_quorum_replicas(found.current_voters, end),
        observers=_quorum_replicas(found.observers, end),
    )


def _quorum_replicas(
    replicas: Iterable[describe_quorum_api.DescribeQuorumResponseReplica], end: int
) -> tuple[QuorumReplica, ...]:
    found = (
        QuorumReplica(
            replica.replica_id,
            replica.log_end_offset,
            max(end - max(replica.log_end_offset, 0), 0),
            replica.last_caught_up_timestamp if replica.last_caught_up_timestamp >= 0 else None,
            replica.replica_directory_id,
            replica.last_fetch_timestamp if replica.last_fetch_timestamp >= 0 else None,
        )
        for replica in replicas
    )
    return tuple(sorted(found, key=lambda replica: replica.node_id))


def unregister_broker(node_id: int) -> Operation[None]:
    """Remove a broker that is gone for good."""
    request = unregister_broker_api.UnregisterBrokerRequest(broker_id=node_id)
    response = yield from ask(unregister_broker_api, request)
    if response.error_code:
        raise BrokerError(response.error_code, response.error_message or f"broker {node_id} could not be unregistered")


def features() -> Operation[tuple[FeatureDescription, ...]]:
    """Describe the finalized levels, and the levels that the broker at the bootstrap address supports."""
    response = yield from ask(api_versions_api, VERSIONS_REQUEST, min_version=FEATURES_VERSION)
    if response.error_code:
        raise BrokerError(response.error_code, "the features could not be described")
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    return tuple(
        FeatureDescription(each.name, levels.get(each.name, 0), each.min_version, each.max_version)
        for each in response.supported_features
    )


def update_features(
    levels: Mapping[str, int], *, allow_downgrade: bool, validate_only: bool, timeout_ms: int
) -> Operation[None]:
    """Change finalized features, all of them or none."""
    upgrade_type = SAFE_DOWNGRADE if allow_downgrade else UPGRADE
    request = update_features_api.UpdateFeaturesRequest(
        timeout_ms=timeout_ms,
        feature_updates=tuple(
            update_features_api.UpdateFeaturesRequestFeatureUpdate(
                feature=name, max_version_level=level, upgrade_type=upgrade_type
            )
            for name, level in levels.items()
        ),
        validate_only=validate_only,
    )
    response = yield from ask(update_features_api, request, min_version=UPGRADE_TYPES_VERSION)
    if response.error_code:
        raise BrokerError(response.error_code, response.error_message or "the features could not be changed")


def add_voter(node_id: int, directory_id: bytes) -> Operation[None]:
    """Make an observer of the metadata quorum a voter."""
    request = add_raft_voter_api.AddRaftVoterRequest(
        cluster_id=None, timeout_ms=VOTER_TIMEOUT_MS, voter_id=node_id, voter_directory_id=directory_id
    )
    response = yield from ask(add_raft_voter_api, request)
    if response.error_code:
        raise BrokerError(response.error_code, response.error_message or f"node {node_id} could not become a voter")


def remove_voter(node_id: int, directory_id: bytes) -> Operation[None]:
    """Make a voter of the metadata quorum an observer, or forget one that is gone."""
    request = remove_raft_voter_api.RemoveRaftVoterRequest(
        cluster_id=None, voter_id=node_id, voter_directory_id=directory_id
    )
    response = yield from ask(remove_raft_voter_api, request)
    if response.error_code:
        raise BrokerError(response.error_code, response.error_message or f"voter {node_id} could not be removed")


def create_invitation(lifetime_ms: int) -> Operation[ClusterInvitation]:
    """Ask the broker at the bootstrap address for a token with which another node may join the cluster."""
    request = create_invitation_api.CreateInvitationRequest(lifetime_ms=lifetime_ms)
    response = yield from ask(create_invitation_api, request)
    if response.error_code:
        raise BrokerError(response.error_code, response.error_message or "no invitation could be created")
    return ClusterInvitation(response.token, response.expiry_ms)


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
