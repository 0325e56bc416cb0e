"""The Network port on a running asyncio loop: the loop watches the sockets and passes their events on.

There is no polling. A connection begins with name resolution, which may take time in the loop's executor; until it is
connected, it behaves like a socket that is not ready.
"""

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from itertools import count

from headrace.model.configs.tls import TlsConfig
from headrace.ports.disk import Buffer, FileRange
from headrace.ports.network import (
    BROKEN,
    READABLE,
    WRITABLE,
    DocumentSource,
    ListeningSocket,
    ServerTls,
    Token,
    Transport,
)

Events = list[tuple[int, int]]

_LOCALHOST = (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))


class LoopTransport:
    def __init__(self, token: int, peer_address: str) -> None:
        self.token = Token(token)
        self.peer_address = peer_address
        self.interest = 0
        self.socket: socket.socket | None = None
        self.error: OSError | None = None
        self.opening: asyncio.Task[None] | None = None

    def _ready(self) -> socket.socket:
        if self.error is not None:
            raise self.error
        if self.socket is None:
            raise BlockingIOError(errno.EAGAIN, "the connection is not established yet")
        return self.socket

    def recv_into(self, buffer: memoryview, /) -> int:
        return self._ready().recv_into(buffer)

    def send(self, buffer: Buffer, flags: int = 0, /) -> int:
        return self._ready().send(buffer, flags)

    def send_vector(self, buffers: Sequence[Buffer], /) -> int:
        return self._ready().sendmsg(buffers)

    def send_range(self, part: FileRange, /) -> int:
        raise OSError(errno.EOPNOTSUPP, "a client sends no files")

    def close(self) -> None:
        if self.opening is not None:
            self.opening.cancel()
        if self.socket is not None:
            self.socket.close()


class LoopNetwork:
    more = 0

    def __init__(self, handle: Callable[[Events], None]) -> None:
        """`handle` receives each event."""
        self._loop = asyncio.get_running_loop()
        self._handle = handle
        self._tokens = count(1)
        self._transports: dict[int, LoopTransport] = {}

    def listen(self, host: str, port: int) -> list[ListeningSocket]:
        raise OSError(errno.EOPNOTSUPP, "a client does not listen")

    def server_tls(self, config: TlsConfig, former: ServerTls | None = None) -> ServerTls:
        raise OSError(errno.EOPNOTSUPP, "a client does not listen")

    def fetch(self, source: DocumentSource) -> bytes:
        raise OSError(errno.EOPNOTSUPP, "a client fetches no documents")

    def resolve(self, host: str) -> list[str]:
        raise OSError(errno.EOPNOTSUPP, "names are resolved when a connection begins")

    def connect(self, host: str, port: int) -> Transport:
        transport = LoopTransport(next(self._tokens), f"{host}:{port}")
        self._transports[transport.token] = transport
        transport.opening = self._loop.create_task(self._open(transport, host, port))
        return transport

    async def _open(self, transport: LoopTransport, host: str, port: int) -> None:
        try:
            transport.socket = await self._connected(host, port)
        except OSError as error:
            transport.error = error
        except (UnicodeError, OverflowError) as error:
            transport.error = OSError(errno.EADDRNOTAVAIL, f"the address is not valid: {error}")
        transport.opening = None
        if transport.token not in self._transports:
            transport.close()
        elif transport.error is not None:
            self._handle([(transport.token, READABLE | BROKEN)])
        else:
            self._register(transport, 0)

    async def _connected(self, host: str, port: int) -> socket.socket:
        """Return the first address of the host that accepts the connection."""
        refused: OSError | None = None
        for address, family in await self._addresses(host):
            connection = socket.socket(family, socket.SOCK_STREAM)
            try:
                connection.setblocking(False)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await self._loop.sock_connect(connection, (address, port))
            except OSError as error:
                connection.close()
                refused = error
            except BaseException:
                connection.close()
                raise
            else:
                return connection
        raise refused or OSError(errno.EADDRNOTAVAIL, f"{host} has no address")

    async def _addresses(self, host: str) -> list[tuple[str, int]]:
        if host == "localhost":
            return list(_LOCALHOST)
        try:
            # A numeric address needs no resolver, and so no executor thread.
            found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:
            found = await self._loop.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
        return [(str(address[0]), family) for family, _, _, _, address in found]

    def watch(self, token: Token, interest: int) -> None:
        transport = self._transports[token]
        before, transport.interest = transport.interest, interest
        if transport.socket is not None:
            self._register(transport, before)

    def _register(self, transport: LoopTransport, before: int) -> None:
        assert transport.socket is not None
        descriptor, token, interest = transport.socket.fileno(), int(transport.token), transport.interest
        if interest & READABLE and not before & READABLE:
            self._loop.add_reader(descriptor, self._handle, [(token, READABLE)])
        elif before & READABLE and not interest & READABLE:
            self._loop.remove_reader(descriptor)
        if interest & WRITABLE and not before & WRITABLE:
            self._loop.add_writer(descriptor, self._handle, [(token, WRITABLE)])
        elif before & WRITABLE and not interest & WRITABLE:
            self._loop.remove_writer(descriptor)

    def forget(self, token: Token) -> None:
        transport = self._transports.pop(token)
        if transport.socket is not None and not self._loop.is_closed():
            self._loop.remove_reader(transport.socket.fileno())
            self._loop.remove_writer(transport.socket.fileno())

    def poll(self, timeout_ms: float) -> Events:
        raise AssertionError("only the loop waits for the network")

    def wake(self) -> None:
        """Do nothing: the loop is already awake when any of its callbacks runs."""

    def close(self) -> None:
        assert not self._transports, "the links must be closed first"
