"""One client's connection: the bytes of its unfinished frame, and its responses in the order of its requests."""

from collections import deque
from collections.abc import Container, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from headrace.broker.timers import Timer
from headrace.core.access.sasl import SaslSession
from headrace.model.access import ANONYMOUS, Principal
from headrace.model.limits import REQUESTS_IN_FLIGHT_MAX
from headrace.ports.disk import FileHandle, FileRange
from headrace.ports.network import READABLE, ServerTlsTransport, Token, Transport

if TYPE_CHECKING:
    from headrace.broker.client_quotas import MeteredClient
    from headrace.broker.peers.session import PeerSession

NO_PARTIAL_FRAME = -1.0
NO_TOKEN = Token(-1)
"""The token of an object that stands in for a connection and has no socket."""
NO_RESPONSE_YET = 1
"""The `waits` of a slot whose response has no parts yet: `ResponseSlot.complete` ends the wait."""
_HELD_BACK_BYTES = 1 << 60
"""Added to the `held_bytes` of a connection to hold it back: the sum is above every limit."""

Part = bytes | bytearray | memoryview | FileRange


class ParkedRequest(Protocol):
    def abandon(self) -> None:
        """Stop waiting, because the client has disconnected."""

    def answer_now(self) -> None:
        """Respond with the results so far, because the broker is stopping."""

    def files(self) -> Iterator[FileHandle]:
        """Files that the response will be sent from, which must stay open until then."""


class RepeatedCommits(Protocol):
    """Recognizes OffsetCommit requests that differ from the last one only in their offsets."""

    def handle_repeat(
        self,
        services: Any,
        connection: "Connection",
        frame: memoryview,
        position: int,
        end: int,
        version: int,
        correlation_id: int,
    ) -> bool:
        """Commit and respond if the request is recognized; return False and do nothing otherwise."""

    def note(self, request: Any, command: Any) -> None:
        """Keep a request that was decoded, for `learn`."""

    def learn(self, services: Any, body: memoryview, version: int) -> None:
        """Recognize requests like the one that was noted from now on."""


class ResponseSlot(Struct, eq=False):
    """The slot of one response in the order of its connection. It is sent when it has its parts and waits for nothing.

    `parts` is the whole frame in one piece of bytes, or a list when it includes ranges of files. A Produce response is
    filled in before its records are written, because within a turn the write comes before the send; `waits` counts the
    partitions whose acknowledgement is still missing. A `Struct` is created in a third of the time of a class.
    """

    connection: "Connection"
    parts: bytes | bytearray | list[Part] | None
    waits: int

    def complete(self, parts: bytes | bytearray | list[Part]) -> None:
        """Fill in a response that was parked; it is sent at the end of this turn."""
        assert self.waits > 0
        self.parts = parts
        self.waits = 0
        if not isinstance(parts, list):  # ranges of files take no memory
            self.connection.held_bytes += len(parts)
        self.connection.mark_dirty()


class PeerResponseSlot(ResponseSlot, eq=False):
    """The slot of a response to another node, which is sent as soon as it is complete.

    Nodes match responses to requests by their numbers, so that a request that waits for a commit does not delay a
    heartbeat behind it.
    """

    def complete(self, parts: bytes | bytearray | list[Part]) -> None:
        connection = self.connection
        assert connection.peer is not None
        connection.peer.requests_unanswered -= 1
        connection.responses.append(self)
        super().complete(parts)


NO_VERSION, MIXED_VERSIONS = -1, -2


