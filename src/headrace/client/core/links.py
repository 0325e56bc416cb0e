"""Connections to the brokers on the Network port: opened when needed, closed when silent, avoided when dead.

`submit` takes a call and a callback for its reply; `turn` waits for the network once and delivers replies. Every call
gets exactly one reply: the response or an error. This works the same on real sockets and in the simulator.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from headrace.client.core.awaited_calls import NEVER, Completed, Pending
from headrace.client.core.broker_addresses import Addresses
from headrace.client.core.calls import ANY_BROKER, Call
from headrace.client.core.cluster import Cluster, is_foreign
from headrace.client.core.connection import RESPONSE_BYTES_MAX, AnsweredCall, BrokerConnection
from headrace.client.core.link import PLAINTEXT, SILENCE_MS, Address, Link, LinkRoute, Security
from headrace.client.errors import (
    AuthenticationFailed,
    BadResponse,
    BrokerUnreachable,
    ClientError,
    DeadlineExceeded,
    UnsupportedByBroker,
    unreachable,
)
from headrace.ports.clock import Clock
from headrace.ports.network import BROKEN, READABLE, WRITABLE, Network
from headrace.wire.apis import ApiKey

CONNECT_TIMEOUT_MS = 10_000
REQUEST_TIMEOUT_MS = 30_000

RECEIVE_BYTES = 256 * 1024
FIRST_RECEIVE_BYTES = 16 * 1024
"""Bytes received between responses: a larger response that begins there is then received in place."""

RECEIVES_MAX = 16
"""Reads of one connection before the others have their turn."""

CALLS_WAITING_MAX = 1_000
"""Calls that may wait for one connection."""

TURN_MS_MAX = 60_000
"""The longest wait in one turn, whatever the caller requests."""


class Links:
    def __init__(
        self,
        *,
        network: Network,
        clock: Clock,
        bootstrap: Sequence[Address],
        client_id: str,
        cluster: Cluster,
        request_timeout_ms: float = REQUEST_TIMEOUT_MS,
        connect_timeout_ms: float = CONNECT_TIMEOUT_MS,
        response_bytes_max: int = RESPONSE_BYTES_MAX,
        choose: Callable[[int], int] | None = None,
        security: Security = PLAINTEXT,
        tell: Callable[[str], object] | None = None,
    ) -> None:
        """`choose` returns a number below its argument: clients that start together should not all choose the same
        broker.

        `tell` logs when a broker can no longer be reached, and when it can again.
        """
        self.cluster = cluster
        self._network = network
        self._clock = clock
        self._security = security
        self._addresses = Addresses(cluster, bootstrap, choose=choose, tell=tell)
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._connect_timeout_ms = connect_timeout_ms
        self._response_bytes_max = response_bytes_max
        self._links: dict[LinkRoute, Link] = {}
        self._by_token: dict[int, LinkRoute] = {}
        self._replies: deque[tuple[Completed, ClientError | None]] = deque()
        """Replies that did not come from the network: errors, and the missing responses of acks=0."""
        self._requests_count = self._received_bytes = self._sent_bytes = 0
        self._chunk = memoryview(bytearray(RECEIVE_BYTES))
        self._first_chunk = self._chunk[:FIRST_RECEIVE_BYTES]

    def submit(self, call: Call, completed: Completed, *, deadline_ms: float | None = None) -> None:
        """Send the call when its broker can be reached; `completed` is called from a later `turn`."""
        now_ms = self._clock.monotonic_ms()
        timeout_ms = now_ms + self._request_timeout_ms + call.wait_ms_max
        due_ms = min(timeout_ms, deadline_ms) if deadline_ms is not None else timeout_ms
        connect_by_ms = now_ms + self._connect_timeout_ms if call.target == ANY_BROKER else NEVER
        self._route(Pending(call, completed, due_ms, connect_by_ms))

    def _route(self, pending: Pending) -> None:
        now_ms = self._clock.monotonic_ms()
        try:
            route = LinkRoute(self._address_for(pending.call.target, now_ms), pending.call.channel)
            link = self._links.get(route) or self._connect(route, now_ms)
            self._enqueue(link, pending)
        except ClientError as error:
            self._fail_or_reroute(pending, error)

    def _fail_or_reroute(self, pending: Pending, error: ClientError) -> None:
        """Offer an unsent call for any broker to the next address that is not in back-off."""
        now_ms = self._clock.monotonic_ms()
        may_try = isinstance(error, BrokerUnreachable | BadResponse) or (
            isinstance(error, DeadlineExceeded) and now_ms < pending.connect_by_ms
        )
        if pending.call.target == ANY_BROKER and may_try and self._addresses.usable(now_ms):
            self._route(pending)
        else:
            self._replies.append((pending.completed, error))

    def versions_of(self, node_id: int) -> dict[int, tuple[int, int, int]]:
        """Return the API versions of the broker, once a call to it was answered; of any broker for ANY_BROKER."""
        link = self._links.get(LinkRoute(self._address_for(node_id, self._clock.monotonic_ms()), 0))
        return dict(link.connection.versions) if link is not None else {}

    def counters(self) -> dict[str, float]:
        return {
            "connection-count": len(self._links),
            "requests-in-flight": self.in_flight(),
            "request-total": self._requests_count,
            "incoming-byte-total": self._received_bytes,
            "outgoing-byte-total": self._sent_bytes,
            "connection-failure-total": self._addresses.failures_count,
        }

    def in_flight(self) -> int:
        return sum(link.calls() for link in list(self._links.values())) + len(self._replies)

    def turn(self, wait_ms: float) -> None:
        """Wait at most that long for the network, then deliver what has arrived."""
        self.handle(self._network.poll(self.wait_ms(wait_ms)))

    def wait_ms(self, wait_ms: float) -> float:
        """Return how long to wait for the network, if nothing else is due for `wait_ms`."""
        if self._replies:
            return 0.0
        return max(0.0, min(wait_ms, TURN_MS_MAX, self._next_deadline_ms() - self._clock.monotonic_ms()))

    def handle(self, events: Iterable[tuple[int, int]]) -> None:
        """Handle network events, for a loop that polls the network itself; tokens of other owners are ignored."""
        for token, ready in events:
            route = self._by_token.get(token)
            if route is not None:
                self._serve(route, ready)
        self._expire(self._clock.monotonic_ms())
        for _ in range(len(self._replies)):
            completed, reply = self._replies.popleft()
            completed(reply)

    def send_last(self, calls: Iterable[Call]) -> None:
        """Send these calls just before closing, where a connection exists and accepts them at once."""
        now_ms = self._clock.monotonic_ms()
        for call in calls:
            broker = self.cluster.brokers.get(call.target)
            link = (
                self._links.get(LinkRoute(Address(broker.host, broker.port), call.channel))
                if broker is not None
                else None
            )
            if link is None or not link.may_send(now_ms):
                continue
            with suppress(OSError, ClientError):  # The connection is closed next anyway.
                link.outgoing.append(memoryview(link.connection.send(call)))
                self._flush(link)

    def close(self) -> None:
        """Close every connection; the calls on them get no reply."""
        for link in self._links.values():
            self._network.forget(link.transport.token)
            link.transport.close()
        self._links.clear()
        self._by_token.clear()
        self._replies.clear()

    def _address_for(self, target: int, now_ms: float) -> Address:
        if target != ANY_BROKER:
            return self._addresses.of(target)
        for address in self._addresses.all():
            link = self._links.get(LinkRoute(address, 0))
            if link is not None and link.connection.is_ready and not link.was_silent:
                return address
        for address in self._addresses.usable(now_ms):
            link = self._links.get(LinkRoute(address, 0))
            if link is None or not link.was_silent:
                return address
        return self._addresses.next(now_ms)

    def _connect(self, route: LinkRoute, now_ms: float) -> Link:
        address = route.address
        self._addresses.check(address, now_ms)
        try:
            transport = self._network.connect(address.host, address.port)
        except OSError as error:
            raise self._refuse(address, unreachable(str(address), error.strerror or error)) from error
        connection = BrokerConnection(
            address=str(address),
            client_id=self._client_id,
            response_bytes_max=self._response_bytes_max,
            exchange=self._security.exchange() if self._security.exchange is not None else None,
        )
        secured = self._security.wrap(transport, address.host) if self._security.wrap is not None else None
        link = Link(secured or transport, connection, now_ms, now_ms + self._connect_timeout_ms)
        link.secured = secured
        self._links[route] = link
        self._by_token[transport.token] = route
        self._watch(link)
        return link

    def _refuse(self, address: Address, error: ClientError) -> ClientError:
        return self._addresses.refuse(address, error, self._clock.monotonic_ms())

    def _enqueue(self, link: Link, pending: Pending) -> None:
        now_ms = self._clock.monotonic_ms()
        if link.identify_ms <= now_ms and self._security.exchange is not None:
            link.identify(self._security.exchange(), now_ms + self._connect_timeout_ms)
        if not link.may_send(now_ms):
            if len(link.waiting) >= CALLS_WAITING_MAX:
                raise BrokerUnreachable(
                    f"{CALLS_WAITING_MAX} requests already wait for {link.connection.address}; wait for responses first"
                )
            link.waiting.append(pending)
            self._watch(link)
            return
        link.outgoing.append(memoryview(link.connection.send(pending.call)))
        self._requests_count += 1
        if pending.call.is_answered:
            link.sends(pending, now_ms)
        else:
            self._replies.append((pending.completed, None))
        with suppress(OSError):  # A fault of the connection is noticed in the next turn.
            self._flush(link)
        self._watch(link)

    def _watch(self, link: Link) -> None:
        has_more = bool(link.outgoing) if link.secured is None else link.secured.wants_send(bool(link.outgoing))
        interest = READABLE | (WRITABLE if has_more else 0)
        if interest != link.interest:
            link.interest = interest
            self._network.watch(link.transport.token, interest)

    def _serve(self, route: LinkRoute, events: int) -> None:
        link, address = self._links[route], route.address
        try:
            if events & WRITABLE:
                if link.secured is not None:
                    link.secured.flush()
                self._flush(link)
            if events & (READABLE | BROKEN):
                self._receive(link)
            self._watch(link)
        except OSError as error:
            broken = link.broken(error.strerror or str(error))
            is_idle = link.connection.is_ready and not link.calls()
            self._drop(route, broken if is_idle else self._refuse(address, broken))
        except (BadResponse, BrokerUnreachable, AuthenticationFailed, UnsupportedByBroker) as error:
            self._drop(route, self._refuse(address, error))
        else:
            if link.connection.is_ready:
                self._addresses.reached(address)

    def _flush(self, link: Link) -> None:
        while link.outgoing:
            head = link.outgoing[0]
            try:
                count = link.transport.send(head)
            except BlockingIOError:
                return
            self._sent_bytes += count
            if count < len(head):
                link.outgoing[0] = head[count:]
            else:
                link.outgoing.popleft()

    def _receive(self, link: Link) -> None:
        """Receive the available bytes; a large response is received in place, in as few calls as possible."""
        for _ in range(RECEIVES_MAX):
            room = None
            if link.secured is not None:
                place = self._chunk  # TLS holds decrypted bytes without an event: it needs a buffer for all of them.
            elif (room := link.connection.room()) is not None:
                place = room
            else:
                place = self._first_chunk
            place_bytes = len(place)
            try:
                count = link.transport.recv_into(place)
            except BlockingIOError:
                return
            if count == 0:
                raise OSError("the broker closed the connection")
            self._received_bytes += count
            was_ready = link.connection.is_ready
            read = link.connection.receive(place[:count]) if room is None else link.connection.filled(count)
            self._handle_responses(link, *read, was_ready=was_ready)
            if count < place_bytes or (room is not None and read[0]):
                return  # Nothing is left, or hardly anything after a response of this size.

    def _handle_responses(self, link: Link, responses: list[AnsweredCall], reaction: bytes, *, was_ready: bool) -> None:
        moved = False
        if reaction:
            link.outgoing.append(memoryview(reaction))
        for response in responses:
            throttle_ms = getattr(response.message, "throttle_time_ms", 0)
            if throttle_ms > 0:
                link.throttled(throttle_ms, self._clock.monotonic_ms())
            if response.call.api.API_KEY == ApiKey.METADATA and is_foreign(response.message):
                self.cluster.forget()
                moved = True
            link.responds().completed(response.message)
        if moved:
            raise BrokerUnreachable(
                f"{link.connection.address} now belongs to another cluster; starting again from bootstrap_servers"
            )
        if not was_ready and link.connection.is_ready:
            link.became_ready(self._clock.monotonic_ms())
            self.cluster.learn_features(link.connection.features_epoch, link.connection.features)
            self._take_over(link)
            self._release(link)

    def _take_over(self, link: Link) -> None:
        """Give the first ready connection the calls for any broker that wait for other connections."""
        channel = self._by_token[link.transport.token].channel
        for route, other in self._links.items():
            if route.channel == channel and not other.connection.is_ready:
                link.waiting.extend(other.release_free())

    def _try_next(self, silent: LinkRoute, now_ms: float) -> None:
        """Offer the calls for any broker to another address; the silent one keeps them if it responds first."""
        link = self._links[silent]
        link.patience_ms, link.was_silent = now_ms + SILENCE_MS, True
        route = self._alternative(silent.channel, now_ms)
        if route is None:
            return
        for pending in link.offer():
            try:
                self._enqueue(self._links.get(route) or self._connect(route, now_ms), pending)
            except ClientError as error:
                self._fail_or_reroute(pending, error)

    def _alternative(self, channel: int, now_ms: float) -> LinkRoute | None:
        """Return a connection that is ready and not silent, or the next address without a connection."""
        routes = [LinkRoute(address, channel) for address in self._addresses.usable(now_ms)]
        for route in routes:
            link = self._links.get(route)
            if link is not None and link.connection.is_ready and not link.was_silent:
                return route
        return next((route for route in routes if route not in self._links), None)

    def _release(self, link: Link) -> None:
        """Send the waiting calls, now that the connection can send."""
        for _ in range(len(link.waiting)):
            pending = link.waiting.popleft()
            try:
                self._enqueue(link, pending)
            except ClientError as error:
                self._replies.append((pending.completed, error))

    def _next_deadline_ms(self) -> float:
        return min((link.next_deadline_ms() for link in self._links.values()), default=float("inf"))

    def _expire(self, now_ms: float) -> None:
        """Close a connection with an overdue response: what follows on it would be responses to older requests."""
        for route, link in list(self._links.items()):
            address = route.address
            overdue = any(pending.deadline_ms <= now_ms for pending in link.sent)
            silent = not link.connection.is_ready and link.give_up_ms <= now_ms
            if overdue or silent:
                error = DeadlineExceeded(f"{address} did not respond in time: it may be overloaded, or not be a broker")
                self._drop(route, self._refuse(address, error))
            else:
                self._expire_waiting(link, now_ms)
                if link.is_silent(now_ms):
                    self._try_next(route, now_ms)
                if link.waiting and link.may_send(now_ms):
                    self._release(link)

    def _expire_waiting(self, link: Link, now_ms: float) -> None:
        is_ready, address = link.connection.is_ready, link.connection.address
        for pending in link.expired(now_ms):
            link.waiting.remove(pending)
            if is_ready:
                text = f"{address} throttles this client: check its quotas"
            elif pending.call.target == ANY_BROKER and len(every := self._addresses.all()) > 1:
                text = f"none of {', '.join(map(str, every))} responded in time; check that a broker is running there"
            else:
                text = f"no connection to {address} in time; check that a broker is running there"
            self._replies.append((pending.completed, DeadlineExceeded(text)))

    def _drop(self, route: LinkRoute, error: ClientError) -> None:
        link = self._links.pop(route)
        del self._by_token[link.transport.token]
        self._network.forget(link.transport.token)
        link.transport.close()
        self._replies.extend((pending.completed, error) for pending in link.sent)
        for pending in link.waiting:
            self._fail_or_reroute(pending, error)
