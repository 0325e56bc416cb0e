"""The records of the metadata log and their encoding.

Records that Kafka has too carry Kafka's type numbers. On disk a record is a type, a version and the fields as a
MessagePack array; a new version appends fields with defaults. The cluster's `metadata.version` determines which version
is written, so that an older node can still read everything during an upgrade.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec

from headrace.model.ids import LeaderEpoch, NodeId, TopicId
from headrace.wire.errors import ProtocolError

METADATA_VERSION = "metadata.version"
"""The feature whose level determines record versions."""

METADATA_VERSION_MIN = 25
METADATA_VERSION_LATEST = 27
"""A number of Kafka 4.1 (IV1), which its tools know by name."""

REPLICATION_LEVEL = 26
"""The metadata.version from which partitions may have several replicas. Brokers of earlier releases, which replicate
nothing and cannot read the records of eligible leaders and reassignments, are not in a cluster at this level.
"""

ACCESS_LEVEL = 27
"""The metadata.version from which the metadata log has credentials, access rules, quotas and delegation tokens,
which earlier releases cannot read.
"""

GROUP_VERSION = "group.version"
"""The feature for groups of KIP-848."""

GROUP_VERSION_LATEST = 1

TRANSACTION_VERSION = "transaction.version"
"""The feature for transactions in which every end bumps the producer epoch (KIP-890)."""

TRANSACTION_VERSION_LATEST = 2

BATCH_VERSION = "headrace.batch.version"
"""The feature that tells clients of batch commits: BeginBatchWriter and the requests that belong to it."""

BATCH_VERSION_LATEST = 1

RENAMED_FEATURES: Mapping[str, str] = {"headrace.epoch.version": BATCH_VERSION}
"""Names of features in the metadata logs of development versions before 0.1, which `decode_record` replaces."""

SCAN_VERSION = "headrace.scan.version"
"""The feature for scans: ScanManifest and ScanRelease."""

SCAN_VERSION_LATEST = 1
RECORD_BYTES_MAX = 1 << 20
"""Bytes of one encoded record; larger ones are refused before they are decoded."""


class RecordError(ProtocolError):
    """A metadata record that cannot be written at this metadata.version, or read by this release."""


class ResourceKind:
    """The kinds of resources that have configs, with the numbers of the wire."""

    TOPIC = 2
    BROKER = 4


_TopicId = Annotated[TopicId, msgspec.Meta(min_length=16, max_length=16)]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Fields(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Fields in the order in which they are written."""


class Endpoint(_Fields, frozen=True):
    listener: str
    host: str
    port: _Count
    security_protocol: str


class FeatureRange(_Fields, frozen=True):
    """The levels of a feature that a broker supports."""

    name: str
    level_min: _Count
    level_max: _Count


class TopicRecord(_Fields, frozen=True):
    name: str
    topic_id: _TopicId


class PartitionRecord(_Fields, frozen=True):
    topic_id: _TopicId
    partition: _Count
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: _Count
    directories: tuple[bytes, ...]
    """The id of the log directory that holds each replica, in the order of `replicas`; zeros where unassigned."""


class PartitionMembers(_Fields, frozen=True):
    """In-sync replicas of a partition together with what few partitions have (`partition_states.PartitionState`)."""

    isr: tuple[NodeId, ...]
    elr: tuple[NodeId, ...]
    last_known_elr: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]


class TopicPartitionsRecord(_Fields, frozen=True):
    """Partitions of one topic, packed; only in snapshots. `partition_states` says what a row is."""

    topic_id: _TopicId
    first: _Count
    """The number of the first partition."""
    nodes: tuple[tuple[NodeId, ...], ...]
    """Lists of replicas and of in-sync replicas, by the numbers that rows use."""
    directories: tuple[tuple[bytes, ...], ...]
    rows: bytes
    memberships: tuple[PartitionMembers, ...] = ()
    """Members of the partitions that have more than in-sync replicas; rows use the numbers -1, -2 and so on."""


class PartitionChangeRecord(_Fields, frozen=True):
    """None leaves a field unchanged. Every change increments the partition epoch, a leader the leader epoch.

    The leader NO_NODE takes the leadership away: that, too, increments the leader epoch, and so does naming the same
    leader again.
    """

    topic_id: _TopicId
    partition: _Count
    isr: tuple[NodeId, ...] | None = None
    leader: NodeId | None = None
    replicas: tuple[NodeId, ...] | None = None
    directories: tuple[bytes, ...] | None = None
    elr: tuple[NodeId, ...] | None = None
    last_known_elr: tuple[NodeId, ...] | None = None
    adding: tuple[NodeId, ...] | None = None
    removing: tuple[NodeId, ...] | None = None


class RemoveTopicRecord(_Fields, frozen=True):
    topic_id: _TopicId


class ConfigRecord(_Fields, frozen=True):
    """One config of a topic, a broker (its node id as text), or of every broker (the empty name); None removes it."""

    resource_kind: int
    resource_name: str
    name: str
    value: str | None