class Connection:
    __slots__ = (
        "by_token",
        "bytes_in",
        "bytes_out",
        "client_id",
        "client_software",
        "closed",
        "closing",
        "commits",
        "dirty",
        "dirty_connections",
        "discarded_bytes",
        "errors",
        "fetch_session_id",
        "fetched_topics",
        "frame",
        "frame_once_bytes",
        "frame_progress_bytes",
        "frame_progress_ms",
        "frame_received",
        "frame_size",
        "held_bytes",
        "held_bytes_min",
        "interest",
        "largest_frame",
        "last_active_ms",
        "listener_name",
        "metered",
        "mute_timer",
        "muted",
        "muted_until_ms",
        "opened_ms",
        "parked",
        "partial_since_ms",
        "peer",
        "peer_host",
        "principal",
        "produce_shape_bytes",
        "produce_shapes",
        "produce_version",
        "produced_topics",
        "put_off",
        "request_at",
        "responses",
        "rest",
        "sasl",
        "starved",
        "tls",
        "token",
        "transport",
        "unsent",
        "unsent_since_ms",
    )

    def __init__(
        self, transport: Transport, listener_name: str, dirty_connections: "list[Connection]", now_ms: float
    ) -> None:
        self.transport = transport
        self.tls: ServerTlsTransport | None = None
        """The transport, if it encrypts."""
        self.sasl: SaslSession | None = None
        """The state of authentication, on a listener with SASL."""
        self.token = transport.token
        self.listener_name = listener_name
        self.peer_host = transport.peer_address.rpartition(":")[0]
        self.peer: PeerSession | None = None
        """The node at the other end, on the CONTROLLER listener; None for a client."""
        self.principal: Principal = ANONYMOUS
        self.by_token = False
        """True if the client has logged in with a delegation token."""
        self.client_id = b""
        self.client_software = ("", "")
        self.opened_ms = now_ms
        self.bytes_in = 0
        self.bytes_out = 0
        self.errors = 0
        """Requests that were answered with an error."""
        self.dirty_connections = dirty_connections
        self.dirty = False
        self.interest = READABLE
        self.closing = False
        self.closed = False
        self.last_active_ms = now_ms
        self.muted = False
        """True if no more requests are read, because the broker stops."""
        self.metered: MeteredClient | None = None
        """The client as quotas know it; None while the cluster has no quotas of users or client ids."""
        self.muted_until_ms = 0.0
        """The time until which no request is handled, because a quota is exceeded; 0.0 if none is."""
        self.mute_timer: Timer | None = None
        self.starved = False
        # Bytes received of an incomplete frame: of a small one in `rest`, of a large one in its own `frame`.
        self.rest: bytes | None = None
        self.put_off = False
        """True if `rest` holds complete frames that the last turn had no time for."""
        self.frame: memoryview | None = None
        self.frame_size = 0
        self.frame_received = 0
        self.frame_once_bytes = 0
        """The most bytes of the frame that one turn receives."""
        self.discarded_bytes = 0
        """Bytes of a refused frame that are still to come and are discarded."""
        self.frame_progress_bytes = 0
        self.frame_progress_ms = now_ms
        self.largest_frame = 0
        self.partial_since_ms = NO_PARTIAL_FRAME
        # The first topics of the last Produce request that was parsed, and of the last Fetch request, as it names them.
        self.produced_topics: tuple[bytes, ...] = ()
        self.fetched_topics: tuple[bytes, ...] = ()
        self.fetch_session_id = 0
        """The session that has the topics of the last Fetch request, if it has one."""
        # The common part of a producer's requests, by which the next one is recognized without decoding it.
        self.produce_shapes: dict[bytes, Any] = {}
        self.produce_shape_bytes = 0
        self.produce_version = NO_VERSION
        """The version of all Produce requests so far; MIXED_VERSIONS if they differ."""
        self.commits: RepeatedCommits | None = None
        """The same for the commits of a consumer; None before its first commit."""
        self.request_at = 0
        """Position in its buffer at which the current request begins."""
        self.responses: deque[ResponseSlot] = deque()
        self.held_bytes = 0
        """Bytes of complete responses that wait for an earlier one; only APIs with large responses count theirs."""
        self.held_bytes_min = 0
        """The part of `held_bytes` that stays when all responses are sent; not 0 while the connection is muted."""
        self.parked: dict[ParkedRequest, None] = {}
        """Requests that wait for an event and must not outlive the connection."""
        self.unsent: deque[Part] = deque()
        self.unsent_since_ms = 0.0

    def is_full(self, held_bytes_max: int) -> bool:
        """Return whether the limit of outstanding responses is reached, so that no more requests are read."""
        return len(self.responses) >= REQUESTS_IN_FLIGHT_MAX or self.held_bytes >= held_bytes_max

    def hold(self) -> None:
        """Handle no later request until `release`, because one is processed over several turns."""
        self.held_bytes += _HELD_BACK_BYTES

    def release(self) -> None:
        """Handle the later requests."""
        self.held_bytes = max(self.held_bytes_min, self.held_bytes - _HELD_BACK_BYTES)
        self.mark_dirty()

    def mute(self, until_ms: float) -> None:
        """Handle no later request until `unmute`, even when all responses are sent."""
        if not self.muted_until_ms:
            self.held_bytes_min = _HELD_BACK_BYTES
            self.held_bytes += _HELD_BACK_BYTES
        self.muted_until_ms = until_ms

    def unmute(self) -> None:
        self.muted_until_ms = 0.0
        self.held_bytes_min = 0
        self.held_bytes = max(0, self.held_bytes - _HELD_BACK_BYTES)

    def unsent_ranges(self, files: Container[FileHandle] | None = None) -> Iterator[FileRange]:
        """Yield the ranges of files, or of these files only, that are not completely sent yet."""
        parts = chain(self.unsent, *(slot.parts for slot in self.responses if isinstance(slot.parts, list)))
        for part in parts:
            if isinstance(part, FileRange) and (files is None or part.file in files):
                yield part

    def mark_dirty(self) -> None:
        if not self.dirty and not self.closed:
            self.dirty = True
            self.dirty_connections.append(self)
