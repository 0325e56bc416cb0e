"""Offsets by time: build the ListOffsets call and parse its response."""

from collections.abc import Mapping

from headrace.client.core.admin.routing import by_topic
from headrace.client.core.calls import Call
from headrace.client.core.cluster import Cluster
from headrace.client.types import EARLIEST_LOCAL, MAX_TIMESTAMP, IsolationLevel, OffsetAt
from headrace.model.errors import error_code
from headrace.model.ids import TopicPartition
from headrace.wire.messages import list_offsets as list_offsets_api

_CONSUMER = -1
_ISOLATION_FROM_VERSION = 2
_FROM_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8}


def list_offsets_call(
    cluster: Cluster,
    leader: int,
    times: Mapping[TopicPartition, int],
    *,
    timeout_ms: int,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> Call:
    """Build the call. With READ_COMMITTED, LATEST is the last stable offset, before the first open transaction."""
    request = list_offsets_api.ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=isolation,
        topics=tuple(
            list_offsets_api.ListOffsetsRequestTopic(
                name=topic,
                partitions=tuple(
                    list_offsets_api.ListOffsetsRequestPartition(
                        partition_index=partition,
                        current_leader_epoch=cluster.leader_epoch(TopicPartition(topic, partition)),
                        timestamp=times[TopicPartition(topic, partition)],
                    )
                    for partition in partitions
                ),
            )
            for topic, partitions in by_topic(times).items()
        ),
        timeout_ms=timeout_ms,
    )
    plain_version = _ISOLATION_FROM_VERSION if isolation else 1
    min_version = max((_FROM_VERSION.get(time, plain_version) for time in times.values()), default=plain_version)
    return Call(list_offsets_api, request, leader, min_version=min_version)


def offsets_in(response: list_offsets_api.ListOffsetsResponse) -> dict[TopicPartition, OffsetAt]:
    return {
        TopicPartition(topic.name, found.partition_index): OffsetAt(
            found.offset, found.timestamp, found.leader_epoch, error_code(found.error_code)
        )
        for topic in response.topics
        for found in topic.partitions
    }
