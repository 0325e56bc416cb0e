"""The Network port on virtual connections, and the client's end of them for tests.

The `Fabric` connects a world: it knows every listener and moves the bytes, a slice at a time. Each machine has a
`VirtualNetwork` attached to it. Tests connect with `Fabric.connect` and hold a `VirtualClient`.
"""

import errno
import os
import zlib
from collections import deque
from collections.abc import Sequence

from headrace.ports.disk import Buffer, Slice
from headrace.ports.network import BROKEN, HANGUP, READABLE, WRITABLE, Listener, Token, Transport
from headrace.sim.disk import VirtualDisk
from headrace.sim.entropy import SeededEntropy
from headrace.sim.streams import WHOLE_EIGHTHS, Stream
from headrace.sim.trace import Trace

BACKLOG_CONNECTIONS_MAX = 128
FIRST_TOKEN = 1
FIRST_FREE_PORT = 40_000
LOOPBACK = "127.0.0.1"
"""The host that clients connect from unless a test names another."""
MORE_FLAG = 0x8000
SHORT_SENDS_ONE_IN = 4
TO_THE_LISTENER = ">"
EVENTS_MAX = 64
"""Events that one poll returns; the others are still ready at the next."""


def _error(code: int) -> OSError:
    return OSError(code, os.strerror(code))


class VirtualEndpoint:
    """One side of a connection: the stream it reads and the stream it writes."""

    __slots__ = ("incoming", "name", "outgoing")

    def __init__(self, name: str, incoming: Stream, outgoing: Stream) -> None:
        self.name = name
        self.incoming = incoming
        self.outgoing = outgoing

    def reset(self) -> None:
        self.incoming.reset()
        self.outgoing.reset()

    def leave(self) -> None:
        """Close this side: sent bytes still arrive; bytes from the other side cause a reset."""
        self.outgoing.finished = True
        self.incoming.reset()


class VirtualTransport:
    __slots__ = ("_disk", "_endpoint", "_entropy", "_network", "_open", "peer_address", "token")

    def __init__(self, network: "VirtualNetwork", token: Token, endpoint: VirtualEndpoint) -> None:
        self.token = token
        self.peer_address = endpoint.name
        self._network = network
        self._endpoint = endpoint
        self._disk = network.disk
        self._entropy = network.entropy
        self._open = True

    def recv_into(self, buffer: memoryview, /) -> int:
        incoming = self._living().incoming
        if incoming.is_reset:
            raise _error(errno.ECONNRESET)
        content = incoming.take(len(buffer))
        if not content and not incoming.at_end():
            raise _error(errno.EAGAIN)
        buffer[: len(content)] = content
        return len(content)

    def send(self, buffer: Buffer, flags: int = 0, /) -> int:
        assert flags in (0, MORE_FLAG)
        length = self._taken_length(len(buffer))
        self._endpoint.outgoing.put(bytes(memoryview(buffer)[:length]))
        return length

    def send_vector(self, buffers: Sequence[Buffer], /) -> int:
        return self.send(b"".join(buffers))

    def send_slice(self, part: Slice, /) -> int:
        length = self._taken_length(part.length)
        content = self._disk.read(part.file, length, part.position)
        self._endpoint.outgoing.put(content)
        return len(content)

    def close(self) -> None:
        if self._open:
            self._open = False
            self._network.let_go(self.token)
            self._endpoint.leave()

    def ready(self, *, hangup: bool = False) -> int:
        """Return the readiness. A closed peer shows as the end of the stream; only a reset is BROKEN before a send has
        failed.
        """
        incoming, outgoing = self._endpoint.incoming, self._endpoint.outgoing
        if incoming.is_reset or (hangup and incoming.end_is_here()):
            return READABLE | WRITABLE | BROKEN
        events = READABLE if incoming.waiting() or incoming.at_end() else 0
        return events | (WRITABLE if outgoing.is_reset or outgoing.room() > 0 else 0)

    def _living(self) -> VirtualEndpoint:
        if not self._open:
            raise _error(errno.EBADF)
        return self._endpoint

    def _taken_length(self, length: int) -> int:
        outgoing = self._living().outgoing
        if outgoing.is_reset:
            raise _error(errno.EPIPE)
        room = outgoing.room()
        if room <= 0:
            raise _error(errno.EAGAIN)
        length = min(length, room)
        if length > 1 and self._entropy.one_in(SHORT_SENDS_ONE_IN):
            return 1 + self._entropy.below(length - 1)
        return length


