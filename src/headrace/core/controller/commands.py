"""Commands to the controller and their responses: plain values, one response per item of a command."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar

from headrace.core.controller.health import SOUND, HealthReport
from headrace.core.controller.records import Endpoint, FeatureRange, Record
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_EPOCH, NO_NODE, NO_TOPIC_ID, LeaderEpoch, NodeId, ProducerId, TopicId

Response = TypeVar("Response")

USE_DEFAULT = -1
"""As a partition count or replication factor: use the cluster's default (KIP-464)."""

PARTITIONS_PER_REQUEST_MAX = 10_000
CONFIGS_PER_REQUEST_MAX = 10_000
RESOURCES_PER_REQUEST_MAX = 10_000

PRODUCER_IDS_PER_BLOCK = 1_000


class ControllerDecision(NamedTuple, Generic[Response]):
    """Records to append as one batch, and the response to send once they are committed."""

    records: tuple[Record, ...]
    response: Response


class Refused(Exception):
    """The reason why one part of a command is refused; the rest of the command may be executed."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableTopic:
    name: str
    partition_count: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Sequence[tuple[int, Sequence[NodeId]]] = ()
    """Partition numbers and their replicas, assigned manually; then both counts must be USE_DEFAULT."""
    configs: Sequence[tuple[str, str | None]] = ()


class TopicResult(NamedTuple):
    name: str | None
    topic_id: TopicId = NO_TOPIC_ID
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    partition_count: int = -1
    replication_factor: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicToDelete:
    """Identified by name or by id, never both."""

    name: str | None = None
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionGrowth:
    name: str
    partition_count: int
    """The new total, not the increase."""
    assignments: Sequence[Sequence[NodeId]] | None = None
    """Replicas of each new partition, assigned manually."""


class AlterOperation(IntEnum):
    """The values of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterableConfig(NamedTuple):
    name: str
    operation: int
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigAlteration:
    """The changes of one resource; they are applied together or not at all."""

    resource_kind: int
    resource_name: str
    changes: Sequence[AlterableConfig]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigReplacement:
    """All configs of one resource at once: configs that are not listed return to their defaults (the older
    AlterConfigs).
    """

    resource_kind: int
    resource_name: str
    configs: Sequence[tuple[str, str | None]]


class ConfigResult(NamedTuple):
    resource_kind: int
    resource_name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class ProducerIdBlock(NamedTuple):
    first: ProducerId
    end: ProducerId
    """The first id after the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBroker:
    """A process that wants to be a broker of the cluster."""

    node_id: NodeId
    cluster_id: str
    incarnation: bytes
    """Drawn at every start of the process."""
    endpoints: Sequence[Endpoint]
    rack: str | None
    host: str
    features: Sequence[FeatureRange]
    directories: Sequence[bytes] = ()
    is_controller: bool = False
    metadata_directory: bytes = b""
    previous_epoch: int = -1
    """The broker epoch that this process had before; -1 when it registers for the first time."""
    boot_id: str = ""
    """The boot of the machine; empty if it cannot be read."""
    closed_cleanly: bool = False
    """True if the former process closed all logs, so that everything it had written is on the disk."""


class BrokerRegistration(NamedTuple):
    broker_epoch: int = -1
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeat:
    node_id: NodeId
    broker_epoch: int
    metadata_offset: int
    """The offset of the last record of the metadata log that the broker has applied."""
    wants_fence: bool = False
    wants_shut_down: bool = False
    health: HealthReport = SOUND


class BrokerState(NamedTuple):
    """The response to a heartbeat."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


class BrokerResult(NamedTuple):
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class IsrMember(NamedTuple):
    """A replica of a new in-sync set, and the registration of its broker that the leader has seen fetch."""

    node_id: NodeId
    broker_epoch: int


class IsrChange(NamedTuple):
    """The in-sync set that the leader of a partition asks for; the epochs are those on which it decided."""

    topic_id: TopicId
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[IsrMember, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrAlteration:
    """Changes of in-sync sets that the broker asks for as the leader of these partitions (AlterPartition)."""

    node_id: NodeId
    broker_epoch: int
    changes: Sequence[IsrChange]


class IsrResult(NamedTuple):
    """The state of one partition after its change, or why it was refused.

    Only INELIGIBLE_REPLICA says that nothing was changed. After every other error the leader waits until its image
    shows a newer partition epoch: an earlier attempt of the same request may have been committed.
    """

    topic_id: TopicId
    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    leader: NodeId = NO_NODE
    leader_epoch: LeaderEpoch = NO_EPOCH
    isr: tuple[NodeId, ...] = ()
    partition_epoch: int = -1


class IsrResults(NamedTuple):
    error: ErrorCode = ErrorCode.NONE
    """Refuses the whole request."""
    message: str | None = None
    results: tuple[IsrResult, ...] = ()
