"""What the metadata records add up to: topics, partitions, brokers, configs, features, producer ids.

`apply` is the only way to change an image. The broker reads the committed one; the controller decides on its own,
which also holds what is appended but not yet committed. Iteration follows the order of the records, never a hash.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from headrace.core.controller.records import (
    METADATA_VERSION,
    METADATA_VERSION_MIN,
    ConfigRecord,
    Endpoint,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    RecordError,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    ResourceKind,
    TopicRecord,
)
from headrace.model.ids import LeaderEpoch, NodeId, TopicId, TopicPartition

ConfigResource = tuple[int, str]
"""A kind of ResourceKind and a name; the empty broker name stands for every broker."""

NO_CONFIGS: Mapping[str, str] = {}


class PartitionState(NamedTuple):
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: int
    directories: tuple[bytes, ...]


class TopicImage:
    """One topic; `partitions` is indexed by partition number."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: TopicId, partitions: list[PartitionState]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicImage):
            return NotImplemented
        return (self.name, self.topic_id, self.partitions) == (other.name, other.topic_id, other.partitions)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TopicImage({self.name!r}, {self.topic_id.hex()}, {self.partitions!r})"


class BrokerImage(NamedTuple):
    node_id: NodeId
    incarnation: bytes
    broker_epoch: int
    endpoints: Mapping[str, Endpoint]
    """By listener name."""
    rack: str | None
    host: str


