"""Context of a request: the client that sent it, and the parts of the broker that its handler may use.

A handler module has a function `handle(request, ctx)`. It returns the response message (or its encoded body), or
`ctx.park(...)` when the response is given in a later turn: the handler keeps the `Parked` and calls its
`complete(response)` from an event. A handler raises `ProtocolError` to have the connection closed.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from headrace.broker.api.response_writer import ResponseWriter
from headrace.broker.authentication import Authentication
from headrace.broker.client_connections import ClientConnections
from headrace.broker.client_quotas import ClientQuotas
from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.linearizable_reads import LinearizableReads
from headrace.broker.cluster.membership import Membership
from headrace.broker.cluster.producer_ids import ProducerIds
from headrace.broker.coordinators.groups import Groups
from headrace.broker.coordinators.transactions import Transactions
from headrace.broker.delegation_tokens import DelegationTokens
from headrace.broker.logs import NodeLogger
from headrace.broker.lookups import Lookups
from headrace.broker.metadata_changes import RecentChanges
from headrace.broker.metrics import Metrics
from headrace.broker.net.connection import Connection
from headrace.broker.partitions.scan_leases import ScanLeases
from headrace.broker.services import (
    AccessControl,
    ConfigProvider,
    PartitionAdmin,
    PartitionLookup,
    RequestServices,
)
from headrace.broker.timers import Timer, Timers
from headrace.broker.topic_metadata import TopicMetadata
from headrace.core.controller.commands import CreatableTopic
from headrace.core.controller.image import MetadataImage
from headrace.model.access import AclResourceType, Operation, Principal, Requester
from headrace.model.configs.values import BrokerConfig
from headrace.model.ids import NodeId
from headrace.ports.clock import Clock
from headrace.ports.disk import Disk
from headrace.ports.entropy import Entropy
from headrace.ports.spawner import Spawner
from headrace.wire.errors import ProtocolError

if TYPE_CHECKING:
    from headrace.broker.peers.controller_requests import ControllerRequests
    from headrace.broker.peers.invitations import Invitations


class HandlerServices(RequestServices, ConfigProvider, Protocol):
    """Parts of the broker that handlers reach through their context."""

    @property
    def authentication(self) -> Authentication: ...
    @property
    def cluster_id(self) -> str: ...
    @property
    def node_id(self) -> NodeId: ...
    @property
    def partitions(self) -> PartitionAdmin: ...
    @property
    def topic_metadata(self) -> TopicMetadata: ...
    @property
    def controller(self) -> ControllerHost: ...
    @property
    def delegation_tokens(self) -> DelegationTokens: ...
    @property
    def controller_requests(self) -> "ControllerRequests": ...
    @property
    def linearizable_reads(self) -> LinearizableReads: ...
    @property
    def membership(self) -> Membership: ...
    @property
    def invitations(self) -> "Invitations | None": ...
    @property
    def groups(self) -> Groups: ...
    @property
    def transactions(self) -> Transactions: ...
    @property
    def producer_ids(self) -> ProducerIds: ...
    @property
    def scans(self) -> ScanLeases: ...
    @property
    def client_connections(self) -> ClientConnections: ...
    @property
    def metadata_changes(self) -> RecentChanges: ...
    @property
    def lookups(self) -> Lookups: ...
    @property
    def disk(self) -> Disk: ...
    @property
    def entropy(self) -> Entropy: ...
    @property
    def spawner(self) -> Spawner: ...

    def create_topics(self, topics: Sequence[CreatableTopic], then: Callable[[], None]) -> None: ...


class Parked:
    """Response of a later turn: completed once, by its event or at its deadline, whichever comes first."""

    __slots__ = ("_metrics", "_timer", "_timers", "_writer", "completed")

    def __init__(self, writer: ResponseWriter, metrics: Metrics, timers: Timers) -> None:
        self._writer = writer
        self._metrics = metrics
        self._timers = timers
        self._timer: Timer | None = None
        self.completed = False
        metrics.parked_requests += 1

    def expire_after(self, timeout_ms: float, give_up: Callable[[], object]) -> None:
        self._timer = self._timers.after(timeout_ms, lambda: self.complete(give_up()))

    def complete(self, response: object) -> None:
        if not self.completed:
            self._end()
            self._writer.respond(response)

    def abandoned(self) -> bool:
        """Return whether the client has disconnected, so that the work for it can stop."""
        closed = self._writer.slot.connection.closed
        if closed and not self.completed:
            self._end()
        return closed

    def give_up(self) -> None:
        """End without a response, because the request cannot be read."""
        self._end()

    def _end(self) -> None:
        self.completed = True
        self._metrics.parked_requests -= 1
        if self._timer is not None:
            self._timers.cancel(self._timer)


def close_for_bad_input(services: RequestServices, connection: Connection, error: ProtocolError) -> None:
    """Close the connection when this turn ends, for an error found while it was not being read."""
    services.metrics.protocol_errors += 1
    peer = connection.transport.peer_address
    services.logger.info("connection closed for bad input", peer=peer, reason=str(error))
    connection.closing = True
    connection.mark_dirty()


class RequestContext:
    """One request's client, version and access to the broker.

    Everything is looked up when it is used, because configs and metadata change while a request is parked.
    """

    __slots__ = ("_services", "_writer", "client_id", "connection", "dispatch", "version")

    def __init__(
        self,
        *,
        services: HandlerServices,
        connection: Connection,
        version: int,
        client_id: str | None,
        writer: ResponseWriter,
        dispatch: Callable[[Connection, bytes], None],
    ) -> None:
        """`dispatch` handles a forwarded request on the connection that stands in for the client's."""
        self._services = services
        self.dispatch = dispatch
        self.connection = connection
        self.version = version
        self.client_id = client_id
        self._writer = writer

    @property
    def principal(self) -> Principal:
        return self.connection.principal

    @property
    def requester(self) -> Requester:
        return Requester(self.principal, self.connection.peer_host)

    @property
    def authentication(self) -> Authentication:
        return self._services.authentication

    @property
    def delegation_tokens(self) -> DelegationTokens:
        return self._services.delegation_tokens

    @property
    def listener_name(self) -> str:
        return self.connection.listener_name

    @property
    def throttle_time_ms(self) -> int:
        """The time for which no further request of the client is handled, because a quota is exceeded."""
        return self._services.client_quotas.throttle_time_ms(self.connection)

    @property
    def client_quotas(self) -> ClientQuotas:
        return self._services.client_quotas

    def authorized(self, operation: Operation, resource_type: AclResourceType, name: str) -> bool:
        """Check access; every handler calls this before it touches a resource."""
        return self._services.access.authorize(
            self.principal, self.connection.peer_host, operation, resource_type, name
        )

    def audit(self, request: object) -> None:
        """Have the audit log note what the response says about the request of a client."""
        if self._services.audit_log is not None and self.connection.peer is None:
            self._writer.audit(self._services.audit_log, request, self.client_id or "")

    def respond(self, response: object) -> None:
        """Send the response at once."""
        self._writer.respond(response)

    def reject(self, parked: Parked, error: ProtocolError) -> None:
        """Close the connection for malformed input that was found in a later turn."""
        parked.give_up()
        close_for_bad_input(self._services, self.connection, error)

    def next_turn(self, call: Callable[[], object]) -> None:
        """Continue the work for this request in the next turn, at the expense of its client."""
        self._services.timers.next_turn(self._services.client_quotas.charged(self.connection, call))

    def park(self, *, timeout_ms: float | None = None, on_timeout: Callable[[], object] | None = None) -> Parked:
        """Respond in a later turn; after `timeout_ms` with what `on_timeout` returns."""
        parked = Parked(self._writer, self._services.metrics, self._services.timers)
        if timeout_ms is not None:
            assert on_timeout is not None
            parked.expire_after(timeout_ms, on_timeout)
        return parked

    # The broker

    @property
    def image(self) -> MetadataImage:
        """Committed metadata."""
        return self._services.image

    @property
    def config(self) -> BrokerConfig:
        """Configs in force, static and dynamic."""
        return self._services.config

    @property
    def cluster_id(self) -> str:
        return self._services.cluster_id

    @property
    def node_id(self) -> NodeId:
        return self._services.node_id

    @property
    def clock(self) -> Clock:
        return self._services.clock

    @property
    def timers(self) -> Timers:
        return self._services.timers

    @property
    def access(self) -> AccessControl:
        return self._services.access

    @property
    def logger(self) -> NodeLogger:
        return self._services.logger

    @property
    def partitions(self) -> PartitionLookup:
        """Partitions that this broker leads."""
        return self._services.partitions

    @property
    def partition_admin(self) -> PartitionAdmin:
        return self._services.partitions

    @property
    def topic_metadata(self) -> TopicMetadata:
        return self._services.topic_metadata

    @property
    def controller(self) -> ControllerHost:
        """Controller, which commits changes of metadata."""
        return self._services.controller

    @property
    def invitations(self) -> "Invitations | None":
        """Invitations to join the cluster; None on a node without a listener for other nodes."""
        return self._services.invitations

    @property
    def linearizable_reads(self) -> LinearizableReads:
        return self._services.linearizable_reads

    @property
    def membership(self) -> Membership:
        return self._services.membership

    @property
    def groups(self) -> Groups:
        """Group coordinators."""
        return self._services.groups

    @property
    def transactions(self) -> Transactions:
        """Transaction coordinators."""
        return self._services.transactions

    @property
    def producer_ids(self) -> ProducerIds:
        return self._services.producer_ids

    @property
    def scans(self) -> ScanLeases:
        return self._services.scans

    @property
    def metadata_changes(self) -> RecentChanges:
        return self._services.metadata_changes

    @property
    def client_connections(self) -> ClientConnections:
        return self._services.client_connections

    @property
    def lookups(self) -> Lookups:
        """Searches of offsets by timestamp."""
        return self._services.lookups

    @property
    def disk(self) -> Disk:
        return self._services.disk

    @property
    def entropy(self) -> Entropy:
        return self._services.entropy

    @property
    def spawner(self) -> Spawner:
        return self._services.spawner

    def create_topics(self, topics: Sequence[CreatableTopic], then: Callable[[], None]) -> None:
        """Create topics that a request names, and call back when they can be used or could not be created."""
        self._services.create_topics(topics, self._writer.noting_created([topic.name for topic in topics], then))
