"""Values of the client's API: topics, configs, offsets and records."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from headrace.client.errors import BrokerError
from headrace.model.access import ScramMechanism as ScramMechanism
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicId, TopicPartition

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # with a default: a Consumer without a type reads anything (PEP 696)

    Value = TypeVar("Value", default=Any)
else:
    from typing import TypeVar

    Value = TypeVar("Value")

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
"""Instead of a time in milliseconds: the end of the partition, its beginning, and its newest record."""

EARLIEST_LOCAL = -4
"""The start of the local log on the leader's disk; earlier records are in remote storage."""


class IsolationLevel(IntEnum):
    """Visibility of transactional records: all, or only those of committed transactions."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class ResourceType(IntEnum):
    """The kind of resource that a config belongs to."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigSource(IntEnum):
    """The origin of a config's value."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigResource(NamedTuple):
    type: ResourceType
    name: str


class Broker(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False
    """True for a registered broker that does not serve clients now; only such a description contains it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    cluster_id: str | None
    controller_id: int
    brokers: tuple[Broker, ...]


class ClusterInvitation(NamedTuple):
    """A token with which one other node may join the cluster, once; it is a secret until then."""

    token: str
    expiry_ms: int
    """The time at which it becomes invalid, in milliseconds of the epoch."""


class QuorumReplica(NamedTuple):
    """A node that keeps the metadata log."""

    node_id: int
    log_end_offset: int
    lag: int
    """Entries that the leader has and this replica is not known to have."""
    caught_up_ms: int | None
    """The last time at which it had everything that the leader has, in milliseconds of the epoch; None if unknown."""
    directory_id: bytes = bytes(16)
    heard_ms: int | None = None
    """The last time at which the leader heard from it, in milliseconds of the epoch; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumDescription:
    """The metadata quorum, as its leader, the active controller, sees it."""

    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


class FeatureDescription(NamedTuple):
    """A feature of the cluster (KIP-584)."""

    name: str
    level: int
    """The finalized level; 0 if the cluster does not use the feature."""
    level_min: int
    """The lowest level that the responding broker supports."""
    level_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    error: ErrorCode = ErrorCode.NONE
    eligible: tuple[int, ...] = ()
    """Eligible leader replicas: outside the ISR, but with all committed records (KIP-966); only if requested."""
    last_known: tuple[int, ...] = ()
    """Replicas that had all committed records until their machines may have lost some; only if requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    name: str
    topic_id: TopicId = NO_TOPIC_ID
    internal: bool = False
    error: ErrorCode = ErrorCode.NONE
    partitions: tuple[PartitionDescription, ...] = ()


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 partitions or replicas means the broker's default, and `assignments` replaces both."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] | None = None


class Outcome(NamedTuple):
    """The result of one change; `message` is the broker's explanation, if any."""

    error: ErrorCode
    message: str | None = None

    def check(self, what: str) -> None:
        """Raise BrokerError with this text first, unless the change succeeded."""
        if self.error:
            raise BrokerError(self.error, what, self.message)