class MetadataImage:
    __slots__ = (
        "brokers",
        "configs",
        "features",
        "next_producer_id",
        "partition_count",
        "topics",
        "topics_by_id",
        "version",
    )

    def __init__(self) -> None:
        self.topics: dict[str, TopicImage] = {}
        self.topics_by_id: dict[TopicId, TopicImage] = {}
        self.brokers: dict[NodeId, BrokerImage] = {}
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.partition_count = 0
        self.version = 0
        """Counts the records applied: while it stands still, so does everything else here."""

    def __eq__(self, other: object) -> bool:
        """Same contents in the same order; how many records it took does not matter."""
        if not isinstance(other, MetadataImage):
            return NotImplemented
        return list(self.snapshot_records()) == list(other.snapshot_records())

    __hash__ = None  # type: ignore[assignment]

    # Lookups

    @property
    def metadata_version(self) -> int:
        return self.features.get(METADATA_VERSION, METADATA_VERSION_MIN)

    def partition(self, name: str, index: int) -> PartitionState | None:
        topic = self.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        return topic.partitions[index]

    def topic_configs(self, name: str) -> Mapping[str, str]:
        """What was set for this topic; what was not has its default."""
        return self.configs.get((ResourceKind.TOPIC, name), NO_CONFIGS)

    def broker_configs(self, node_id: NodeId) -> Mapping[str, str]:
        return self.configs.get((ResourceKind.BROKER, str(node_id)), NO_CONFIGS)

    def cluster_configs(self) -> Mapping[str, str]:
        """What was set for every broker."""
        return self.configs.get((ResourceKind.BROKER, ""), NO_CONFIGS)

    def endpoints(self, listener: str) -> list[tuple[NodeId, Endpoint]]:
        """Where clients of that listener reach each broker; brokers without that listener are left out."""
        return [
            (node_id, broker.endpoints[listener])
            for node_id, broker in self.brokers.items()
            if listener in broker.endpoints
        ]

    def partitions_led_by(self, node_id: NodeId) -> Iterator[tuple[TopicImage, TopicPartition]]:
        for topic in self.topics.values():
            for index, state in enumerate(topic.partitions):
                if state.leader == node_id:
                    yield topic, TopicPartition(topic.name, index)

    # Changes

    def apply(self, record: Record) -> None:
        match record:
            case PartitionRecord():
                self._apply_partition(record)
            case PartitionChangeRecord():
                self._apply_partition_change(record)
            case TopicRecord():
                self._apply_topic(record)
            case RemoveTopicRecord():
                self._apply_remove_topic(record)
            case ConfigRecord():
                self._apply_config(record)
            case ProducerIdsRecord():
                self.next_producer_id = record.next_producer_id
            case RegisterBrokerRecord():
                self._apply_broker(record)
            case FeatureLevelRecord():
                self._apply_feature(record)
            case _:
                raise RecordError(f"{type(record).__name__} does not belong in the metadata log")
        self.version += 1

    def _apply_topic(self, record: TopicRecord) -> None:
        if record.name in self.topics or record.topic_id in self.topics_by_id:
            raise RecordError(f'topic "{record.name}" ({record.topic_id.hex()}) is created twice')
        topic = TopicImage(record.name, record.topic_id, [])
        self.topics[record.name] = topic
        self.topics_by_id[record.topic_id] = topic

    def _apply_partition(self, record: PartitionRecord) -> None:
        partitions = self._topic(record.topic_id).partitions
        if record.partition != len(partitions):
            raise RecordError(f"partition {record.partition} follows {len(partitions)} others of its topic")
        state = PartitionState(
            record.replicas,
            record.isr,
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            record.directories,
        )
        partitions.append(state)
        self.partition_count += 1

    def _apply_partition_change(self, record: PartitionChangeRecord) -> None:
        partitions = self._topic(record.topic_id).partitions
        if record.partition >= len(partitions):
            raise RecordError(f"partition {record.partition} is changed, its topic has {len(partitions)}")
        state = partitions[record.partition]
        partitions[record.partition] = PartitionState(
            state.replicas if record.replicas is None else record.replicas,
            state.isr if record.isr is None else record.isr,
            state.leader if record.leader is None else record.leader,
            state.leader_epoch if record.leader is None else LeaderEpoch(state.leader_epoch + 1),
            state.partition_epoch + 1,
            state.directories if record.directories is None else record.directories,
        )

    def _apply_remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self._topic(record.topic_id)
        del self.topics_by_id[record.topic_id]
        del self.topics[topic.name]
        self.partition_count -= len(topic.partitions)
        self.configs.pop((ResourceKind.TOPIC, topic.name), None)

    def _apply_config(self, record: ConfigRecord) -> None:
        resource = (record.resource_kind, record.resource_name)
        if record.value is not None:
            self.configs.setdefault(resource, {})[record.name] = record.value
            return
        configs = self.configs.get(resource)
        if configs is not None:
            configs.pop(record.name, None)
            if not configs:
                del self.configs[resource]

    def _apply_broker(self, record: RegisterBrokerRecord) -> None:
        self.brokers[record.node_id] = BrokerImage(
            record.node_id,
            record.incarnation,
            record.broker_epoch,
            {endpoint.listener: endpoint for endpoint in record.endpoints},
            record.rack,
            record.host,
        )

    def _apply_feature(self, record: FeatureLevelRecord) -> None:
        if record.level:
            self.features[record.name] = record.level
        else:
            self.features.pop(record.name, None)

    def _topic(self, topic_id: TopicId) -> TopicImage:
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise RecordError(f"a record names topic {topic_id.hex()}, which does not exist")
        return topic

    # Copies

    def copy(self) -> "MetadataImage":
        """An image of its own with the same contents; what it shares is immutable."""
        twin = MetadataImage()
        for topic in self.topics.values():
            copied = TopicImage(topic.name, topic.topic_id, topic.partitions.copy())
            twin.topics[topic.name] = copied
            twin.topics_by_id[topic.topic_id] = copied
        twin.brokers = self.brokers.copy()
        twin.configs = {resource: configs.copy() for resource, configs in self.configs.items()}
        twin.features = self.features.copy()
        twin.next_producer_id = self.next_producer_id
        twin.partition_count = self.partition_count
        twin.version = self.version
        return twin

    def snapshot_records(self) -> Iterator[Record]:
        """The records that, applied to an empty image, give this one."""
        for name, level in self.features.items():
            yield FeatureLevelRecord(name, level)
        for broker in self.brokers.values():
            yield RegisterBrokerRecord(
                broker.node_id,
                broker.incarnation,
                broker.broker_epoch,
                tuple(broker.endpoints.values()),
                broker.rack,
                broker.host,
            )
        for topic in self.topics.values():
            yield TopicRecord(topic.name, topic.topic_id)
            for index, state in enumerate(topic.partitions):
                yield PartitionRecord(topic.topic_id, index, *state)
        for (kind, resource_name), configs in self.configs.items():
            for name, value in configs.items():
                yield ConfigRecord(kind, resource_name, name, value)
        if self.next_producer_id:
            yield ProducerIdsRecord(NodeId(-1), self.next_producer_id)
