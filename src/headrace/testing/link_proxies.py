"""Proxies in front of the cluster listeners of brokers, which can cut the links between them, also in one direction.

The broker that connects introduces itself in its first request, so each connection belongs to a link. Bytes of a link
that is cut wait in the proxy, and behind it in the kernel, as packets do that are lost and sent again.
"""

import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from functools import partial

from headrace.wire.apis import ApiKey
from headrace.wire.errors import ProtocolError
from headrace.wire.frames import SIZE_BYTES, read_request_header
from headrace.wire.messages.authenticate_peer import decode_request

BUFFER_BYTES_MAX = 1 << 16
"""Bytes of one direction of a connection in the proxy."""
FIRST_FRAME_BYTES_MAX = 1 << 12
CONNECT_S_MAX = 5.0
UNKNOWN = 0
"""The node id of a caller that did not introduce itself as a broker does; its connection is never cut."""
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of a socket whose close is a reset."""

Link = tuple[int, int]
"""The node ids of the sender and the receiver."""


class _Direction:
    """Bytes from one socket of a connection to the other."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source = source
        self.target = target
        self.waiting = bytearray()
        self.has_ended = False


class _Connection:
    def __init__(self, caller: socket.socket, target: socket.socket, target_id: int) -> None:
        self.target_id = target_id
        self.caller_id: int | None = None
        """None until it has introduced itself."""
        self.forth = _Direction(caller, target)
        self.back = _Direction(target, caller)
        self.was_reset = False

    @property
    def directions(self) -> tuple[_Direction, _Direction]:
        return self.forth, self.back

    def link_of(self, direction: _Direction) -> Link | None:
        if self.caller_id is None:
            return None
        ids = (self.caller_id, self.target_id)
        return ids if direction is self.forth else (ids[1], ids[0])


