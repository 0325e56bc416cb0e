"""The Network port on virtual connections: the socket calls of one machine on the fabric of its world."""

import errno
from collections import deque
from collections.abc import Sequence

from headrace.model.configs.definition import ConfigError
from headrace.model.configs.tls import TlsConfig
from headrace.ports.disk import Buffer, FileRange
from headrace.ports.network import (
    BROKEN,
    HANGUP,
    READABLE,
    WRITABLE,
    DocumentSource,
    ListeningSocket,
    ServerTls,
    Token,
    Transport,
)
from headrace.sim.connections import VirtualEndpoint, os_error
from headrace.sim.disk import VirtualDisk
from headrace.sim.entropy import SeededEntropy
from headrace.sim.fabric import Fabric

FIRST_TOKEN = 1
MORE_FLAG = 0x8000
SHORT_SENDS_ONE_IN = 4
EVENTS_MAX = 64
"""Events that one poll returns; the others are still ready at the next."""


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
        incoming = self._connected().incoming
        if incoming.is_reset:
            raise os_error(errno.ECONNRESET)
        content = incoming.take(len(buffer))
        if not content and not incoming.at_end():
            raise os_error(errno.EAGAIN)
        buffer[: len(content)] = content
        return len(content)

    def send(self, buffer: Buffer, flags: int = 0, /) -> int:
        assert flags in (0, MORE_FLAG)
        length = self._taken_length(len(buffer))
        self._endpoint.outgoing.put(bytes(memoryview(buffer)[:length]))
        return length

    def send_vector(self, buffers: Sequence[Buffer], /) -> int:
        return self.send(b"".join(buffers))

    def send_range(self, part: FileRange, /) -> int:
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
        """Return the readiness. A closed peer shows as the end of the stream; only a reset or a failed handshake is
        BROKEN before a send has failed.
        """
        endpoint = self._endpoint
        if not endpoint.is_connected:
            return READABLE | WRITABLE | BROKEN if endpoint.failure else 0
        incoming, outgoing = endpoint.incoming, endpoint.outgoing
        if incoming.is_reset or (hangup and incoming.end_is_here()):
            return READABLE | WRITABLE | BROKEN
        events = READABLE if incoming.waiting() or incoming.at_end() else 0
        return events | (WRITABLE if outgoing.is_reset or outgoing.room() > 0 else 0)

    def _connected(self) -> VirtualEndpoint:
        endpoint = self._endpoint
        if not self._open:
            raise os_error(errno.EBADF)
        if not endpoint.is_connected:
            raise os_error(endpoint.failure or errno.EAGAIN)
        return endpoint

    def _taken_length(self, length: int) -> int:
        outgoing = self._connected().outgoing
        if outgoing.is_reset:
            raise os_error(errno.EPIPE)
        room = outgoing.room()
        if room <= 0:
            raise os_error(errno.EAGAIN)
        length = min(length, room)
        if length > 1 and self._entropy.one_in(SHORT_SENDS_ONE_IN):
            return 1 + self._entropy.below(length - 1)
        return length


class VirtualListener:
    __slots__ = ("_network", "backlog", "host", "machine", "port", "token")

    def __init__(self, network: "VirtualNetwork", token: Token, host: str, port: int) -> None:
        self._network = network
        self.token = token
        self.machine = network.host
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

    def vanish(self) -> None:
        """Lose the waiting connections with the power of the machine."""
        for endpoint in self.backlog:
            _lose(endpoint)
        self.backlog.clear()

    def ready(self, *, hangup: bool = False) -> int:
        return READABLE if self.backlog else 0


class VirtualNetwork:
    """One machine's socket calls. `poll` never waits: virtual time advances only between turns."""

    more = MORE_FLAG

    def __init__(self, fabric: Fabric, disk: VirtualDisk, entropy: SeededEntropy, *, host: str) -> None:
        self._fabric = fabric
        self.host = host
        """The name of the machine, under which others reach it."""
        self.disk = disk
        self.entropy = entropy
        self.documents: dict[str, bytes] = {}
        """Documents of other servers, by URL."""
        self._sources: dict[int, VirtualListener | VirtualTransport] = {}
        self._interests: dict[int, int] = {}
        self._endpoints: list[VirtualEndpoint] = []
        self._next_token = FIRST_TOKEN
        self._accept_failures: deque[int] = deque()

    def listen(self, host: str, port: int) -> list[ListeningSocket]:
        listener = VirtualListener(self, self._new_token(), host, port or self._fabric.free_port())
        self._fabric.add(listener)
        self._sources[listener.token] = listener
        return [listener]

    def resolve(self, host: str) -> list[str]:
        """Return the name: in a world, names are addresses."""
        return [host]

    def server_tls(self, config: TlsConfig, former: ServerTls | None = None) -> ServerTls:
        raise ConfigError("the simulator has no TLS: its runs must repeat, and keys are drawn at random")

    def fetch(self, source: DocumentSource) -> bytes:
        document = self.documents.get(source.url)
        if document is None:
            raise os_error(errno.ECONNREFUSED)
        return document

    def connect(self, host: str, port: int) -> Transport:
        return self._transport(self._fabric.begin(host, port, from_host=self.host))

    def watch(self, token: Token, interest: int) -> None:
        if token not in self._sources:
            raise os_error(errno.EBADF)
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
        for source in self._sources.values():
            if isinstance(source, VirtualListener):
                source.vanish()
        for endpoint in self._endpoints:
            _lose(endpoint)
        self._endpoints.clear()
        self.kill()

    def fail_accepts(self, code: int, times: int = 1) -> None:
        self._accept_failures.extend([code] * times)

    def accept_from(self, listener: VirtualListener) -> Transport | None:
        if not listener.backlog:
            return None
        if self._accept_failures:
            self._fabric.trace.count_fault("accept refused")
            raise os_error(self._accept_failures.popleft())
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


def _lose(endpoint: VirtualEndpoint) -> None:
    """Lose this side of a connection: another machine is not notified, a client is."""
    if endpoint.between_machines:
        endpoint.vanish()
    else:
        endpoint.reset()
