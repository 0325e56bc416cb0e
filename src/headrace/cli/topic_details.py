"""All there is to know of topics, gathered from several answers of the cluster, and printed."""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import click

from headrace.cli.console import clean, count_text, print_table, size_text
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

UNKNOWN = -1
TOPICS_PER_REQUEST_MAX = 500
"""Topics whose configs are asked for in one request."""


class PartitionDetails(NamedTuple):
    """-1 stands for an offset or a size that nobody could tell."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
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
        """The configs the topic sets itself."""
        return own_configs(self.configs)


def own_configs(entries: Iterable[ConfigEntry]) -> dict[str, str]:
    return {entry.name: entry.value or "" for entry in entries if entry.source == ConfigSource.TOPIC}


def topic_id_text(topic_id: bytes) -> str:
    """As Kafka's tools write it."""
    return urlsafe_b64encode(topic_id).decode().rstrip("=")


def topic_configs(admin: Admin, names: Iterable[str]) -> dict[str, tuple[ConfigEntry, ...]]:
    """Every config of each topic."""
    wanted = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    described: dict[str, tuple[ConfigEntry, ...]] = {}
    for start in range(0, len(wanted), TOPICS_PER_REQUEST_MAX):
        found = admin.describe_configs(wanted[start : start + TOPICS_PER_REQUEST_MAX])
        described.update((resource.name, entries) for resource, entries in found.items())
    return described


def topic_details(admin: Admin, topics: Iterable[TopicDescription]) -> list[TopicDetails]:
    found = list(topics)
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
    """Bytes by partition and broker; none where the broker does not tell."""
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
        _offset(starts.get(name)),
        _offset(ends.get(name)),
        sizes.get((name, partition.leader), UNKNOWN),
    )


def _offset(found: OffsetAt | None) -> int:
    return found.offset if found is not None and found.error == ErrorCode.NONE else UNKNOWN


def print_details(topic: TopicDetails, *, all_configs: bool) -> None:
    records = sum(
        partition.end_offset - partition.start_offset for partition in topic.partitions if partition.end_offset >= 0
    )
    size = sum(max(partition.size_bytes, 0) for partition in topic.partitions)
    kind = "internal topic" if topic.internal else "topic"
    click.echo(
        f"{kind} {clean(topic.name)}  id {topic.topic_id}  {count_text(len(topic.partitions), 'partition')}  "
        f"{count_text(records, 'offset')}  {size_text(size)}"
    )
    columns = ("partition", "leader", "epoch", "replicas", "in sync", "start", "end", "size")
    print_table(
        columns,
        (
            (
                partition.partition,
                "none" if partition.leader == NO_NODE else partition.leader,
                partition.leader_epoch,
                ",".join(map(str, partition.replicas)),
                ",".join(map(str, partition.isr)),
                _known(partition.start_offset),
                _known(partition.end_offset),
                size_text(partition.size_bytes),
            )
            for partition in topic.partitions
        ),
        right=("partition", "leader", "epoch", "start", "end", "size"),
        styles={"leader": lambda cell: "bold red" if cell == "none" else ""},
    )
    shown = [entry for entry in topic.configs if all_configs or entry.source == ConfigSource.TOPIC]
    if shown:
        click.echo()
        rows = ((entry.name, entry.value or "", config_source_text(entry.source)) for entry in shown)
        print_table(("config", "value", "from"), rows)


def _known(offset: int) -> str:
    return "unknown" if offset == UNKNOWN else str(offset)


def config_source_text(source: ConfigSource) -> str:
    return {
        ConfigSource.TOPIC: "topic",
        ConfigSource.DYNAMIC_BROKER: "broker, dynamic",
        ConfigSource.DYNAMIC_DEFAULT_BROKER: "all brokers, dynamic",
        ConfigSource.STATIC_BROKER: "broker, at start",
        ConfigSource.DEFAULT: "default",
    }.get(source, "unknown")
