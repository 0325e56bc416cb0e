"""The operating system's TCP behind the Network port."""

import errno
import os
import socket
import threading

from headrace.model.configs.tls import TlsConfig
from headrace.ports.network import READABLE, DocumentSource, ListeningSocket, ServerTls, Token, Transport
from headrace.ports.real.transport import HAS_SENDFILE, TcpTransport
from headrace.ports.real.waiters import Waiter, best_waiter

LISTEN_BACKLOG_CONNECTIONS = 1024
SHARED_PORT_ATTEMPTS_MAX = 16
"""Attempts to draw a port that is free in both address families."""
WAKE_DRAIN_BYTES = 4096
PORT_MAX = 65_535

_LOCALHOST = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
_FAMILY_MISSING = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT})
_GONE_BEFORE_ACCEPT = frozenset(
    {
        errno.EAGAIN,
        errno.ECONNABORTED,
        errno.ECONNRESET,
        errno.EHOSTUNREACH,
        errno.EINTR,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.EPROTO,
        errno.ETIMEDOUT,
    }
)
"""accept(2) returns the new connection's own network errors: that client is gone, but the listener works."""


def _address_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _addresses(host: str, *, passive: bool) -> list[tuple[socket.AddressFamily, str]]:
    """Return the first address of each family of the host. `localhost` is both loopbacks, whatever the hosts file
    says.
    """
    if host == "localhost":
        return list(_LOCALHOST) if socket.has_ipv6 else [_LOCALHOST[0]]
    flags = socket.AI_PASSIVE if passive else 0
    found: dict[socket.AddressFamily, str] = {}
    for family, _, _, _, address in socket.getaddrinfo(host or None, 0, type=socket.SOCK_STREAM, flags=flags):
        if family in (socket.AF_INET, socket.AF_INET6):
            found.setdefault(family, str(address[0]))
    return list(found.items())


def _connectable(host: str) -> list[tuple[socket.AddressFamily, str]]:
    try:
        return _addresses(host, passive=False)
    except UnicodeError:
        raise OSError(errno.EADDRNOTAVAIL, f"{host!r} is not a valid host name") from None


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.setblocking(False)
        listening.bind((address, port))
        listening.listen(LISTEN_BACKLOG_CONNECTIONS)
    except OSError:
        listening.close()
        raise
    return listening


def _bound_together(addresses: list[tuple[socket.AddressFamily, str]], port: int) -> list[socket.socket]:
    """Return a listening socket per address, all on one port; a missing family is left out if the other works."""
    listening: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, address in addresses:
            try:
                listening.append(_bound(family, address, listening[0].getsockname()[1] if listening else port))
            except OSError as error:
                if error.errno not in _FAMILY_MISSING:
                    raise
                missing = error
        if not listening:
            raise missing or OSError(errno.EADDRNOTAVAIL, "the host has no address")
    except OSError:
        for one in listening:
            one.close()
        raise
    return listening


class TcpListener:
    __slots__ = ("_socket", "_use_sendfile", "host", "port", "token")

    def __init__(self, listening: socket.socket, *, use_sendfile: bool) -> None:
        self._socket = listening
        self._use_sendfile = use_sendfile
        self.token = Token(listening.fileno())
        self.host, self.port = listening.getsockname()[:2]

    def accept(self) -> Transport | None:
        """Return None also for a client that has disconnected already; running out of file descriptors raises
        OSError.
        """
        try:
            connection, address = self._socket.accept()
        except OSError as error:
            if error.errno in _GONE_BEFORE_ACCEPT:
                return None
            raise
        try:
            return TcpTransport(connection, _address_text(address[0], address[1]), use_sendfile=self._use_sendfile)
        except OSError:
            connection.close()
            return None

    def close(self) -> None:
        self._socket.close()


def _drain(descriptor: int) -> None:
    try:
        while len(os.read(descriptor, WAKE_DRAIN_BYTES)) == WAKE_DRAIN_BYTES:
            pass
    except BlockingIOError:
        pass


