"""The interface that the cases use: one vocabulary that every adapter translates into its client's own calls."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from headrace.model.errors import ErrorCode

REQUEST_TIMEOUT_S = 60.0
"""Time limit of any single call of a client before its case fails."""

UNKNOWN_TOPIC_MS = 5_000
"""Time for which a producer keeps asking for a topic that the broker does not know; a busy disk takes long to create
one.
"""

READ_TIMEOUT_S = 60.0
LONG_POLL_MS = 20_000
"""Time for which the broker may hold an empty fetch; a case that waits this long has found a fetch that was not
woken.
"""

FETCH_BYTES_MAX = 8 << 20
REQUEST_BYTES_MAX = 8 << 20
LINGER_MS = 20
"""Long enough that records sent at once travel in few batches."""

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
NO_OFFSET = -1


class Feature(StrEnum):
    """A capability that a client may lack; cases that need it are then skipped."""

    TOPICS = "creates and deletes topics"
    VALIDATE_ONLY = "asks whether a topic could be created"
    TOPIC_IDS = "shows topic ids"
    PARTITIONS = "adds partitions"
    CONFIGS = "describes configs"
    ALTER_CONFIGS = "sets configs by the old call"
    RESET_CONFIGS = "resets what the old call does not name"
    INCREMENTAL_CONFIGS = "changes single configs"
    CONFIG_RESOURCES = "lists what has configs"
    PAGED_TOPICS = "describes topics page by page"
    DELETE_RECORDS = "deletes records"
    CLUSTER = "describes the cluster"
    LOG_DIRS = "describes log directories"
    PRODUCERS = "describes producers"
    DELIVERY_REPORTS = "tells the offset of what it wrote"
    PRODUCE_ERRORS = "tells the broker's reason for refusing a record"
    INVALID_RECORD = "knows the error of a record that breaks a topic's rules"
    TIMESTAMPS = "sets timestamps"
    KEYS = "writes keys"
    HEADERS = "writes headers"
    NULL_HEADERS = "writes headers without a value"
    NULLS = "writes null values beside empty ones"
    BINARY = "writes any bytes"
    IDEMPOTENCE = "writes idempotently"
    ISOLATION = "reads committed records only"
    FETCH_ERRORS = "tells that an offset is out of range"
    OFFSETS_BY_TIME = "finds offsets by time"
    MAX_TIMESTAMP = "finds the record with the largest timestamp"
    ZSTD = "writes zstd"


EVERYTHING = frozenset(Feature)


class Start(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"


class Failed(Exception):
    """The client reported this error code of the broker."""

    def __init__(self, code: int, message: str = "") -> None:
        self.code = ErrorCode(code)
        super().__init__(f"{self.code.name}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    partition: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """The settings of a producer; equal ones may share one."""

    acks: int = -1
    compression: str = "none"
    idempotent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    partitions: int
    topic_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    value: str | None
    is_default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[tuple[int, str, int], ...]
    """(node id, host, port)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOffset:
    offset: int
    timestamp_ms: int


NOTHING_FOUND = FoundOffset(offset=NO_OFFSET, timestamp_ms=-1)


class Reader(ABC):
    """Partitions of one topic, read from a place on; close it."""

    @abstractmethod
    def read(self, count: int, timeout_s: float = READ_TIMEOUT_S) -> list[Received]:
        """Return this many records, or fewer when the time is up."""

    @abstractmethod
    def close(self) -> None: ...


class Client(ABC):
    """One client library, connected to one broker. Methods beyond a client's `features` are never called."""

    name: str
    version: str
    features: frozenset[Feature]

    @abstractmethod
    def close(self) -> None: ...

    # Topics

    @abstractmethod
    def topics(self) -> set[str]: ...

    @abstractmethod
    def describe_topic(self, topic: str) -> TopicDescription: ...

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replicas: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        raise NotImplementedError

    def delete_topic(self, topic: str) -> None:
        raise NotImplementedError

    def partitions_by_pages(self, topic: str, page: int) -> list[int]:
        """Describe partitions by DescribeTopicPartitions, this many at a time."""
        raise NotImplementedError

    def grow_topic(self, topic: str, partitions: int) -> None:
        raise NotImplementedError

    # Records

    @abstractmethod
    def send(self, topic: str, messages: Sequence[Message], sending: Sending = Sending()) -> list[int]:  # noqa: B008
        """Write, wait until it is done, and give the offsets (NO_OFFSET where the client cannot know)."""

    @abstractmethod
    def reader(
        self,
        topic: str,
        start: Start | int,
        *,
        partitions: Sequence[int] = (0,),
        committed_only: bool = False,
        partition_bytes_max: int = FETCH_BYTES_MAX,
    ) -> Reader:
        """By one consumer, from the same place of each partition; some clients can read only one partition or all."""

    def read(
        self,
        topic: str,
        count: int,
        start: Start | int = 0,
        *,
        partition: int = 0,
        committed_only: bool = False,
        partition_bytes_max: int = FETCH_BYTES_MAX,
    ) -> list[Received]:
        reader = self.reader(
            topic,
            start,
            partitions=(partition,),
            committed_only=committed_only,
            partition_bytes_max=partition_bytes_max,
        )
        try:
            return reader.read(count)
        finally:
            reader.close()

    # Offsets

    def bounds(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """The first offset and the one behind the last."""
        raise NotImplementedError

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> FoundOffset:
        raise NotImplementedError

    def offset_of_max_timestamp(self, topic: str, partition: int = 0) -> FoundOffset:
        raise NotImplementedError

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        """The new first offset."""
        raise NotImplementedError

    # Configs

    def topic_configs(self, topic: str) -> dict[str, ConfigEntry]:
        raise NotImplementedError

    def broker_configs(self) -> dict[str, ConfigEntry]:
        raise NotImplementedError

    def set_topic_configs(self, topic: str, changes: Mapping[str, tuple[str, str | None]]) -> None:
        """Incremental: by name, (set | delete | append | subtract, value)."""
        raise NotImplementedError

    def set_broker_configs(self, changes: Mapping[str, tuple[str, str | None]]) -> None:
        """The same, for the broker that answers."""
        raise NotImplementedError

    def topics_with_configs(self) -> set[str]:
        """By ListConfigResources."""
        raise NotImplementedError

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        raise NotImplementedError

    # The cluster

    def describe_cluster(self) -> ClusterDescription:
        raise NotImplementedError

    def log_sizes(self, topic: str) -> dict[int, int]:
        """Bytes on disk by partition."""
        raise NotImplementedError

    def last_sequences(self, topic: str, partition: int = 0) -> list[int]:
        """The last sequence of each producer of a partition."""
        raise NotImplementedError