class ProducerIdsRecord(_Fields, frozen=True):
    node_id: NodeId
    next_producer_id: _Count
    """The first id above all allocated blocks."""


class RegisterBrokerRecord(_Fields, frozen=True):
    node_id: NodeId
    incarnation: bytes
    """Drawn at every start of the node: it distinguishes two processes with one node id."""
    broker_epoch: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    host: str
    """The machine: a failure domain above the node, for placement."""
    fenced: bool = False
    features: tuple[FeatureRange, ...] = ()
    directories: tuple[bytes, ...] = ()
    """The ids of the log directories that the broker has open."""
    is_controller: bool = False
    """True if the node may become a voter of the metadata quorum."""
    metadata_directory: bytes = b""
    """The id of the directory with the metadata log, which identifies the voter together with the node id."""
    in_controlled_shutdown: bool = False
    boot_id: str = ""
    """The boot of the machine on which the process runs; empty if it cannot be read."""
    impaired: bool = False


class UnregisterBrokerRecord(_Fields, frozen=True):
    node_id: NodeId
    broker_epoch: int


class BrokerRegistrationChangeRecord(_Fields, frozen=True):
    """None leaves a field unchanged."""

    node_id: NodeId
    broker_epoch: int
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    impaired: bool | None = None
    """True if the broker is too slow or full to lead while others can."""


class FeatureLevelRecord(_Fields, frozen=True):
    name: str
    level: _Count
    """0 removes the feature."""


class ScramCredentialRecord(_Fields, frozen=True):
    """The keys that the cluster has instead of the password of a user, for one mechanism of SCRAM."""

    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: _Count

    def __repr__(self) -> str:
        return f"ScramCredentialRecord(name={self.name!r}, mechanism={self.mechanism}, iterations={self.iterations})"


class RemoveScramCredentialRecord(_Fields, frozen=True):
    name: str
    mechanism: int


class AccessRuleRecord(_Fields, frozen=True):
    """A rule that allows or denies an operation; the fields after the id are those of `AccessRule`."""

    rule_id: bytes
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


class RemoveAccessRuleRecord(_Fields, frozen=True):
    rule_id: bytes


class ClientQuotaRecord(_Fields, frozen=True):
    """One quota of an entity; None removes it."""

    entity: tuple[tuple[str, str | None], ...]
    """Types of entity and their names, sorted by type; the name None is the default."""
    key: str
    value: float | None


