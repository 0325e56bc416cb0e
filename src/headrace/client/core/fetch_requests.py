"""Fetch requests for one broker, and what its answers say of each partition."""

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.client.core.admin.routing import by_topic
from headrace.client.core.calls import Call
from headrace.client.core.cluster import Cluster
from headrace.client.types import IsolationLevel
from headrace.model.ids import NO_TOPIC_ID, TopicPartition
from headrace.wire.messages import fetch

_BATCHES_V2_FROM_VERSION = 4
_TOPIC_IDS_FROM_VERSION = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    wait_ms_max: int = 500
    bytes_min: int = 1
    bytes_max: int = 50 * 1024 * 1024
    partition_bytes_max: int = 1024 * 1024
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    rack: str = ""


def fetch_call(cluster: Cluster, node: int, positions: Mapping[TopicPartition, int], settings: FetchSettings) -> Call:
    """Ask this node for the records of partitions from these offsets on."""
    has_ids = all(cluster.topic_id(partition.topic) != NO_TOPIC_ID for partition in positions)
    request = fetch.FetchRequest(
        max_wait_ms=settings.wait_ms_max,
        min_bytes=settings.bytes_min,
        max_bytes=settings.bytes_max,
        isolation_level=settings.isolation,
        rack_id=settings.rack,
        topics=tuple(
            fetch.FetchRequestTopic(
                topic=topic,
                topic_id=cluster.topic_id(topic),
                partitions=tuple(
                    fetch.FetchRequestPartition(
                        partition=index,
                        current_leader_epoch=cluster.leader_epoch(TopicPartition(topic, index)),
                        fetch_offset=positions[TopicPartition(topic, index)],
                        partition_max_bytes=settings.partition_bytes_max,
                    )
                    for index in indexes
                ),
            )
            for topic, indexes in by_topic(positions).items()
        ),
    )
    return Call(
        fetch,
        request,
        node,
        min_version=_BATCHES_V2_FROM_VERSION,
        max_version=fetch.MAX_VERSION if has_ids else _TOPIC_IDS_FROM_VERSION - 1,
        wait_ms_max=settings.wait_ms_max,
    )


def answers_in(cluster: Cluster, reply: fetch.FetchResponse) -> dict[TopicPartition, fetch.FetchResponsePartition]:
    return {
        TopicPartition(topic.topic or cluster.topic_name(topic.topic_id) or "", answer.partition_index): answer
        for topic in reply.responses
        for answer in topic.partitions
    }


def aborted_in(answer: fetch.FetchResponsePartition) -> tuple[tuple[int, int], ...]:
    """Producer ids and first offsets of the aborted transactions that reach into what was fetched."""
    return tuple((each.producer_id, each.first_offset) for each in answer.aborted_transactions or ())