class RealNetwork:
    more: int = getattr(socket, "MSG_MORE", 0)

    def __init__(self, *, waiter: Waiter | None = None, use_sendfile: bool = HAS_SENDFILE) -> None:
        self._waiter = waiter if waiter is not None else best_waiter()
        self._use_sendfile = use_sendfile
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self._wake_tokens: set[int] = set()
        """Descriptors whose events only end a wait."""
        self.wake_on(self._wake_reader.fileno())
        # A late wake must not write to a descriptor that was closed and reused. Reentrant, because a signal handler may
        # wake the loop while the same thread is in here.
        self._wake_lock = threading.RLock()
        self._waiting = False
        self._woken = False
        """A wake since the last wait: the next one must not wait."""

    def listen(self, host: str, port: int) -> list[ListeningSocket]:
        addresses = _addresses(host, passive=True)
        for attempt in range(SHARED_PORT_ATTEMPTS_MAX):
            try:
                bound = _bound_together(addresses, port)
            except OSError as error:
                last = attempt + 1 == SHARED_PORT_ATTEMPTS_MAX
                if port != 0 or error.errno != errno.EADDRINUSE or last:
                    raise
                continue
            return [TcpListener(listening, use_sendfile=self._use_sendfile) for listening in bound]
        raise AssertionError("the last attempt returns or raises")

    def resolve(self, host: str) -> list[str]:
        return [address for _family, address in _connectable(host)]

    def server_tls(self, config: TlsConfig, former: ServerTls | None = None) -> ServerTls:
        from headrace.ports.real.tls import server_tls  # 10 ms, which only brokers with TLS pay

        return server_tls(config, former)

    def fetch(self, source: DocumentSource) -> bytes:
        from headrace.ports.real.documents import fetch  # an HTTP client, which few brokers need

        return fetch(source)

    def connect(self, host: str, port: int) -> Transport:
        refused: OSError | None = None
        addresses = _connectable(host)
        if not 0 < port <= PORT_MAX:
            raise OSError(errno.EADDRNOTAVAIL, f"{port} is not a valid port")
        for family, address in addresses:
            connection = socket.socket(family, socket.SOCK_STREAM)
            try:
                transport = TcpTransport(connection, _address_text(address, port), use_sendfile=self._use_sendfile)
                connection.connect((address, port))
            except BlockingIOError:
                return transport
            except OSError as error:
                connection.close()
                refused = error
            else:
                return transport
        raise refused or OSError(errno.EADDRNOTAVAIL, f"{host} has no address")

    def watch(self, token: Token, interest: int) -> None:
        self._waiter.watch(token, interest)

    def forget(self, token: Token) -> None:
        self._waiter.forget(token)

    def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
        # The order of these steps and of those in `wake` is why no wake is lost: each side first publishes what it
        # does, then checks what the other does.
        self._waiting = True
        ready = self._waiter.poll(0.0 if self._woken else timeout_ms)
        self._woken = False
        self._waiting = False
        wake_tokens = self._wake_tokens
        events = [event for event in ready if event[0] not in wake_tokens]
        if len(events) != len(ready):
            for token, _event in ready:
                if token in wake_tokens:
                    _drain(token)
        return events

    def wake_on(self, descriptor: int) -> None:
        """Let any input on this descriptor end a wait; the input is discarded."""
        self._wake_tokens.add(descriptor)
        self._waiter.watch(descriptor, READABLE)

    def wake(self) -> None:
        """Wake the loop. A busy loop checks before it waits; only a waiting one costs a system call."""
        self._woken = True
        if not self._waiting:
            return
        with self._wake_lock:
            if self._wake_writer.fileno() < 0:
                return
            try:
                self._wake_writer.send(b"\0")
            except BlockingIOError:
                pass  # The pipe is full of wakes: one of them is enough.

    def close(self) -> None:
        with self._wake_lock:
            self._wake_writer.close()
        self._waiter.close()
        self._wake_reader.close()
