"""The route to another node: its link, the requests that wait for the link, and the time of the next connection."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from headrace.broker.peers.link import PeerLink
from headrace.broker.peers.requests import PeerFailure
from headrace.broker.timers import Timer
from headrace.model.configs.listeners import address_text
from headrace.model.ids import NodeId
from headrace.model.limits import PEER_RECONNECT_MS_MAX, PEER_RECONNECT_MS_MIN
from headrace.wire.apis import ApiKey

JITTER_PER_MILLE = 200
"""Jitter of the wait before a reconnect, in both directions: nodes that lost each other should not reconnect at the
same moments.
"""


class PeerAddress(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return address_text(self.host, self.port)


class PendingRequest:
    """A request that waits for its link or for its response."""

    __slots__ = ("api_key", "link", "number", "request", "sent_ms", "then", "timer", "version")

    def __init__(self, api_key: ApiKey, version: int, request: object, then: Callable[[object], None]) -> None:
        self.api_key = api_key
        self.version = version
        self.request = request
        self.then = then
        self.timer: Timer | None = None
        self.link: PeerLink | None = None
        """The link on which it was sent, and its number there."""
        self.number = 0
        self.sent_ms = 0.0


class PeerRoute:
    """The route to a node, or to the still unknown node at a bootstrap address."""

    def __init__(self, *, node_id: NodeId | None, address: PeerAddress | None) -> None:
        self.node_id = node_id
        """None for a bootstrap address."""
        self.address = address
        """The bootstrap address; None for a node, which has the addresses of `PeerLinks.candidates`."""
        self.found: NodeId | None = None
        """The node that was found at the bootstrap address."""
        self.is_self = False
        """True if this node listens at the bootstrap address itself."""
        self.link: PeerLink | None = None
        self.is_resolving = False
        self.waiting: deque[PendingRequest] = deque()
        self.posts: deque[bytes] = deque()
        """Raft messages that the next turn sends, or that wait for the link."""
        self.post_bytes = 0
        self.attempts = 0
        self.retry_ms = 0.0
        self.failure: PeerFailure | None = None
        """The failure of the last connection."""
        self.was_reset = False
        """True from the reset of a link to the end of the next attempt to connect."""
        self._backoff_ms = PEER_RECONNECT_MS_MIN
        self._ready_ms = 0.0

    def __str__(self) -> str:
        return f"node {self.node_id}" if self.node_id is not None else str(self.address)

    @property
    def is_ready(self) -> bool:
        return self.link is not None and self.link.peer is not None

    @property
    def is_connecting(self) -> bool:
        return self.is_resolving or (self.link is not None and self.link.peer is None)

    def failed(self, failure: PeerFailure, now_ms: float, jitter_per_mille: int, *, for_long: bool) -> None:
        """Note a failed connection; `for_long` says that the cause needs an operator."""
        self.failure = failure
        if for_long:
            self._backoff_ms = PEER_RECONNECT_MS_MAX
        self.retry_ms = now_ms + self._backoff_ms * (1000 + jitter_per_mille) / 1000
        self._backoff_ms = min(2 * self._backoff_ms, PEER_RECONNECT_MS_MAX)

    def reached(self, now_ms: float) -> None:
        """Note that the link is ready."""
        self.failure = None
        self.retry_ms = 0.0
        self.was_reset = False
        self._ready_ms = now_ms

    def lost(self, now_ms: float) -> bool:
        """Note that a ready link broke, and return whether it lived long enough to be replaced at once."""
        lived = now_ms - self._ready_ms >= PEER_RECONNECT_MS_MAX
        if lived:
            self._backoff_ms = PEER_RECONNECT_MS_MIN
        return lived

    def drop_posts(self) -> None:
        self.posts.clear()
        self.post_bytes = 0
