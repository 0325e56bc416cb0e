"""The changes made by a run of committed records, for components that follow the image."""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import (
    AccessRuleRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    RemoveAccessRuleRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    ResourceKind,
    TopicRecord,
    UnregisterBrokerRecord,
)
from headrace.core.controller.topic_image import TopicImage
from headrace.model.ids import TopicId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataDelta:
    """Changes in an order in which they can be executed: deletions, creations, growth, changes, configs.

    A topic that was created and deleted between two commits is left out. A topic that was deleted and created again
    appears in both lists, with two ids.
    """

    topics_deleted: tuple[TopicImage, ...] = ()
    topics_created: tuple[TopicImage, ...] = ()
    partitions_added: tuple[TopicPartition, ...] = ()
    """New partitions of topics that existed before."""
    partitions_changed: tuple[TopicPartition, ...] = ()
    """Partitions whose leader, epochs, replicas or in-sync set changed."""
    topic_configs_changed: tuple[str, ...] = ()
    """Names of topics that existed before and still do. The number of replicas decides on configs too."""
    broker_configs_changed: tuple[str, ...] = ()
    """Node ids as text; the empty one stands for every broker."""
    rules_changed: bool = False
    """An access rule was created or deleted."""
    quotas_changed: bool = False
    """A quota was set or removed."""
    tokens_changed: bool = False
    """A delegation token was created, renewed or removed."""
    brokers_changed: bool = False
    """A broker was registered, fenced, unfenced or unregistered, or began its controlled shutdown."""


def apply_with_delta(image: MetadataImage, records: Sequence[Record]) -> MetadataDelta:
    """Apply the records and return what they changed."""
    observer = _Observer(image)
    for record in records:
        observer.before(record)
        image.apply(record)
    return observer.delta()


class _Observer:
    """Collects changes; dictionaries serve as ordered sets."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._created: dict[TopicId, None] = {}
        self._deleted: list[TopicImage] = []
        self._added: dict[tuple[TopicId, int], None] = {}
        self._changed: dict[tuple[TopicId, int], None] = {}
        self._topic_configs: dict[str, None] = {}
        self._broker_configs: dict[str, None] = {}
        self._brokers = False
        self._rules = False
        self._quotas = False
        self._tokens = False

    def before(self, record: Record) -> None:
        match record:
            case TopicRecord():
                self._created[record.topic_id] = None
            case PartitionRecord() if record.topic_id not in self._created:
                self._added[record.topic_id, record.partition] = None
            case PartitionChangeRecord() if record.topic_id not in self._created:
                self._changed[record.topic_id, record.partition] = None
                if record.replicas is not None and record.topic_id in self._image.topics_by_id:
                    self._topic_configs[self._image.topics_by_id[record.topic_id].name] = None
            case RemoveTopicRecord():
                if record.topic_id in self._created:
                    del self._created[record.topic_id]
                elif record.topic_id in self._image.topics_by_id:
                    self._deleted.append(self._image.topics_by_id[record.topic_id])
            case ConfigRecord(resource_kind=ResourceKind.TOPIC):
                self._topic_configs[record.resource_name] = None
            case ConfigRecord(resource_kind=ResourceKind.BROKER):
                self._broker_configs[record.resource_name] = None
            case RegisterBrokerRecord() | BrokerRegistrationChangeRecord() | UnregisterBrokerRecord():
                self._brokers = True
            case AccessRuleRecord() | RemoveAccessRuleRecord():
                self._rules = True
            case ClientQuotaRecord():
                self._quotas = True
            case DelegationTokenRecord() | RemoveDelegationTokenRecord():
                self._tokens = True
            case _:
                pass

    def delta(self) -> MetadataDelta:
        by_id = self._image.topics_by_id
        created = tuple(by_id[topic_id] for topic_id in self._created)
        new_names = {topic.name for topic in created}
        return MetadataDelta(
            topics_deleted=tuple(self._deleted),
            topics_created=created,
            partitions_added=self._surviving(self._added),
            partitions_changed=self._surviving({key: None for key in self._changed if key not in self._added}),
            topic_configs_changed=tuple(
                name for name in self._topic_configs if name in self._image.topics and name not in new_names
            ),
            broker_configs_changed=tuple(self._broker_configs),
            rules_changed=self._rules,
            quotas_changed=self._quotas,
            tokens_changed=self._tokens,
            brokers_changed=self._brokers,
        )

    def _surviving(self, partitions: dict[tuple[TopicId, int], None]) -> tuple[TopicPartition, ...]:
        by_id = self._image.topics_by_id
        return tuple(TopicPartition(by_id[topic_id].name, index) for topic_id, index in partitions if topic_id in by_id)


def delta_between(old: MetadataImage, new: MetadataImage) -> MetadataDelta:
    """Return the changes that lead from one image to another, for a replica that received a snapshot."""
    added: list[TopicPartition] = []
    changed: list[TopicPartition] = []
    for topic_id, topic in new.topics_by_id.items():
        before = old.topics_by_id.get(topic_id)
        if before is None or before.partitions == topic.partitions:
            continue
        for index, state in enumerate(topic.partitions):
            if index >= len(before.partitions):
                added.append(TopicPartition(topic.name, index))
            elif state != before.partitions[index]:
                changed.append(TopicPartition(topic.name, index))
    resized = [
        topic.name
        for topic_id, topic in new.topics_by_id.items()
        if topic_id in old.topics_by_id and topic.replication_factor != old.topics_by_id[topic_id].replication_factor
    ]
    created = [topic for topic_id, topic in new.topics_by_id.items() if topic_id not in old.topics_by_id]
    new_names = {topic.name for topic in created}
    resources = [key for key in {**old.configs, **new.configs} if old.configs.get(key) != new.configs.get(key)]
    return MetadataDelta(
        topics_deleted=tuple(topic for topic_id, topic in old.topics_by_id.items() if topic_id not in new.topics_by_id),
        topics_created=tuple(created),
        partitions_added=tuple(added),
        partitions_changed=tuple(changed),
        topic_configs_changed=tuple(
            dict.fromkeys(
                (
                    *(
                        name
                        for kind, name in resources
                        if kind == ResourceKind.TOPIC and name in new.topics and name not in new_names
                    ),
                    *resized,
                )
            )
        ),
        broker_configs_changed=tuple(name for kind, name in resources if kind == ResourceKind.BROKER),
        rules_changed=old.access_rules != new.access_rules,
        quotas_changed=old.client_quotas != new.client_quotas,
        tokens_changed=old.tokens != new.tokens,
        brokers_changed=old.brokers != new.brokers,
    )