class VirtualListener:
    __slots__ = ("_network", "backlog", "host", "port", "token")

    def __init__(self, network: "VirtualNetwork", token: Token, host: str, port: int) -> None:
        self._network = network
        self.token = token
        self.host = host
        self.port = port
        self.backlog: deque[VirtualEndpoint] = deque()

    def accept(self) -> Transport | None:
        return self._network.accept_from(self)

    def close(self) -> None:
        self._network.close_listener(self)

    def reset(self) -> None:
        for endpoint in self.backlog:
            endpoint.reset()
        self.backlog.clear()

    def ready(self, *, hangup: bool = False) -> int:
        return READABLE if self.backlog else 0


class VirtualClient:
    """A test's end of a connection: no window, no blocking, and everything that arrived in `received`."""

    __slots__ = ("_endpoint", "received")

    def __init__(self, endpoint: VirtualEndpoint) -> None:
        self._endpoint = endpoint
        self.received = bytearray()

    def send(self, payload: bytes) -> None:
        if self._endpoint.outgoing.is_reset:
            raise _error(errno.EPIPE)
        self._endpoint.outgoing.put(payload)

    def has_unread(self) -> bool:
        """Return whether anything has arrived that was not received yet."""
        return self._endpoint.incoming.waiting() > 0

    def receive(self) -> bytearray:
        """Move what has arrived into `received` and return it all."""
        incoming = self._endpoint.incoming
        self.received += incoming.take(incoming.waiting())
        return self.received

    def is_closed(self) -> bool:
        """Return whether the node has closed or reset the connection and all its bytes were received."""
        incoming = self._endpoint.incoming
        return incoming.is_reset or incoming.at_end()

    def stall(self, *, sending: bool = False, receiving: bool = False) -> None:
        """Hold back the bytes of the named directions from now on; no argument releases both."""
        self._endpoint.outgoing.stalled = sending
        self._endpoint.incoming.stalled = receiving

    def finish(self) -> None:
        """Send no more, but continue to read (half-close)."""
        self._endpoint.outgoing.finished = True

    def is_within_a_frame(self) -> bool:
        """Return whether the node has received the beginning, but not the end, of bytes that were sent at once."""
        return self._endpoint.outgoing.is_within_a_frame()

    def close(self) -> None:
        self._endpoint.leave()

    def reset(self) -> None:
        self._endpoint.reset()


class Fabric:
    def __init__(self, entropy: SeededEntropy, trace: Trace) -> None:
        self._entropy = entropy
        self.trace = trace
        self.whole_eighths = WHOLE_EIGHTHS
        """The number out of eight deliveries that are not sliced."""
        self._listeners: dict[tuple[str, int], VirtualListener] = {}
        self._streams: list[tuple[str, Stream]] = []
        self._connections = 0
        self._next_port = FIRST_FREE_PORT

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def add(self, listener: VirtualListener) -> None:
        key = (listener.host, listener.port)
        if key in self._listeners:
            raise _error(errno.EADDRINUSE)
        self._listeners[key] = listener

    def remove(self, listener: VirtualListener) -> None:
        """Remove a listener. This may be called twice; by then the address may belong to another listener."""
        key = (listener.host, listener.port)
        if self._listeners.get(key) is listener:
            del self._listeners[key]
        listener.reset()

    def connect(self, host: str, port: int, *, from_host: str = LOOPBACK) -> VirtualClient:
        return VirtualClient(self.join(host, port, from_host=from_host))

    def join(self, host: str, port: int, *, from_host: str = LOOPBACK) -> VirtualEndpoint:
        """Return the calling side of a new connection; the other side waits in the listener's backlog."""
        listener = self._listeners.get((host, port))
        if listener is None or len(listener.backlog) >= BACKLOG_CONNECTIONS_MAX:
            raise _error(errno.ECONNREFUSED)
        number = self._connections
        self._connections += 1
        there, back = Stream(), Stream()
        self._streams += [(f"{number}{TO_THE_LISTENER}", there), (f"{number}<", back)]
        listener.backlog.append(VirtualEndpoint(f"{from_host}:{number}", there, back))
        self.trace.record(f"network connect {number} {host}:{port}")
        return VirtualEndpoint(f"{host}:{port}", back, there)

    def deliver(self) -> None:
        """Move a drawn slice of every stream that has bytes in flight."""
        some_ended = False
        for name, stream in self._streams:
            if not stream.on_the_way:  # most of them, most of the time
                some_ended = some_ended or stream.finished
            elif delivered := stream.deliver(self._entropy, self.whole_eighths):
                self.trace.record(f"network {name} {len(delivered)} {zlib.crc32(delivered):08x}")
                if name[-1] == TO_THE_LISTENER and stream.is_within_a_frame():
                    self.trace.count_fault("frame cut in the middle")
        if some_ended:
            self._streams = [(name, stream) for name, stream in self._streams if not stream.at_end()]

    def is_moving(self) -> bool:
        return any(stream.is_moving() for _, stream in self._streams)