class DelegationTokenRecord(_Fields, frozen=True):
    """A delegation token; the owner, the requester and renewers are principals such as User:alice."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    max_ms: int
    """The end of the token, which a renewal cannot move."""
    expires_ms: int
    token_id: str


class RemoveDelegationTokenRecord(_Fields, frozen=True):
    token_id: str


class LoginSecretRecord(_Fields, frozen=True):
    """The secret from which brokers make salts of users that do not exist. It stays the same."""

    secret: bytes

    def __repr__(self) -> str:
        return "LoginSecretRecord()"


class SnapshotHeaderRecord(_Fields, frozen=True):
    """The first record of a snapshot file; never in the log itself."""

    end_offset: _Count
    term: int
    record_count: _Count
    taken_at_ms: int
    voters: tuple[tuple[NodeId, str], ...] = ()
    """Node id and directory id of each voter of the metadata quorum at the end offset."""


Record = (
    TopicRecord
    | PartitionRecord
    | TopicPartitionsRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | ConfigRecord
    | ProducerIdsRecord
    | RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | FeatureLevelRecord
    | ScramCredentialRecord
    | RemoveScramCredentialRecord
    | AccessRuleRecord
    | RemoveAccessRuleRecord
    | ClientQuotaRecord
    | DelegationTokenRecord
    | RemoveDelegationTokenRecord
    | LoginSecretRecord
    | SnapshotHeaderRecord
)


class RecordVersion(NamedTuple):
    metadata_version: int
    """The level from which this version may be written."""
    field_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordType:
    number: int
    structure: type[msgspec.Struct]
    versions: tuple[RecordVersion, ...]


def _first_version(
    number: int, structure: type[msgspec.Struct], metadata_version: int = METADATA_VERSION_MIN
) -> RecordType:
    version = RecordVersion(metadata_version, len(structure.__struct_fields__))
    return RecordType(number=number, structure=structure, versions=(version,))


class RecordCodec:
    """Encodes and decodes the records of one table of types."""

    def __init__(self, types: Sequence[RecordType]) -> None:
        self._by_structure: Mapping[type, RecordType] = {entry.structure: entry for entry in types}
        self._by_number: Mapping[int, RecordType] = {entry.number: entry for entry in types}
        self._decoders = {entry.number: msgspec.msgpack.Decoder(entry.structure) for entry in types}
        self._encoder = msgspec.msgpack.Encoder()
        assert len(self._by_number) == len(types), "two record types share a number"

    def encode(self, record: msgspec.Struct, metadata_version: int) -> bytes:
        """Encode the newest version of the record that every node at this metadata.version can read."""
        entry = self._by_structure[type(record)]
        version = _newest_allowed(entry, metadata_version)
        if version == len(entry.versions) - 1:
            body = self._encoder.encode(record)
        else:
            body = self._encoder.encode(_cut(record, entry.versions[version].field_count))
        return bytes((entry.number, version)) + body

    def decode(self, encoded: bytes | memoryview) -> msgspec.Struct:
        if not 2 <= len(encoded) <= RECORD_BYTES_MAX:
            raise RecordError(f"a metadata record of {len(encoded)} bytes: expected 2 to {RECORD_BYTES_MAX}")
        entry = self._by_number.get(encoded[0])
        if entry is None:
            raise RecordError(
                f"metadata record type {encoded[0]} is unknown; it may have been written by a newer release of headrace"
            )
        name = entry.structure.__name__
        if encoded[1] >= len(entry.versions):
            raise RecordError(
                f"{name} version {encoded[1]} is unknown; it may have been written by a newer release of headrace"
            )
        try:
            return self._decoders[entry.number].decode(encoded[2:])
        except (msgspec.MsgspecError, ValueError, RecursionError) as wrong:
            raise RecordError(f"{name} cannot be decoded: {wrong}") from None


def _newest_allowed(entry: RecordType, metadata_version: int) -> int:
    for version in reversed(range(len(entry.versions))):
        if entry.versions[version].metadata_version <= metadata_version:
            return version
    name = entry.structure.__name__
    raise RecordError(
        f"{name} needs metadata.version {entry.versions[0].metadata_version}, but the cluster is at "
        f"{metadata_version}: upgrade the feature once every node runs this release"
    )


def _cut(record: msgspec.Struct, field_count: int) -> list[object]:
    """Return the fields an older version has; the others must be at their defaults."""
    names = record.__struct_fields__
    defaults = record.__struct_defaults__
    for name, default in zip(names[field_count:], defaults[field_count - len(names) :], strict=True):
        if getattr(record, name) != default:
            raise RecordError(
                f"{type(record).__name__}.{name} cannot be written at this metadata.version: "
                "upgrade the feature once every node runs this release"
            )
    return [getattr(record, name) for name in names[:field_count]]


RECORD_TYPES = (
    RecordType(
        number=0,
        structure=RegisterBrokerRecord,
        # No release that writes the first version can be in a cluster, so that both have the same level.
        versions=(
            RecordVersion(METADATA_VERSION_MIN, 6),
            RecordVersion(METADATA_VERSION_MIN, 12),
            RecordVersion(REPLICATION_LEVEL, 14),
        ),
    ),
    _first_version(1, UnregisterBrokerRecord),
    _first_version(2, TopicRecord),
    _first_version(3, PartitionRecord),
    _first_version(4, ConfigRecord),
    RecordType(
        number=5,
        structure=PartitionChangeRecord,
        versions=(RecordVersion(METADATA_VERSION_MIN, 6), RecordVersion(REPLICATION_LEVEL, 10)),
    ),
    _first_version(9, RemoveTopicRecord),
    _first_version(10, DelegationTokenRecord, ACCESS_LEVEL),
    _first_version(11, ScramCredentialRecord, ACCESS_LEVEL),
    _first_version(12, FeatureLevelRecord),
    _first_version(14, ClientQuotaRecord, ACCESS_LEVEL),
    _first_version(15, ProducerIdsRecord),
    RecordType(
        number=17,
        structure=BrokerRegistrationChangeRecord,
        versions=(RecordVersion(METADATA_VERSION_MIN, 4), RecordVersion(REPLICATION_LEVEL, 5)),
    ),
    _first_version(18, AccessRuleRecord, ACCESS_LEVEL),
    _first_version(19, RemoveAccessRuleRecord, ACCESS_LEVEL),
    _first_version(22, RemoveScramCredentialRecord, ACCESS_LEVEL),
    _first_version(26, RemoveDelegationTokenRecord, ACCESS_LEVEL),
    RecordType(
        number=100,
        structure=SnapshotHeaderRecord,
        versions=(RecordVersion(METADATA_VERSION_MIN, 4), RecordVersion(METADATA_VERSION_MIN, 5)),
    ),
    RecordType(
        number=101,
        structure=TopicPartitionsRecord,
        versions=(RecordVersion(METADATA_VERSION_MIN, 5), RecordVersion(REPLICATION_LEVEL, 6)),
    ),
    _first_version(102, LoginSecretRecord, ACCESS_LEVEL),
)

_CODEC = RecordCodec(RECORD_TYPES)


def encode_record(record: Record, metadata_version: int = METADATA_VERSION_LATEST) -> bytes:
    return _CODEC.encode(record, metadata_version)


def decode_record(encoded: bytes | memoryview) -> Record:
    """Read a stored record. This is the only place where names of such versions become current ones."""
    record = _CODEC.decode(encoded)
    assert isinstance(record, Record)
    if isinstance(record, FeatureLevelRecord) and record.name in RENAMED_FEATURES:
        return FeatureLevelRecord(RENAMED_FEATURES[record.name], record.level)
    return record
