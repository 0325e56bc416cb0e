"""Operations on replicas: elect leaders, and move partitions to other brokers."""

from collections.abc import Mapping, Sequence

from headrace.client.core.admin.routing import ask_controller
from headrace.client.core.calls import Operation
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BrokerError
from headrace.client.types import Outcome, PartitionReassignment
from headrace.model.errors import error_code
from headrace.model.ids import TopicPartition
from headrace.wire.messages import alter_partition_reassignments as alter_partition_reassignments_api
from headrace.wire.messages import elect_leaders as elect_leaders_api
from headrace.wire.messages import list_partition_reassignments as list_partition_reassignments_api

PREFERRED, UNCLEAN = 0, 1


def elect_leaders(
    cluster: Cluster, partitions: Sequence[TopicPartition] | None, *, unclean: bool, timeout_ms: int
) -> Operation[dict[TopicPartition, Outcome]]:
    """Elect leaders of these partitions, or of all that need one."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions or ():
        by_topic.setdefault(topic, []).append(partition)
    request = elect_leaders_api.ElectLeadersRequest(
        election_type=UNCLEAN if unclean else PREFERRED,
        topic_partitions=None
        if partitions is None
        else tuple(
            elect_leaders_api.ElectLeadersRequestTopic(topic=topic, partitions=tuple(indexes))
            for topic, indexes in by_topic.items()
        ),
        timeout_ms=timeout_ms,
    )
    response = yield from ask_controller(
        cluster, elect_leaders_api, request, codes=lambda response: (response.error_code,), min_version=1
    )
    if response.error_code:
        raise BrokerError(response.error_code, "no leaders could be elected")
    return {
        TopicPartition(topic.topic, result.partition_id): Outcome(
            error_code(result.error_code), result.error_message or None
        )
        for topic in response.replica_election_results
        for result in topic.partition_result
    }


def reassign_partitions(
    cluster: Cluster, targets: Mapping[TopicPartition, Sequence[int] | None], *, timeout_ms: int
) -> Operation[dict[TopicPartition, Outcome]]:
    """Move partitions to these brokers, the preferred leader first; None stops a move."""
    by_topic: dict[str, list[alter_partition_reassignments_api.AlterPartitionReassignmentsRequestPartition]] = {}
    for (topic, partition), replicas in targets.items():
        by_topic.setdefault(topic, []).append(
            alter_partition_reassignments_api.AlterPartitionReassignmentsRequestPartition(
                partition_index=partition, replicas=None if replicas is None else tuple(replicas)
            )
        )
    request = alter_partition_reassignments_api.AlterPartitionReassignmentsRequest(
        topics=tuple(
            alter_partition_reassignments_api.AlterPartitionReassignmentsRequestTopic(
                name=topic, partitions=tuple(partitions)
            )
            for topic, partitions in by_topic.items()
        ),
        timeout_ms=timeout_ms,
    )
    response = yield from ask_controller(
        cluster, alter_partition_reassignments_api, request, codes=lambda response: (response.error_code,)
    )
    if response.error_code:
        raise BrokerError(response.error_code, response.error_message or "no partitions could be moved")
    return {
        TopicPartition(topic.name, result.partition_index): Outcome(
            error_code(result.error_code), result.error_message or None
        )
        for topic in response.responses
        for result in topic.partitions
    }


def list_reassignments(cluster: Cluster, *, timeout_ms: int) -> Operation[dict[TopicPartition, PartitionReassignment]]:
    """List the partitions that are being moved."""
    request = list_partition_reassignments_api.ListPartitionReassignmentsRequest(timeout_ms=timeout_ms)
    response = yield from ask_controller(
        cluster, list_partition_reassignments_api, request, codes=lambda response: (response.error_code,)
    )
    if response.error_code:
        raise BrokerError(response.error_code, response.error_message or "reassignments could not be listed")
    return {
        TopicPartition(topic.name, moving.partition_index): PartitionReassignment(
            moving.replicas, moving.adding_replicas, moving.removing_replicas
        )
        for topic in response.topics
        for moving in topic.partitions
    }
