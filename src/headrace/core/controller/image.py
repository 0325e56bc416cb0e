"""The metadata image: topics, partitions, brokers, configs, features, users, quotas and producer ids.

`apply` is the only way to change an image. The broker reads the committed one; the controller decides on its own,
which also holds appended but uncommitted records. Iteration follows the order of the records, never a hash.
Partitions are packed (`partition_states`), and a copy shares its topics with the original until one of the two changes
them: both are cheap with a million partitions.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from headrace.core.access.acls import AccessRule
from headrace.core.controller.broker_image import BrokerImage
from headrace.core.controller.broker_index import BrokerIndex
from headrace.core.controller.partition_states import PartitionState, PartitionStates, Tables
from headrace.core.controller.records import (
    METADATA_VERSION,
    METADATA_VERSION_MIN,
    REPLICATION_LEVEL,
    AccessRuleRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    Endpoint,
    FeatureLevelRecord,
    LoginSecretRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    RecordError,
    RegisterBrokerRecord,
    RemoveAccessRuleRecord,
    RemoveDelegationTokenRecord,
    RemoveScramCredentialRecord,
    RemoveTopicRecord,
    ResourceKind,
    ScramCredentialRecord,
    TopicPartitionsRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from headrace.core.controller.topic_image import TopicImage
from headrace.core.quotas.entities import Entity
from headrace.model.ids import NO_NODE, LeaderEpoch, NodeId, TopicId

ConfigResource = tuple[int, str]
"""A ResourceKind and a name; the empty broker name stands for every broker."""

NO_CONFIGS: Mapping[str, str] = {}
_NO_QUOTAS: Mapping[str, float] = {}


class MetadataImage:
    __slots__ = (
        "_free_numbers",
        "_leaderless_index",
        "_member_index",
        "_numbered",
        "_owner",
        "_tables",
        "access_rules",
        "brokers",
        "client_quotas",
        "configs",
        "features",
        "login_secret",
        "next_producer_id",
        "partition_count",
        "preferred_leaders",
        "reassignments",
        "scram",
        "tokens",
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
        self.scram: dict[tuple[str, int], ScramCredentialRecord] = {}
        """Credentials by user and mechanism."""
        self.access_rules: dict[bytes, AccessRule] = {}
        """Access rules by their ids."""
        self.client_quotas: dict[Entity, dict[str, float]] = {}
        """Quotas by entity and key."""
        self.tokens: dict[str, DelegationTokenRecord] = {}
        """Delegation tokens by their ids."""
        self.login_secret = b""
        """Empty before the first credential."""
        self.next_producer_id = 0
        self.partition_count = 0
        self.preferred_leaders: Counter[NodeId] = Counter()
        """The number of partitions by the first of their replicas."""
        self.reassignments: dict[tuple[TopicId, int], None] = {}
        """The partitions that are being reassigned; a dictionary serves as an ordered set."""
        self.version = 0
        """The offset of the metadata log up to which the image is applied. The owner of the image sets it: not every
        entry of the log is a record. While it stays the same, the whole image does.
        """
        self._tables = Tables()
        self._owner: object = object()
        """A mark of the topics that no copy shares."""
        self._member_index = BrokerIndex()
        """Topics by the brokers that have an in-sync or eligible replica of one of their partitions."""
        self._leaderless_index = BrokerIndex()
        """Topics by the brokers that have a replica of one of their partitions that has no leader."""
        self._numbered: list[TopicId | None] = []
        """Topics by number; None where the topic was deleted and its number is free."""
        self._free_numbers: list[int] = []

    def __eq__(self, other: object) -> bool:
        """Compare contents and order; the version does not matter."""
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
        """Return the configs set for this topic; the others have their defaults."""
        return self.configs.get((ResourceKind.TOPIC, name), NO_CONFIGS)

    def broker_configs(self, node_id: NodeId) -> Mapping[str, str]:
        return self.configs.get((ResourceKind.BROKER, str(node_id)), NO_CONFIGS)

    def cluster_configs(self) -> Mapping[str, str]:
        """Return the configs set for every broker."""
        return self.configs.get((ResourceKind.BROKER, ""), NO_CONFIGS)

    def endpoints(self, listener: str) -> list[tuple[NodeId, Endpoint]]:
        """Return the address of each unfenced broker at that listener; brokers without it are left out."""
        return [
            (node_id, broker.endpoints[listener])
            for node_id, broker in self.brokers.items()
            if listener in broker.endpoints and not broker.fenced
        ]

    @property
    def replicates(self) -> bool:
        """Return whether partitions may have several replicas: every broker knows how to copy records."""
        return self.metadata_version >= REPLICATION_LEVEL

    def partitions_of_member(self, node_id: NodeId) -> Iterator[tuple[TopicImage, list[int]]]:
        """Iterate over the partitions of which this broker has an in-sync or eligible replica, topic by topic."""
        naming = self._tables.naming(node_id)
        return self._indexed(self._member_index, node_id, lambda states: states.members_in(naming))

    def leaderless_partitions_on(self, node_id: NodeId) -> Iterator[tuple[TopicImage, list[int]]]:
        """Iterate over the partitions without a leader of which this broker has a replica, topic by topic."""
        return self._indexed(self._leaderless_index, node_id, lambda states: states.leaderless_on(node_id))

    def _indexed(
        self, index: BrokerIndex, node_id: NodeId, find: Callable[[PartitionStates], list[int]]
    ) -> Iterator[tuple[TopicImage, list[int]]]:
        def found_in(number: int) -> list[int]:
            topic_id = self._numbered[number]
            return [] if topic_id is None else find(self.topics_by_id[topic_id].partitions)

        for number, partitions in index.partitions_of(node_id, found_in).items():
            topic_id = self._numbered[number]
            assert topic_id is not None
            yield self.topics_by_id[topic_id], partitions

    # Changes

    def apply(self, record: Record) -> None:
        match record:
            case PartitionRecord():
                self._apply_partition(record)
            case PartitionChangeRecord():
                self._apply_partition_change(record)
            case TopicPartitionsRecord():
                self._apply_topic_partitions(record)
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
            case BrokerRegistrationChangeRecord():
                self._apply_broker_change(record)
            case UnregisterBrokerRecord():
                del self.brokers[self._broker(record.node_id, record.broker_epoch).node_id]
            case FeatureLevelRecord():
                self._apply_feature(record)
            case ScramCredentialRecord():
                self.scram[record.name, record.mechanism] = record
            case RemoveScramCredentialRecord():
                if self.scram.pop((record.name, record.mechanism), None) is None:
                    raise RecordError("a record removes a credential that does not exist")
            case AccessRuleRecord():
                self.access_rules[record.rule_id] = _rule_of(record)
            case RemoveAccessRuleRecord():
                if self.access_rules.pop(record.rule_id, None) is None:
                    raise RecordError("a record removes an access rule that does not exist")
            case ClientQuotaRecord():
                self._apply_quota(record)
            case DelegationTokenRecord():
                self.tokens[record.token_id] = record
            case RemoveDelegationTokenRecord():
                if self.tokens.pop(record.token_id, None) is None:
                    raise RecordError("a record removes a delegation token that does not exist")
            case LoginSecretRecord():
                self.login_secret = record.secret
            case _:
                raise RecordError(f"{type(record).__name__} does not belong in the metadata log")

    def _apply_topic(self, record: TopicRecord) -> None:
        if record.name in self.topics or record.topic_id in self.topics_by_id:
            raise RecordError(f'topic "{record.name}" ({record.topic_id.hex()}) is created twice')
        if self._free_numbers:
            number = self._free_numbers.pop()
            self._numbered[number] = record.topic_id
        else:
            number = len(self._numbered)
            self._numbered.append(record.topic_id)
        states = PartitionStates(self._tables)
        self._store(TopicImage(record.name, record.topic_id, states, number=number, owner=self._owner))

    def _apply_partition(self, record: PartitionRecord) -> None:
        topic = self._owned_topic(record.topic_id)
        if record.partition != len(topic.partitions):
            raise RecordError(f"partition {record.partition} follows {len(topic.partitions)} others of its topic")
        state = PartitionState(
            record.replicas,
            record.isr,
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            record.directories,
        )
        topic.partitions.append(state)
        self._index(topic, record.partition, state)
        self.partition_count += 1
        self.preferred_leaders.update(state.replicas[:1])

    def _apply_topic_partitions(self, record: TopicPartitionsRecord) -> None:
        topic = self._owned_topic(record.topic_id)
        self.partition_count += topic.partitions.load(record)
        self.preferred_leaders.update(topic.partitions.preferred_leaders(record.first))
        for node_id in topic.partitions.members(record.first):
            self._member_index.add(node_id, topic.number)
        for node_id in topic.partitions.leaderless_nodes(record.first):
            self._leaderless_index.add(node_id, topic.number)
        for index in topic.partitions.moving(record.first):
            self.reassignments[record.topic_id, index] = None

    def _apply_partition_change(self, record: PartitionChangeRecord) -> None:
        topic = self._owned_topic(record.topic_id)
        if record.partition >= len(topic.partitions):
            raise RecordError(f"partition {record.partition} is changed, its topic has {len(topic.partitions)}")
        state = topic.partitions[record.partition]
        changed = PartitionState(
            state.replicas if record.replicas is None else record.replicas,
            state.isr if record.isr is None else record.isr,
            state.leader if record.leader is None else record.leader,
            state.leader_epoch if record.leader is None else LeaderEpoch(state.leader_epoch + 1),
            state.partition_epoch + 1,
            state.directories if record.directories is None else record.directories,
            state.elr if record.elr is None else record.elr,
            state.last_known_elr if record.last_known_elr is None else record.last_known_elr,
            state.adding if record.adding is None else record.adding,
            state.removing if record.removing is None else record.removing,
        )
        topic.partitions.replace(record.partition, changed)
        self._index(topic, record.partition, changed)
        if changed.replicas != state.replicas:
            self.preferred_leaders.subtract(state.replicas[:1])
            self.preferred_leaders.update(changed.replicas[:1])

    def _index(self, topic: TopicImage, partition: int, state: PartitionState) -> None:
        for node_id in (*state.isr, *state.elr):
            self._member_index.add(node_id, topic.number)
        if state.leader == NO_NODE:
            for node_id in state.replicas:
                self._leaderless_index.add(node_id, topic.number)
        if state.adding or state.removing:
            self.reassignments[topic.topic_id, partition] = None
        elif self.reassignments:
            self.reassignments.pop((topic.topic_id, partition), None)

    def _apply_remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self._topic(record.topic_id)
        del self.topics_by_id[record.topic_id]
        del self.topics[topic.name]
        self._numbered[topic.number] = None
        self._free_numbers.append(topic.number)
        self.partition_count -= len(topic.partitions)
        self.preferred_leaders.subtract(topic.partitions.preferred_leaders())
        self.configs.pop((ResourceKind.TOPIC, topic.name), None)
        for moving in [moving for moving in self.reassignments if moving[0] == record.topic_id]:
            del self.reassignments[moving]

    def _apply_config(self, record: ConfigRecord) -> None:
        """Replace the configs of the resource: the former ones may be those of a copy too."""
        resource = (record.resource_kind, record.resource_name)
        configs = dict(self.configs.get(resource, NO_CONFIGS))
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value
        if configs:
            self.configs[resource] = configs
        else:
            self.configs.pop(resource, None)

    def _apply_quota(self, record: ClientQuotaRecord) -> None:
        """Replace the quotas of the entity: the former ones may be those of a copy too."""
        quotas = dict(self.client_quotas.get(record.entity, _NO_QUOTAS))
        if record.value is not None:
            quotas[record.key] = record.value
        elif quotas.pop(record.key, None) is None:
            raise RecordError("a record removes a quota that does not exist")
        if quotas:
            self.client_quotas[record.entity] = quotas
        else:
            del self.client_quotas[record.entity]

    def _apply_broker(self, record: RegisterBrokerRecord) -> None:
        self.brokers[record.node_id] = BrokerImage(
            record.node_id,
            record.incarnation,
            record.broker_epoch,
            {endpoint.listener: endpoint for endpoint in record.endpoints},
            record.rack,
            record.host,
            record.fenced,
            record.features,
            record.directories,
            record.is_controller,
            record.metadata_directory,
            record.in_controlled_shutdown,
            record.boot_id,
            record.impaired,
        )

    def _apply_broker_change(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self._broker(record.node_id, record.broker_epoch)
        self.brokers[broker.node_id] = broker._replace(
            fenced=broker.fenced if record.fenced is None else record.fenced,
            in_controlled_shutdown=(
                broker.in_controlled_shutdown
                if record.in_controlled_shutdown is None
                else record.in_controlled_shutdown
            ),
            impaired=broker.impaired if record.impaired is None else record.impaired,
        )

    def _broker(self, node_id: NodeId, broker_epoch: int) -> BrokerImage:
        broker = self.brokers.get(node_id)
        if broker is None or broker.broker_epoch != broker_epoch:
            raise RecordError(f"a record names broker {node_id} with epoch {broker_epoch}, which is not registered")
        return broker

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

    def _owned_topic(self, topic_id: TopicId) -> TopicImage:
        """Return a topic that may be changed, which no copy of this image shares."""
        topic = self._topic(topic_id)
        if topic.owner is self._owner:
            return topic
        states = topic.partitions.copy()
        return self._store(TopicImage(topic.name, topic_id, states, number=topic.number, owner=self._owner))

    def _store(self, topic: TopicImage) -> TopicImage:
        self.topics[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic
        return topic

    # Copies

    def replace_by(self, other: "MetadataImage") -> None:
        """Take the contents and the version of another image, which is not used afterwards."""
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))

    def copy(self) -> "MetadataImage":
        """Return a separate image with the same contents; the two share every topic that neither has changed."""
        twin = MetadataImage()
        self._owner = object()  # from now on neither of the two owns the topics that exist
        twin.topics = self.topics.copy()
        twin.topics_by_id = self.topics_by_id.copy()
        twin.brokers = self.brokers.copy()
        twin.configs = self.configs.copy()
        twin.features = self.features.copy()
        twin.scram = self.scram.copy()
        twin.login_secret = self.login_secret
        twin.access_rules = self.access_rules.copy()
        twin.client_quotas = self.client_quotas.copy()
        twin.tokens = self.tokens.copy()
        twin.next_producer_id = self.next_producer_id
        twin.partition_count = self.partition_count
        twin.preferred_leaders = self.preferred_leaders.copy()
        twin.version = self.version
        twin._tables = self._tables
        twin._member_index = self._member_index.copy()
        twin.reassignments = self.reassignments.copy()
        twin._leaderless_index = self._leaderless_index.copy()
        twin._numbered = self._numbered.copy()
        twin._free_numbers = self._free_numbers.copy()
        return twin

    def snapshot_records(self) -> Iterator[Record]:
        """Yield the records that, applied to an empty image, give this one."""
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
                broker.fenced,
                broker.features,
                broker.directories,
                broker.is_controller,
                broker.metadata_directory,
                broker.in_controlled_shutdown,
                broker.boot_id,
                broker.impaired,
            )
        for topic in self.topics.values():
            yield TopicRecord(topic.name, topic.topic_id)
            yield from topic.partitions.snapshot_records(topic.topic_id)
        for (kind, resource_name), configs in self.configs.items():
            for name, value in configs.items():
                yield ConfigRecord(kind, resource_name, name, value)
        if self.login_secret:
            yield LoginSecretRecord(self.login_secret)
        yield from self.scram.values()
        for rule_id, rule in self.access_rules.items():
            yield AccessRuleRecord(rule_id, *rule)
        for entity, quotas in self.client_quotas.items():
            for key, limit in quotas.items():
                yield ClientQuotaRecord(entity, key, limit)
        yield from self.tokens.values()
        if self.next_producer_id:
            yield ProducerIdsRecord(NodeId(-1), self.next_producer_id)


def _rule_of(record: AccessRuleRecord) -> AccessRule:
    return AccessRule(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission,
    )
