"""The Network port: listeners, connections and one wait for all of them.

A `Transport` has the semantics of a non-blocking socket: BlockingIOError when it would wait, another OSError when the
connection is broken, 0 from `recv_into` at the end of the stream. In production its methods are the socket's own bound
methods, so that the hot path has no wrapper; TLS is another Transport around it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, NewType, Protocol

from headrace.model.configs.tls import TlsConfig
from headrace.ports.disk import Buffer, FileRange

Token = NewType("Token", int)
"""Identifies a listener or a connection in the results of `poll`; in production the file descriptor."""

READABLE = 1
WRITABLE = 2
BROKEN = 4
HANGUP = 8
"""As an interest: the end of the peer's stream is reported as BROKEN, even if bytes before it were not read."""


class Transport(Protocol):
    token: Token
    peer_address: str

    def recv_into(self, buffer: memoryview, /) -> int: ...
    def send(self, buffer: Buffer, flags: int = 0, /) -> int:
        """Send bytes; `flags` is 0, or the network's `more` when another send follows at once."""

    def send_vector(self, buffers: Sequence[Buffer], /) -> int: ...
    def send_range(self, part: FileRange, /) -> int:
        """Return the bytes of the file that the network accepted, from the start of the range; may be fewer than its
        length.
        """

    def close(self) -> None: ...


class DocumentSource(NamedTuple):
    """The place of a document that the config names."""

    url: str
    """`https://`, `http://` or `file://`."""
    authorities: str | None
    """A PEM file with the authorities that certificates are checked by; None for those of the system."""
    bytes_max: int
    ms_max: int


class TlsRefused(Exception):
    """A TLS handshake failed; the message says why, and what to do at the client or the broker."""


class ServerTlsTransport(Transport, Protocol):
    """A Transport that encrypts.

    `send` and `send_range` may encrypt more than the network accepts. They return only what was sent: the caller keeps
    the rest, and must continue with it in the next call.
    """

    certificate: bytes | None
    """The client's certificate (DER), which was verified; None before the end of the handshake, or without one."""

    @property
    def wants_send(self) -> bool:
        """True while encrypted bytes wait until the network accepts them."""

    @property
    def has_buffered(self) -> bool:
        """True if `recv_into` may return bytes that were received before, so that no event announces them."""

    def handshake(self) -> bool:
        """Continue the handshake as far as the received bytes allow; return True when it has ended.

        Raises TlsRefused if the client cannot be admitted, and OSError when the connection is broken.
        """


class ServerTls(Protocol):
    """Keys and certificates of listeners, as they were read."""

    def wrap(self, transport: Transport, buffered: Callable[[], object]) -> ServerTlsTransport:
        """Begin TLS on an accepted connection. `buffered` is called when `recv_into` leaves bytes for another call."""


class ListeningSocket(Protocol):
    token: Token
    host: str
    port: int

    def accept(self) -> Transport | None:
        """Return the next waiting connection, or None."""

    def close(self) -> None: ...


class Network(Protocol):
    more: int
    """Flag for `Transport.send`: the packet may wait for the bytes that follow (MSG_MORE); 0 where there is none."""

    def listen(self, host: str, port: int) -> list[ListeningSocket]:
        """Return one listener per address family of the host name (all on one port when `port` is 0)."""

    def resolve(self, host: str) -> list[str]:
        """Return the addresses of a host name. It may wait for the resolver for long: call it in a helper thread."""

    def server_tls(self, config: TlsConfig, former: ServerTls | None = None) -> ServerTls:
        """Read keys and certificates; return `former` if they have not changed. It reads files: call it in a helper
        thread once the loop runs.

        Raises ConfigError if they cannot be used.
        """

    def fetch(self, source: DocumentSource) -> bytes:
        """Return a document. It waits for a file or another server: call it in a helper thread.

        Raises OSError with the reason if there is none.
        """

    def connect(self, host: str, port: int) -> Transport:
        """Begin a connection; WRITABLE reports when it is established. Only a host that is an address, or localhost,
        is certain not to wait for the resolver.
        """

    def watch(self, token: Token, interest: int) -> None:
        """Set which of READABLE | WRITABLE | HANGUP is awaited; 0 mutes the token but keeps it known."""

    def forget(self, token: Token) -> None:
        """Stop watching; called before close."""

    def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
        """Wait for events at most that long (0: do not wait; negative: for ever): (token, READABLE|WRITABLE|BROKEN)."""

    def wake(self) -> None:
        """Make a `poll` in progress return. The only method that may be called from another thread."""

    def close(self) -> None: ...
