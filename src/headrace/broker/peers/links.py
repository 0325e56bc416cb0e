"""Links to the other nodes: one connection to each, which is opened when it is needed, and replaced when it breaks or
falls silent.

A request gets exactly one outcome: its response, or a PeerFailure. While a node is unreachable and no new connection
may begin yet, a request fails at once with the failure of the last connection; callers decide whether to send again.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Family
from headrace.broker.peers.events import PeerConnected, PeerEvent, PeerLost, PeerObserver, PeerRefused
from headrace.broker.peers.link import PeerLink, failure_of
from headrace.broker.peers.names import Names
from headrace.broker.peers.refusals import RefusalLog
from headrace.broker.peers.requests import PeerFailure
from headrace.broker.peers.routes import JITTER_PER_MILLE, PeerAddress, PeerRoute, PendingRequest
from headrace.broker.timers import Timers
from headrace.client.errors import BadResponse
from headrace.core.peers.handshake import NONCE_BYTES, HandshakeRefused, Initiator, PeerIdentity
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.model.limits import (
    PEER_HANDSHAKE_MS_MAX,
    PEER_PING_MS,
    PEER_RAFT_UNSENT_BYTES_MAX,
    PEER_REQUESTS_MAX,
    PEER_SILENT_MS_MAX,
    PEER_UNSENT_BYTES_MAX,
)
from headrace.ports.bundle import Ports
from headrace.ports.network import BROKEN, READABLE, WRITABLE, Token
from headrace.ports.spawner import call_all
from headrace.wire.apis import ApiKey, codec
from headrace.wire.codec import PeerCodec
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.raft_messages import RaftMessagesRequest

RECEIVE_BYTES = 64 << 10
RAFT_FRAME_BYTES = 1 << 20
"""Bytes of Raft messages that share a frame; a larger message has a frame of its own."""

DISCOVERY_MS = 1_000
"""The interval at which bootstrap addresses without a link are tried, as far as their backoff allows."""

FIRST_DISCOVERY_MS = 50
"""The same until a node was found at each of them: brokers that start together listen at different moments."""


class LinkLoop(Protocol):
    """The loop that watches the connections."""

    def attach(
        self, token: Token, handle: Callable[[int], None], interest: int = READABLE, *, first: bool = False
    ) -> None: ...
    def detach(self, token: Token) -> None: ...
    def watch(self, token: Token, interest: int) -> None: ...


class PeerLinks:
    def __init__(
        self,
        *,
        bootstrap: Sequence[PeerAddress],
        locate: Callable[[NodeId], PeerAddress | None],
        ports: Ports,
        timers: Timers,
        logger: NodeLogger,
        codecs: Callable[[int], PeerCodec] = codec,
    ) -> None:
        """`locate` returns the address with which a node has registered; None if the node is not known.

        `codecs` returns the codec of an API.
        """
        self._locate = locate
        self._codecs = codecs
        self._network = ports.network
        self._entropy = ports.entropy
        self._timers = timers
        self._names = Names(network=ports.network, spawner=ports.spawner, timers=timers)
        self.refusals = RefusalLog(logger)
        self._observers: list[PeerObserver] = []
        self._routes: dict[NodeId, PeerRoute] = {}
        self._bootstrap = [PeerRoute(node_id=None, address=address) for address in bootstrap]
        self._announced: dict[NodeId, PeerAddress] = {}
        """Addresses that nodes announced in their handshakes."""
        self._by_token: dict[int, tuple[PeerRoute, PeerLink]] = {}
        self._unflushed: dict[PeerRoute, None] = {}
        self._handled: PeerLink | None = None
        """The link whose event is handled now; its requests are sent at the end of the event."""
        self._room = memoryview(bytearray(RECEIVE_BYTES))
        self._requests_count = self._failures_count = self._dropped_count = 0
        self._closed = True
        """True before `start` and after `close`."""

    def start(self, loop: LinkLoop, *, identity: PeerIdentity, key: bytes) -> None:
        """Connect to the bootstrap addresses, and begin to test silent links."""
        self._loop = loop
        self._identity = identity
        self._key = key
        self._closed = False
        self._discover()
        self._timers.after(PEER_PING_MS, self._test_links)

    def subscribe(self, observer: PeerObserver) -> None:
        self._observers.append(observer)

    def connected(self) -> list[PeerIdentity]:
        """Return the nodes to which a link is ready."""
        return [route.link.peer for route in self._routes.values() if route.link is not None and route.link.peer]

    def introduced(self, peer: PeerIdentity) -> None:
        """Note the address that an authenticated node has announced."""
        if peer.port:
            self._announced[peer.node_id] = PeerAddress(peer.host, peer.port)

    def families(self) -> Iterator[Family]:
        ready = sum(route.is_ready for route in self._routes.values())
        yield Family("headrace_peer_links", "gauge", "Ready links to other nodes.", (((), ready),))
        yield Family(
            "headrace_peer_requests_total", "counter", "Requests sent to other nodes.", (((), self._requests_count),)
        )
        yield Family(
            "headrace_peer_request_failures_total",
            "counter",
            "Requests to other nodes that had no response.",
            (((), self._failures_count),),
        )
        yield Family(
            "headrace_peer_raft_messages_dropped_total",
            "counter",
            "Raft messages that were not sent, because the node could not be reached or did not take them.",
            (((), self._dropped_count),),
        )

    def close(self) -> None:
        """Close every link; requests on them get no outcome."""
        self._closed = True
        for _route, link in tuple(self._by_token.values()):
            self._release(link)

    # Requests

    def send(
        self,
        node_id: NodeId,
        api_key: ApiKey,
        version: int,
        request: object,
        *,
        timeout_ms: float,
        then: Callable[[object], None],
    ) -> None:
        """Send a request message to a peer; `then` gets the decoded response, or a PeerFailure, in a later turn."""
        route = self._route(node_id)
        pending = PendingRequest(api_key, version, request, then)
        self._requests_count += 1
        refusal = self._refusal(route)
        if refusal is not None:
            self._failures_count += 1
            self._timers.next_turn(partial(then, refusal))
            return
        pending.timer = self._timers.after(timeout_ms, lambda: self._timed_out(route, pending))
        if route.is_ready:
            self._transmit(route, pending)
        else:
            route.waiting.append(pending)
            self._connect(route)

    def post(self, node_id: NodeId, message: bytes) -> None:
        """Send a Raft message; it is dropped while the node cannot be reached or does not take what was sent before."""
        route = self._route(node_id)
        unsent_bytes = route.post_bytes + (route.link.unsent_bytes if route.link is not None else 0)
        is_too_much = unsent_bytes > 0 and unsent_bytes + len(message) > PEER_RAFT_UNSENT_BYTES_MAX
        if is_too_much or self._refusal(route) is not None:
            self._dropped_count += 1
            return
        route.posts.append(message)
        route.post_bytes += len(message)
        if route.is_ready:
            self._flush_later(route)
        else:
            self._connect(route)

    def _route(self, node_id: NodeId) -> PeerRoute:
        route = self._routes.get(node_id)
        if route is None:
            route = self._routes[node_id] = PeerRoute(node_id=node_id, address=None)
        return route

    def _refusal(self, route: PeerRoute) -> PeerFailure | None:
        """Return why nothing can be sent to the node now; None if it can."""
        if self._closed:
            return PeerFailure(code=ErrorCode.NETWORK_EXCEPTION, message="this node has no links to other nodes now")
        link = route.link
        outstanding = len(route.waiting) + (link.requests_unanswered if link is not None else 0)
        if outstanding >= PEER_REQUESTS_MAX or (link is not None and link.unsent_bytes >= PEER_UNSENT_BYTES_MAX):
            return PeerFailure(
                code=ErrorCode.REQUEST_TIMED_OUT, message=f"{route} does not answer {outstanding} earlier requests"
            )
        if link is None and not route.is_resolving and self._timers.now_ms() < route.retry_ms:
            return route.failure
        return None

    def _transmit(self, route: PeerRoute, pending: PendingRequest) -> None:
        link = route.link
        assert link is not None
        pending.link, pending.sent_ms = link, self._timers.now_ms()
        pending.number = link.send(
            pending.api_key, pending.version, pending.request, lambda response: self._end(pending, response)
        )
        link.used_ms = pending.sent_ms
        if link is not self._handled:
            self._flush_later(route)

    def _end(self, pending: PendingRequest, outcome: object) -> None:
        if pending.timer is not None:
            self._timers.cancel(pending.timer)
        if isinstance(outcome, PeerFailure):
            self._failures_count += 1
        pending.then(outcome)

    def _timed_out(self, route: PeerRoute, pending: PendingRequest) -> None:
        failure = PeerFailure(code=ErrorCode.REQUEST_TIMED_OUT, message=f"{route} did not answer in time")
        link = pending.link
        if link is None:
            route.waiting.remove(pending)
        else:
            link.forget(pending.number)
        self._failures_count += 1
        pending.then(failure)
        if link is not None and route.link is link and link.heard_ms <= pending.sent_ms:
            self._drop(link, TimeoutError("it is silent"))

    # Sending

    def _flush_later(self, route: PeerRoute) -> None:
        """Send in the next turn, together with everything else that this turn has for the node."""
        if not self._unflushed:
            self._timers.next_turn(self._flush_all)
        self._unflushed[route] = None

    def _flush_all(self) -> None:
        routes, self._unflushed = self._unflushed, {}
        call_all(partial(self._flush, route) for route in routes)

    def _flush(self, route: PeerRoute) -> None:
        link = route.link
        if link is None or link.peer is None:
            return
        while route.posts:
            messages: list[bytes] = []
            size = 0
            while route.posts and (not messages or size + len(route.posts[0]) <= RAFT_FRAME_BYTES):
                messages.append(route.posts.popleft())
                size += len(messages[-1])
            link.post(ApiKey.RAFT_MESSAGES, 0, RaftMessagesRequest(messages=tuple(messages)))
        route.post_bytes = 0
        link.used_ms = self._timers.now_ms()
        try:
            link.flush()
        except OSError as error:
            self._drop(link, error)
        else:
            self._watch(link)

    def _watch(self, link: PeerLink) -> None:
        if link.watched != link.interest:
            link.watched = link.interest
            self._loop.watch(link.transport.token, link.watched)

    # Connections

    def _connect(self, route: PeerRoute) -> None:
        if self._closed or route.is_connecting or route.is_ready:
            return
        candidates = self._candidates(route)
        if not candidates:
            unknown = PeerFailure(
                code=ErrorCode.NETWORK_EXCEPTION,
                message=f"the address of {route} is not known: it has not registered, and no bootstrap server is it",
            )
            self._timers.next_turn(lambda: self._failed(route, unknown))
            return
        round_number, which = divmod(route.attempts, len(candidates))
        route.attempts += 1
        address = candidates[which]
        route.is_resolving = True
        self._names.resolve(address.host, lambda found: self._resolved(route, address, found, round_number))

    def _candidates(self, route: PeerRoute) -> list[PeerAddress]:
        if route.node_id is None:
            return [route.address] if route.address is not None else []
        found = [each.address for each in self._bootstrap if each.found == route.node_id]
        every = (self._locate(route.node_id), self._announced.get(route.node_id), *found)
        return list(dict.fromkeys(address for address in every if address is not None))

    def _resolved(self, route: PeerRoute, address: PeerAddress, found: list[str] | OSError, round_number: int) -> None:
        route.is_resolving = False
        if self._closed or route.link is not None:
            return
        try:
            if isinstance(found, OSError):
                raise found
            transport = self._network.connect(found[round_number % len(found)], address.port)
        except OSError as error:
            self._failed(route, failure_of(error, connected=False, address=str(address)))
            return
        handshake = Initiator(
            self._identity, self._key, self._entropy.random_bytes(NONCE_BYTES), expected_node_id=route.node_id
        )
        link = PeerLink(transport, handshake, address=str(address), now_ms=self._timers.now_ms(), codecs=self._codecs)
        route.link = link
        self._by_token[transport.token] = (route, link)
        self._loop.attach(transport.token, partial(self._event, link), READABLE | WRITABLE, first=True)
        self._timers.after(PEER_HANDSHAKE_MS_MAX, lambda: self._check_handshake(link))

    def _check_handshake(self, link: PeerLink) -> None:
        if link.peer is None:
            self._drop(link, TimeoutError(f"it did not authenticate within {PEER_HANDSHAKE_MS_MAX // 1000} s"))

    def _event(self, link: PeerLink, event: int) -> None:
        was_ready = link.peer is not None
        self._handled = link
        try:
            if event & WRITABLE:
                link.flush()
                if link.tested_ms is not None:  # the peer takes bytes, but has not reached the test request yet
                    link.tested_ms = self._timers.now_ms()
            if event & (READABLE | BROKEN):
                link.receive(self._room, self._timers.now_ms())
            if link.refusal is not None:
                self._refused(link, link.refusal)
                return
            if link.peer is not None and not was_ready:
                self._authenticated(link, link.peer)
            if self._is_open(link):
                link.flush()
                self._watch(link)
        except (OSError, BadResponse) as error:
            self._drop(link, error)
        finally:
            self._handled = None

    def _authenticated(self, link: PeerLink, peer: PeerIdentity) -> None:
        route, _ = self._by_token[link.transport.token]
        self.introduced(peer)
        self.refusals.accepted(str(route))
        if route.node_id is None:
            route.found = peer.node_id
            route.link = None
            route.reached(self._timers.now_ms())
            route = self._route(peer.node_id)
            if route.link is not None or route.is_resolving:
                self._release(link)
                return
            route.link = link
            self._by_token[link.transport.token] = (route, link)
        route.reached(self._timers.now_ms())
        self._tell(PeerConnected(peer=peer))
        while route.waiting and route.link is link:
            self._transmit(route, route.waiting.popleft())
        self._flush_later(route)

    def _refused(self, link: PeerLink, refusal: HandshakeRefused) -> None:
        route, _ = self._by_token[link.transport.token]
        self._release(link)
        route.link = None
        if refusal.is_self:
            route.is_self = True
        else:
            self.refusals.refused(str(route), refusal.message)
        self._failed(route, PeerFailure(code=refusal.code, message=refusal.message), for_long=True)

    def _drop(self, link: PeerLink, error: Exception) -> None:
        """Close a link that broke, or that could not be established."""
        if not self._is_open(link):
            return
        route, _ = self._by_token[link.transport.token]
        self._release(link)
        route.link = None
        failure = failure_of(error, connected=link.peer is not None, address=f"{route} at {link.address}")
        if isinstance(error, BadResponse):
            self.refusals.refused(str(route), str(error))
        calls: list[Callable[[], object]] = [partial(link.fail_all, failure)]
        if link.peer is None:
            calls.append(partial(self._failed, route, failure))
        else:
            route.was_reset = failure.reset
            calls.append(partial(self._tell, PeerLost(peer=link.peer, reset=failure.reset)))
            if route.lost(self._timers.now_ms()):
                calls.append(partial(self._connect, route))
            else:  # a peer that keeps accepting and closing is treated like one that refuses
                self._back_off(route, failure)
                self._timers.at(route.retry_ms, lambda: self._connect(route))
        call_all(calls)

    def _is_open(self, link: PeerLink) -> bool:
        known = self._by_token.get(link.transport.token)
        return known is not None and known[1] is link

    def _release(self, link: PeerLink) -> None:
        self._by_token.pop(link.transport.token, None)
        self._loop.detach(link.transport.token)
        link.transport.close()

    def _failed(self, route: PeerRoute, failure: PeerFailure, *, for_long: bool = False) -> None:
        """Note that a connection could not be established, and fail the requests that waited for it."""
        self._back_off(route, failure, for_long=for_long)
        self._dropped_count += len(route.posts)
        route.drop_posts()
        waiting = [route.waiting.popleft() for _ in range(len(route.waiting))]
        calls: list[Callable[[], object]] = [partial(self._end, pending, failure) for pending in waiting]
        if route.was_reset and failure.connection_refused and route.node_id is not None:
            # The refusal need not come first after the reset: a killed process still accepts connections for a moment.
            route.was_reset = False
            calls.append(partial(self._tell, PeerRefused(node_id=route.node_id)))
        call_all(calls)

    def _back_off(self, route: PeerRoute, failure: PeerFailure, *, for_long: bool = False) -> None:
        jitter = self._entropy.below(2 * JITTER_PER_MILLE) - JITTER_PER_MILLE
        route.failed(failure, self._timers.now_ms(), jitter, for_long=for_long)

    def _tell(self, event: PeerEvent) -> None:
        call_all(partial(observer, event) for observer in self._observers)

    # Time

    def _discover(self) -> None:
        """Connect to the bootstrap addresses whose node is unknown or cannot be reached."""
        if self._closed:
            return
        now_ms = self._timers.now_ms()
        for route in self._bootstrap:
            found = self._routes.get(route.found) if route.found is not None else None
            if not route.is_self and now_ms >= route.retry_ms and (found is None or not found.is_ready):
                self._connect(route)
        if self._bootstrap:
            all_found = all(route.is_self or route.found is not None for route in self._bootstrap)
            self._timers.after(DISCOVERY_MS if all_found else FIRST_DISCOVERY_MS, self._discover)

    def _test_links(self) -> None:
        """Test links that are in use and have received nothing lately; close those that stay silent."""
        if self._closed:
            return
        self._timers.after(PEER_PING_MS, self._test_links)
        now_ms = self._timers.now_ms()
        for route in tuple(self._routes.values()):
            link = route.link
            if link is None or link.peer is None or link.used_ms < link.heard_ms:
                continue
            if link.tested_ms is not None:
                if now_ms - link.tested_ms >= PEER_SILENT_MS_MAX:
                    self._drop(link, TimeoutError(f"it was silent for {PEER_SILENT_MS_MAX // 1000} s"))
            elif now_ms - link.heard_ms >= PEER_PING_MS:
                link.tested_ms = now_ms
                link.send(ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), lambda _response: None)
                self._flush_later(route)
