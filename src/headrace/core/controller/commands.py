"""What the controller can be asked, and what it answers: plain values, one answer per thing asked about."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar

from headrace.core.controller.records import Record
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, NodeId, ProducerId, TopicId

Response = TypeVar("Response")

USE_DEFAULT = -1
"""As a partition count or replication factor: let the cluster's default decide (KIP-464)."""

PARTITIONS_PER_REQUEST_MAX = 10_000
CONFIGS_PER_REQUEST_MAX = 10_000
RESOURCES_PER_REQUEST_MAX = 10_000

PRODUCER_IDS_PER_BLOCK = 1_000


class Decision(NamedTuple, Generic[Response]):
    """Records to append as one batch, and the response to give once they are committed."""

    records: tuple[Record, ...]
    response: Response


class Refused(Exception):
    """Why one part of a command is not carried out; the rest of the command may be."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    name: str
    partition_count: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Sequence[tuple[int, Sequence[NodeId]]] = ()
    """Partition number and its replicas, chosen by hand; then both counts must be USE_DEFAULT."""
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
    """By name or by id, never both."""

    name: str | None = None
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionGrowth:
    name: str
    partition_count: int
    """In all, not how many more."""
    assignments: Sequence[Sequence[NodeId]] | None = None
    """Replicas of each new partition, chosen by hand."""


class ConfigOperation(IntEnum):
    """The numbers of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    name: str
    operation: int
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigAlteration:
    """The changes of one resource; all of them happen or none."""

    resource_kind: int
    resource_name: str
    changes: Sequence[ConfigChange]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigReplacement:
    """All configs of one resource at once: what is not listed goes back to its default (the older AlterConfigs)."""

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


class BrokerRegistration(NamedTuple):
    broker_epoch: int
