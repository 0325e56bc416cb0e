"""Build Fetch requests for one broker, and parse its response for each partition."""

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.client.core.admin.routing import by_topic
from headrace.client.core.calls import Call
from headrace.client.core.cluster import Cluster
from headrace.client.core.fetch_sessions import FINAL_EPOCH, NO_SESSION, FetchPosition, Plan
from headrace.client.types import IsolationLevel
from headrace.model.ids import NO_TOPIC_ID, TopicPartition
from headrace.wire.messages import fetch

_BATCHES_V2_FROM_VERSION = 4
_SESSIONS_FROM_VERSION = 7
_TOPIC_IDS_FROM_VERSION = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    wait_ms_max: int = 500
    bytes_min: int = 1
    bytes_max: int = 50 * 1024 * 1024
    partition_bytes_max: int = 1024 * 1024
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    rack: str = ""


def wanted_from(
    cluster: Cluster, positions: Mapping[TopicPartition, int], bytes_max: int
) -> dict[TopicPartition, FetchPosition]:
    """Return the fetch positions of partitions from these offsets on, with a byte limit for each."""
    return {
        place: FetchPosition(cluster.topic_id(place.topic), cluster.leader_epoch(place), position, bytes_max)
        for place, position in positions.items()
    }


def fetch_call(
    node: int, wanted: Mapping[TopicPartition, FetchPosition], plan: Plan | None, settings: FetchSettings
) -> Call:
    """Build a Fetch for this node: complete, or only the changes to its fetch session."""
    has_ids = all(asked.topic_id != NO_TOPIC_ID for asked in wanted.values())
    plan = plan or Plan(NO_SESSION, FINAL_EPOCH, wanted, {})
    request = fetch.FetchRequest(
        max_wait_ms=settings.wait_ms_max,
        min_bytes=settings.bytes_min,
        max_bytes=settings.bytes_max,
        isolation_level=settings.isolation,
        session_id=plan.session_id,
        session_epoch=plan.epoch,
        rack_id=settings.rack,
        topics=tuple(
            fetch.FetchRequestTopic(
                topic=topic,
                topic_id=plan.named[TopicPartition(topic, indexes[0])].topic_id,
                partitions=tuple(_asked(index, plan.named[TopicPartition(topic, index)]) for index in indexes),
            )
            for topic, indexes in by_topic(plan.named).items()
        ),
        forgotten_topics_data=tuple(
            fetch.FetchRequestForgottenTopic(
                topic=topic,
                topic_id=plan.forgotten[TopicPartition(topic, indexes[0])],
                partitions=tuple(indexes),
            )
            for topic, indexes in by_topic(plan.forgotten).items()
        ),
    )
    return Call(
        fetch,
        request,
        node,
        min_version=_SESSIONS_FROM_VERSION if plan.needs_session else _BATCHES_V2_FROM_VERSION,
        max_version=fetch.MAX_VERSION if has_ids else _TOPIC_IDS_FROM_VERSION - 1,
        wait_ms_max=settings.wait_ms_max,
    )


def _asked(index: int, asked: FetchPosition) -> fetch.FetchRequestPartition:
    return fetch.FetchRequestPartition(
        partition=index,
        current_leader_epoch=asked.leader_epoch,
        fetch_offset=asked.offset,
        partition_max_bytes=asked.bytes_max,
    )


def results_in(cluster: Cluster, reply: fetch.FetchResponse) -> dict[TopicPartition, fetch.FetchResponsePartition]:
    return {
        TopicPartition(topic.topic or cluster.topic_name(topic.topic_id) or "", result.partition_index): result
        for topic in reply.responses
        for result in topic.partitions
    }


def aborted_in(result: fetch.FetchResponsePartition) -> tuple[tuple[int, int], ...]:
    """Return producer ids and first offsets of the aborted transactions in the fetched records."""
    return tuple((each.producer_id, each.first_offset) for each in result.aborted_transactions or ())