class LinkProxies:
    """One thread forwards all connections."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._requests: list[Callable[[], None]] = []
        self._cut: frozenset[Link] = frozenset()
        self._connections: dict[_Connection, None] = {}
        self._listeners: dict[int, socket.socket] = {}
        self._closing = False
        self._wake_end, self._wake = socket.socketpair()
        self._wake_end.setblocking(False)
        self._selector.register(self._wake_end, selectors.EVENT_READ, self._woken)
        self._thread = threading.Thread(target=self._run, name="link proxies", daemon=True)
        self._thread.start()

    # Calls of other threads; each has taken effect when it returns

    def accept(self, node_id: int, host: str, *, port: int, target_port: int) -> None:
        """Forward the connections to a port to the cluster listener of a broker."""

        def listen() -> None:
            listener = socket.create_server((host, port))
            listener.setblocking(False)
            self._listeners[node_id] = listener
            self._selector.register(
                listener, selectors.EVENT_READ, lambda _events: self._accept(listener, node_id, (host, target_port))
            )

        self._request(listen)

    def refuse(self, node_id: int) -> None:
        """Refuse connections to a broker, because its process is gone."""

        def end() -> None:
            listener = self._listeners.pop(node_id, None)
            if listener is not None:
                self._selector.unregister(listener)
                listener.close()

        self._request(end)

    def cut(self, links: Iterable[Link]) -> None:
        """Deliver nothing more on these links, and on all others again."""
        chosen = frozenset(links)

        def change() -> None:
            self._cut = chosen
            for connection in tuple(self._connections):
                self._forward(connection)

        self._request(change)

    def close(self) -> None:
        if not self._closing:
            self._request(self._close)
            self._thread.join()

    def _request(self, action: Callable[[], None]) -> None:
        done = threading.Event()
        failures: list[Exception] = []

        def act() -> None:
            try:
                action()
            except Exception as error:
                failures.append(error)
            done.set()

        with self._lock:
            self._requests.append(act)
        self._wake.send(b"\0")
        done.wait()
        if failures:
            raise failures[0]

    # The thread

    def _run(self) -> None:
        while not self._closing:
            for key, events in self._selector.select():
                key.data(events)
        self._selector.close()

    def _woken(self, _events: int) -> None:
        self._wake_end.recv(BUFFER_BYTES_MAX)
        with self._lock:
            requests, self._requests = self._requests, []
        for act in requests:
            act()

    def _close(self) -> None:
        self._closing = True
        for listener in self._listeners.values():
            listener.close()
        for connection in tuple(self._connections):
            self._end(connection)
        self._wake.close()
        self._wake_end.close()

    def _accept(self, listener: socket.socket, node_id: int, target: tuple[str, int]) -> None:
        try:
            caller, _address = listener.accept()
        except OSError:
            return
        try:
            forward = socket.create_connection(target, CONNECT_S_MAX)
        except OSError:
            _close(caller, reset=True)
            return
        for each in (caller, forward):
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = _Connection(caller, forward, node_id)
        self._connections[connection] = None
        for each in (caller, forward):
            self._selector.register(each, selectors.EVENT_READ, lambda events: None)
        self._forward(connection)

    def _forward(self, connection: _Connection) -> None:
        """Send what may be sent, and choose which events matter from now on."""
        for direction in connection.directions:
            if direction.waiting and self._is_open(connection, direction) and not _send(direction):
                connection.was_reset = True
        if connection.was_reset or any(
            each.has_ended and not each.waiting and self._is_open(connection, each) for each in connection.directions
        ):
            self._end(connection)
            return
        for direction, other in (connection.directions, connection.directions[::-1]):
            events = 0
            if not direction.has_ended and len(direction.waiting) < BUFFER_BYTES_MAX:
                events |= selectors.EVENT_READ
            if other.waiting and self._is_open(connection, other):
                events |= selectors.EVENT_WRITE
            self._choose(direction.source, events, partial(self._ready, connection, direction))

    def _choose(self, each: socket.socket, events: int, handler: Callable[[int], None]) -> None:
        is_registered = each in self._selector.get_map()
        if events and is_registered:
            self._selector.modify(each, events, handler)
        elif events:
            self._selector.register(each, events, handler)
        elif is_registered:
            self._selector.unregister(each)

    def _ready(self, connection: _Connection, direction: _Direction, events: int) -> None:
        if connection not in self._connections:
            return
        if events & selectors.EVENT_READ:
            try:
                received = direction.source.recv(BUFFER_BYTES_MAX - len(direction.waiting))
            except BlockingIOError:
                received = None
            except OSError:
                received, connection.was_reset = b"", self._is_open(connection, direction)
            if received is not None:
                direction.waiting += received
                direction.has_ended = direction.has_ended or not received
            if connection.caller_id is None and direction is connection.forth:
                connection.caller_id = _caller_of(direction.waiting, has_ended=direction.has_ended)
        self._forward(connection)

    def _is_open(self, connection: _Connection, direction: _Direction) -> bool:
        """Return whether bytes may be delivered: not before the caller is known."""
        return connection.caller_id is not None and connection.link_of(direction) not in self._cut

    def _end(self, connection: _Connection) -> None:
        self._connections.pop(connection, None)
        for direction in connection.directions:
            self._choose(direction.source, 0, lambda events: None)
            _close(direction.source, reset=connection.was_reset)


def _send(direction: _Direction) -> bool:
    """Send what the receiver takes; return False if it is gone."""
    try:
        del direction.waiting[: direction.target.send(direction.waiting)]
    except BlockingIOError:
        pass
    except OSError:
        return False
    return True


def _close(each: socket.socket, *, reset: bool) -> None:
    if reset:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    each.close()


def _caller_of(received: bytearray, *, has_ended: bool) -> int | None:
    """Return the node id in the first request, or UNKNOWN; None while it is not complete."""
    size = int.from_bytes(received[:SIZE_BYTES], "big")
    if len(received) < SIZE_BYTES or (size <= FIRST_FRAME_BYTES_MAX and len(received) < SIZE_BYTES + size):
        return UNKNOWN if has_ended else None
    frame = bytes(received[: SIZE_BYTES + size])
    try:
        header = read_request_header(frame, SIZE_BYTES, len(frame))
        if header.api_key != ApiKey.AUTHENTICATE_PEER:
            return UNKNOWN
        hello = decode_request(frame, header.body_position, len(frame), header.api_version).hello
    except ProtocolError:
        return UNKNOWN
    return UNKNOWN if hello is None else hello.node_id