class VirtualNetwork:
    """One machine's socket calls. `poll` never waits: virtual time advances only between turns."""

    more = MORE_FLAG

    def __init__(self, fabric: Fabric, disk: VirtualDisk, entropy: SeededEntropy) -> None:
        self._fabric = fabric
        self.disk = disk
        self.entropy = entropy
        self._sources: dict[int, VirtualListener | VirtualTransport] = {}
        self._interests: dict[int, int] = {}
        self._endpoints: list[VirtualEndpoint] = []
        self._next_token = FIRST_TOKEN
        self._accept_failures: deque[int] = deque()

    def listen(self, host: str, port: int) -> list[Listener]:
        listener = VirtualListener(self, self._new_token(), host, port or self._fabric.free_port())
        self._fabric.add(listener)
        self._sources[listener.token] = listener
        return [listener]

    def connect(self, host: str, port: int) -> Transport:
        return self._transport(self._fabric.join(host, port))

    def watch(self, token: Token, interest: int) -> None:
        if token not in self._sources:
            raise _error(errno.EBADF)
        self._interests[token] = interest

    def forget(self, token: Token) -> None:
        self._interests.pop(token, None)

    def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
        ready = [
            (token, events)
            for token, interest in self._interests.items()
            if (events := self._sources[token].ready(hangup=bool(interest & HANGUP)) & (interest | BROKEN))
        ]
        self._shuffle(ready)
        return ready[:EVENTS_MAX]

    def _shuffle(self, events: list[tuple[int, int]]) -> None:
        for last in range(len(events) - 1, 0, -1):
            other = self.entropy.below(last + 1)
            events[last], events[other] = events[other], events[last]

    def wake(self) -> None:
        """Do nothing: nothing waits."""

    def close(self) -> None:
        self._interests.clear()
        for source in list(self._sources.values()):
            source.close()

    def kill(self) -> None:
        """End the process and its listeners; bytes it sent before still arrive."""
        for source in list(self._sources.values()):
            if isinstance(source, VirtualListener):
                source.reset()
        self.close()

    def lose_power(self) -> None:
        """End the whole machine with all its connections: bytes in flight are lost."""
        self.kill()
        for endpoint in self._endpoints:
            endpoint.reset()
        self._endpoints.clear()

    def fail_accepts(self, code: int, times: int = 1) -> None:
        self._accept_failures.extend([code] * times)

    def accept_from(self, listener: VirtualListener) -> Transport | None:
        if not listener.backlog:
            return None
        if self._accept_failures:
            self._fabric.trace.count_fault("accept refused")
            raise _error(self._accept_failures.popleft())
        return self._transport(listener.backlog.popleft())

    def close_listener(self, listener: VirtualListener) -> None:
        self._fabric.remove(listener)
        self.let_go(listener.token)

    def let_go(self, token: Token) -> None:
        assert token not in self._interests, "a token is forgotten before it is closed"
        self._sources.pop(token, None)

    def _transport(self, endpoint: VirtualEndpoint) -> VirtualTransport:
        transport = VirtualTransport(self, self._new_token(), endpoint)
        self._sources[transport.token] = transport
        self._endpoints.append(endpoint)
        return transport

    def _new_token(self) -> Token:
        token = Token(self._next_token)
        self._next_token += 1
        return token
