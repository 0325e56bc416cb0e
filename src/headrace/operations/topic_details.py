"""Details of topics, gathered from several responses of the cluster."""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from headrace.client import Admin
from headrace.client.errors import UnsupportedByBroker
from headrace.client.types import (
    EARLIEST,
    LATEST,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    OffsetAt,
    PartitionDescription,
    ResourceType,
    TopicDescription,
)
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, TopicPartition
from headrace.operations.eligible_replicas import with_eligible

UNKNOWN = -1
TOPICS_PER_REQUEST_MAX = 500
"""Topics in one DescribeConfigs request."""


class PartitionDetails(NamedTuple):
    """A partition with its offsets and size; -1 stands for an offset or a size that is not known."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    eligible: tuple[int, ...]
    """Eligible leader replicas: not in sync, but with every committed record."""
    start_offset: int
    end_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDetails:
    name: str
    topic_id: str
    internal: bool
    partitions: tuple[PartitionDetails, ...]
    configs: tuple[ConfigEntry, ...]

    @property
    def own_configs(self) -> dict[str, str]:
        """The configs that the topic itself sets."""
        return own_configs(self.configs)


def own_configs(entries: Iterable[ConfigEntry]) -> dict[str, str]:
    return {entry.name: entry.value or "" for entry in entries if entry.source == ConfigSource.TOPIC}


def topic_id_text(topic_id: bytes) -> str:
    """Return the topic ID as Kafka's tools print it."""
    return urlsafe_b64encode(topic_id).decode().rstrip("=")


def topic_configs(admin: Admin, names: Iterable[str]) -> dict[str, tuple[ConfigEntry, ...]]:
    """Return every config of each topic."""
    wanted = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    described: dict[str, tuple[ConfigEntry, ...]] = {}
    for start in range(0, len(wanted), TOPICS_PER_REQUEST_MAX):
        found = admin.describe_configs(wanted[start : start + TOPICS_PER_REQUEST_MAX])
        described.update((resource.name, entries) for resource, entries in found.items())
    return described


def topic_details(admin: Admin, topics: Iterable[TopicDescription]) -> list[TopicDetails]:
    listed = list(topics)
    behind = (topic for topic in listed if any(len(each.isr) < len(each.replicas) for each in topic.partitions))
    found = with_eligible(admin, listed, behind)
    led = [
        TopicPartition(topic.name, partition.partition)
        for topic in found
        for partition in topic.partitions
        if partition.leader != NO_NODE
    ]
    starts = admin.offsets(dict.fromkeys(led, EARLIEST)) if led else {}
    ends = admin.offsets(dict.fromkeys(led, LATEST)) if led else {}
    sizes = _sizes(admin)
    configs = topic_configs(admin, (topic.name for topic in found))
    return [
        TopicDetails(
            name=topic.name,
            topic_id=topic_id_text(topic.topic_id),
            internal=topic.internal,
            partitions=tuple(
                _partition(topic.name, partition, starts, ends, sizes)
                for partition in sorted(topic.partitions, key=lambda partition: partition.partition)
            ),
            configs=configs.get(topic.name, ()),
        )
        for topic in found
    ]


def _sizes(admin: Admin) -> dict[tuple[TopicPartition, int], int]:
    """Return bytes by partition and broker; empty for a broker that does not serve DescribeLogDirs."""
    try:
        folders = admin.log_dirs()
    except UnsupportedByBroker:
        return {}
    return {
        (TopicPartition(replica.topic, replica.partition), folder.node_id): replica.size_bytes
        for folder in folders
        for replica in folder.replicas
        if not replica.is_future
    }


def _partition(
    topic: str,
    partition: PartitionDescription,
    starts: Mapping[TopicPartition, OffsetAt],
    ends: Mapping[TopicPartition, OffsetAt],
    sizes: Mapping[tuple[TopicPartition, int], int],
) -> PartitionDetails:
    name = TopicPartition(topic, partition.partition)
    return PartitionDetails(
        partition.partition,
        partition.leader,
        partition.leader_epoch,
        partition.replicas,
        partition.isr,
        partition.eligible,
        _offset(starts.get(name)),
        _offset(ends.get(name)),
        sizes.get((name, partition.leader), UNKNOWN),
    )


def _offset(found: OffsetAt | None) -> int:
    return found.offset if found is not None and found.error == ErrorCode.NONE else UNKNOWN
