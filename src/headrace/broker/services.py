"""Protocols through which requests, partitions and coordinators reach the parts of the broker that they use.

`RunningBroker` implements every protocol here with plain attributes, so that a protocol costs nothing when a request is
served. A module asks for the narrowest protocol that is enough for it. No module imports `RunningBroker`, which is put
together above all of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from headrace.broker.audit_log import AuditLog
from headrace.broker.client_quotas import ClientQuotas
from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Metrics
from headrace.broker.net.connection import Connection
from headrace.broker.partitions.fetch_sessions import FetchSessions
from headrace.broker.partitions.local_topic import LocalTopic
from headrace.broker.partitions.reader import ReaderServices
from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.syncs import Syncs
from headrace.broker.partitions.table import PartitionTable
from headrace.broker.peers.requests import PeerRequests
from headrace.broker.timers import Timers
from headrace.core.controller.commands import CreatableTopic
from headrace.core.controller.image import MetadataImage
from headrace.core.coordination.machine import Now
from headrace.model.access import AclResourceType, Operation, Principal
from headrace.model.configs.values import BrokerConfig
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_EPOCH, NodeId
from headrace.ports.clock import Clock
from headrace.ports.disk import Disk, FileRange
from headrace.wire.replica_fetch import ReplicaFetchRequest


class PartitionLookup(Protocol):
    """Finds the partitions that this broker leads."""

    @property
    def by_name(self) -> Mapping[bytes, LocalTopic]:
        """Topics by their name in UTF-8."""

    @property
    def by_id(self) -> Mapping[bytes, LocalTopic]: ...

    def partition_of(self, topic: LocalTopic | None, index: int, leader_epoch: int = NO_EPOCH) -> Replica | ErrorCode:
        """Return the partition, or the error code that the client gets, which knows of this leader epoch."""


class PartitionAdmin(PartitionLookup, Protocol):
    """Finds partitions, and also changes them or reports on their storage."""

    @property
    def failed_directories(self) -> Sequence[str]: ...

    @property
    def syncs(self) -> Syncs: ...

    def by_directory(self) -> Iterator[tuple[str, list[Replica]]]: ...

    def when_ready(self, call: Callable[[], None]) -> None:
        """Call back when every partition that is being created can be used, or has failed."""

    def failure_of(self, topic: str) -> str | None:
        """Return why partitions of a new topic could not be created; None when they could."""

    def advance_start(self, partition: Replica, offset: int) -> bool:
        """Delete the records below the offset; return whether the start has moved. Then call `checkpoint`."""

    def check_records(self, replica: Replica, offset: int) -> None:
        """Read records again that a follower has refused as damaged."""

    def checkpoint(self) -> None:
        """Write the checkpoints of the directories in which they have changed. This looks at every partition."""


class AccessControl(Protocol):
    """Decides whether a principal may perform an operation on a resource."""

    @property
    def open_to_all(self) -> bool:
        """True if every operation is allowed, so that Produce and Fetch can skip the check."""

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: AclResourceType, name: str
    ) -> bool:
        """`host` is the address of the client."""

    def note_refusal(
        self, principal: Principal, host: str, operation: Operation, resource_type: AclResourceType, name: str
    ) -> None:
        """Tell the audit log of a refusal that is in no response message: one of Produce or Fetch."""

    def permits_some(
        self, principal: Principal, host: str, operation: Operation, resource_type: AclResourceType
    ) -> bool:
        """Return whether a rule permits the operation on some resource."""


class MetadataSource(Protocol):
    """Gives the committed metadata."""

    @property
    def image(self) -> MetadataImage: ...


class ConfigProvider(MetadataSource, Protocol):
    """Gives the committed metadata and the configs in force on this broker."""

    @property
    def config(self) -> BrokerConfig: ...


class TurnClock(Protocol):
    """Gives the time at which this turn of the loop began, which its Produce and OffsetCommit requests share."""

    @property
    def turn_wall_ms(self) -> int: ...

    @property
    def turn_now(self) -> Now | None:
        """Time of this turn for coordinators; None until `now_of_turn` was called in it."""

    def now_of_turn(self) -> Now: ...


class RequestServices(Protocol):
    """Serves every request: time, timers, access control, quotas, counters and the logs."""

    @property
    def audit_log(self) -> AuditLog | None:
        """None if the broker has none (headrace.audit.dir)."""

    @property
    def clock(self) -> Clock: ...

    @property
    def timers(self) -> Timers: ...

    @property
    def access(self) -> AccessControl: ...

    @property
    def client_quotas(self) -> ClientQuotas: ...

    @property
    def metrics(self) -> Metrics: ...

    @property
    def logger(self) -> NodeLogger: ...


class CoordinatorServices(ConfigProvider, Protocol):
    """Serves coordinators: metadata, configs, time, and the partitions of their internal topic."""

    @property
    def clock(self) -> Clock: ...

    @property
    def node_id(self) -> NodeId: ...

    @property
    def partitions(self) -> PartitionTable: ...

    def create_topics(self, topics: Sequence[CreatableTopic], then: Callable[[], None]) -> None:
        """Create topics that a request needs, and call back when they can be used or could not be created."""


class PeerServices(Protocol):
    """Serves parts that reach other brokers: this node's id, and requests to its peers."""

    @property
    def node_id(self) -> NodeId: ...

    @property
    def peers(self) -> PeerRequests: ...


class RaftServices(Protocol):
    """Takes messages of the metadata quorum."""

    @property
    def deliver_raft(self) -> Callable[[NodeId, bytes], None]:
        """Called with the node that sent a message, and the encoded message."""


class FollowerFetches(Protocol):
    """Takes the fetches of followers."""

    def begin(self, connection: Connection, request: ReplicaFetchRequest, correlation_id: int) -> None:
        """Answer a fetch, now or when there is something to send."""


class ReplicaFetchServices(Protocol):
    """Serves followers on other brokers."""

    @property
    def served_fetches(self) -> FollowerFetches: ...


class FetchServices(ReaderServices, RequestServices, MetadataSource, Protocol):
    """Serves Fetch requests: sessions, partitions, their leaders, and files that stay open until they are sent."""

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def disk(self) -> Disk: ...

    @property
    def fetch_sessions(self) -> FetchSessions: ...

    @property
    def partitions(self) -> PartitionLookup: ...

    def pin(self, ranges: Sequence[FileRange]) -> None:
        """Keep files open until the response that is sent from them is complete."""

    def unpin(self, ranges: Sequence[FileRange]) -> None: ...