class PartitionReassignment(NamedTuple):
    """A partition that moves: its replicas, those that it gains, and those that it will lose."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class DeletedRecords(NamedTuple):
    low_watermark: int
    error: ErrorCode


class OffsetAt(NamedTuple):
    """An offset of a partition; -1 if there is none, as for a time after the last record."""

    offset: int
    timestamp: int
    leader_epoch: int
    error: ErrorCode


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    name: str
    value: str | None
    source: ConfigSource
    is_default: bool
    read_only: bool
    sensitive: bool
    type: int = 0
    documentation: str | None = None
    synonyms: tuple[ConfigSynonym, ...] = ()


class ConfigChange(NamedTuple):
    operation: ConfigOperation
    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSize:
    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirDescription:
    node_id: int
    path: str
    error: ErrorCode
    total_bytes: int
    usable_bytes: int
    replicas: tuple[ReplicaSize, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConnection:
    """A client that is connected to a broker, as that broker sees it."""

    node_id: int
    connection_id: int
    """Number that the broker gives to another connection when this one has ended."""
    listener: str
    address: str
    client_id: str
    software_name: str
    """Empty for a client that does not tell its library (before KIP-511)."""
    software_version: str
    principal: str
    connected_ms: int
    idle_ms: int
    bytes_in: int
    """Received by the broker since the client connected."""
    bytes_out: int
    errors: int
    """Requests that were answered with an error."""
    topics_written: tuple[str, ...]
    topics_read: tuple[str, ...]


class TopicChangeKind(IntEnum):
    CREATED = 1
    DELETED = 2
    GREW = 3
    """The topic has more partitions."""


class ChangedTopic(NamedTuple):
    kind: TopicChangeKind
    topic: str
    topic_id: bytes
    partitions: int
    """Number of partitions now; 0 if the topic does not exist any more."""


class ChangedPartition(NamedTuple):
    """The state of a partition whose leader, replicas or in-sync set changed."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class RegisteredBroker(NamedTuple):
    node_id: int
    is_fenced: bool
    is_stopping: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataChanges:
    """Changes of the metadata up to a version: the state of what changed, at that version."""

    version: int
    is_complete: bool
    """False if the broker does not know all changes since the given version: read everything again."""
    topics: tuple[ChangedTopic, ...]
    partitions: tuple[ChangedPartition, ...]
    configs: tuple[tuple[int, str], ...]
    """Types and names of resources whose configs changed."""
    brokers: tuple[RegisteredBroker, ...] | None
    """All registered brokers, if one of them changed; otherwise None."""


class ActiveProducer(NamedTuple):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProducers:
    error: ErrorCode
    message: str | None
    producers: tuple[ActiveProducer, ...]


class ListedTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    transactional_id: str
    error: ErrorCode
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_at_ms: int
    """-1 before the first transaction."""
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTransaction:
    """A transaction that its producer handed over, for another client to commit or abort."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    """The partitions that it wrote to."""
    has_offsets: bool
    """True if it commits offsets of groups."""


class HangingTransaction(NamedTuple):
    """A transaction that is open in a partition although its coordinator does not know it: no coordinator will
    end it.
    """

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp: int


class ApiRange(NamedTuple):
    """The versions of one API that a broker serves."""

    api_key: int
    min_version: int
    max_version: int


class RecordMetadata(NamedTuple):
    """The position of a sent record; the offset is -1 if the broker did not return it (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class OffsetAndMetadata(NamedTuple):
    """A committed offset: that of the next record to read, with a note of the committing client."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class GroupIdentity(NamedTuple):
    """A group member, as needed to commit its offsets in a transaction."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class ConsumerRecord(NamedTuple, Generic[Value]):
    """A record as it was read. A tombstone has the value None, whatever its type is."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Value
    """Bytes or None, or the result of the deserializer."""
    headers: tuple[tuple[str, bytes | None], ...]


class ScramCredential(NamedTuple):
    mechanism: ScramMechanism
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewScramUser:
    """A user to add, or whose password to change."""

    name: str
    password: str = field(repr=False)
    mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_512
    iterations: int = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityQuotas:
    """Quotas of a user, a client id, both, or an address."""

    entity: Mapping[str, str | None]
    """Names by type, which is `user`, `client-id` or `ip`; None is the default, for names without a quota of their
    own.
    """
    limits: Mapping[str, float | None]
    """Limits by Kafka's keys, such as `producer_byte_rate`; as a change, None removes the quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """A token with which clients log in as its owner, by SCRAM and `sasl_tokenauth=True`."""

    token_id: str
    """The `sasl_username` of the login."""
    owner: str
    """A principal such as User:alice."""
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    """When the token expires unless it is renewed."""
    max_ms: int
    """When it ends, whatever is renewed."""
    proof: bytes = field(repr=False)
    """Proof of the token, by which it is renewed and expired; Kafka calls it the HMAC."""

    @property
    def password(self) -> str:
        """The `sasl_password` of the login."""
        return b64encode(self.proof).decode()


class ListedGroup(NamedTuple):
    group: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]
    """The assigned partitions of a consumer; assignments of other kinds of members are not decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    group: str
    error: ErrorCode
    state: str
    protocol_type: str
    protocol: str
    coordinator: int
    members: tuple[GroupMember, ...]


class GroupOffset(NamedTuple):
    offset: int
    """-1 if the group has committed nothing."""
    leader_epoch: int
    metadata: str
    error: ErrorCode
