"""Eligible leader replicas of topics, which Metadata responses do not name."""

from collections.abc import Iterable, Sequence

from headrace.client import Admin
from headrace.client.errors import UnsupportedByBroker
from headrace.client.types import TopicDescription


def with_eligible(
    admin: Admin, topics: Sequence[TopicDescription], chosen: Iterable[TopicDescription]
) -> list[TopicDescription]:
    """Return the topics, the chosen ones with eligible and last known replicas if the broker can describe them."""
    names = [topic.name for topic in chosen]
    if not names:
        return list(topics)
    try:
        described = {topic.name: topic for topic in admin.topic_partitions(names) if not topic.error}
    except UnsupportedByBroker:
        return list(topics)
    return [described.get(topic.name, topic) for topic in topics]
