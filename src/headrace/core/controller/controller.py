"""The controller: one method per command, each returning records and a response without changing state.

State changes only by `apply`. The host appends a decision's records, applies them at once, so that the next command
decides on current state, and holds the response until they are committed; when an append fails, it discards this object
and builds another one from the committed records.
"""

from collections.abc import Sequence

from headrace.core.controller import configs, topics
from headrace.core.controller.commands import (
    PRODUCER_IDS_PER_BLOCK,
    BrokerRegistration,
    ConfigAlteration,
    ConfigReplacement,
    Decision,
    NewTopic,
    PartitionGrowth,
    ProducerIdBlock,
    TopicToDelete,
)
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import (
    BATCH_VERSION,
    BATCH_VERSION_LATEST,
    GROUP_VERSION,
    GROUP_VERSION_LATEST,
    METADATA_VERSION,
    METADATA_VERSION_LATEST,
    SCAN_VERSION,
    SCAN_VERSION_LATEST,
    TRANSACTION_VERSION,
    TRANSACTION_VERSION_LATEST,
    Endpoint,
    FeatureLevelRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    Record,
    RegisterBrokerRecord,
)
from headrace.core.controller.settings import ControllerSettings
from headrace.model.ids import NodeId, ProducerId, TopicId

PRODUCER_ID_MAX = 2**63 - 1


_FEATURES = (
    (METADATA_VERSION, METADATA_VERSION_LATEST),
    (GROUP_VERSION, GROUP_VERSION_LATEST),
    (TRANSACTION_VERSION, TRANSACTION_VERSION_LATEST),
    (BATCH_VERSION, BATCH_VERSION_LATEST),
    (SCAN_VERSION, SCAN_VERSION_LATEST),
)
"""The features of a new cluster, which a cluster of an earlier version gets at its next start."""


class Controller:
    __slots__ = ("image", "settings")

    def __init__(self, image: MetadataImage, settings: ControllerSettings) -> None:
        self.image = image
        self.settings = settings

    def apply(self, record: Record) -> None:
        self.image.apply(record)

    # Topics

    def create_topics(
        self, new_topics: Sequence[NewTopic], *, topic_ids: Sequence[TopicId], validate_only: bool = False
    ) -> topics.TopicDecision:
        return topics.create_topics(
            self.image, self.settings, new_topics, topic_ids=topic_ids, validate_only=validate_only
        )

    def delete_topics(self, doomed: Sequence[TopicToDelete]) -> topics.TopicDecision:
        return topics.delete_topics(self.image, self.settings, doomed)

    def create_partitions(
        self, growths: Sequence[PartitionGrowth], *, validate_only: bool = False
    ) -> topics.TopicDecision:
        return topics.create_partitions(self.image, self.settings, growths, validate_only=validate_only)

    # Configs

    def alter_configs(
        self, alterations: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> configs.ConfigDecision:
        return configs.alter_configs(self.image, self.settings, alterations, validate_only=validate_only)

    def replace_configs(
        self, replacements: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> configs.ConfigDecision:
        return configs.replace_configs(self.image, self.settings, replacements, validate_only=validate_only)

    # Brokers

    def allocate_producer_ids(self, node_id: NodeId) -> Decision[ProducerIdBlock]:
        """Allocate a block of unused producer ids."""
        block = ProducerIdBlock(
            ProducerId(self.image.next_producer_id), ProducerId(self.image.next_producer_id + PRODUCER_IDS_PER_BLOCK)
        )
        assert block.end <= PRODUCER_ID_MAX, "all producer ids are used up"
        return Decision((ProducerIdsRecord(node_id, block.end),), block)

    def register_broker(
        self, node_id: NodeId, *, incarnation: bytes, endpoints: Sequence[Endpoint], rack: str | None, host: str
    ) -> Decision[BrokerRegistration]:
        """Register a broker that started. Its partitions begin a new leader epoch, which separates the two runs in its
        log.
        """
        broker_epoch = self.image.version
        records: list[Record] = []
        records.extend(FeatureLevelRecord(name, level) for name, level in _FEATURES if name not in self.image.features)
        records.append(RegisterBrokerRecord(node_id, incarnation, broker_epoch, tuple(endpoints), rack, host))
        records.extend(
            PartitionChangeRecord(topic.topic_id, partition.partition, leader=node_id)
            for topic, partition in self.image.partitions_led_by(node_id)
        )
        return Decision(tuple(records), BrokerRegistration(broker_epoch))
