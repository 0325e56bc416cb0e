"""The two ends of a virtual connection, its handshake, and the client's end for tests."""

import errno
import os

from headrace.sim.links import VirtualLink
from headrace.sim.streams import Stream

HANDSHAKE_RETRY_MS = 1_000
"""Wait before a lost request to connect is sent again; doubled with every further loss."""
HANDSHAKE_RETRIES_MAX = 6
"""After these the connection fails, as the operating system's own limit ends it."""


def os_error(code: int) -> OSError:
    return OSError(code, os.strerror(code))


class VirtualEndpoint:
    """One side of a connection: the stream it reads and the stream it writes."""

    __slots__ = ("between_machines", "failure", "incoming", "is_connected", "is_left", "name", "outgoing")

    def __init__(self, name: str, incoming: Stream, outgoing: Stream, *, between_machines: bool = False) -> None:
        self.name = name
        self.incoming = incoming
        self.outgoing = outgoing
        self.between_machines = between_machines
        """True if a power cut at the other side goes unnoticed here: nothing comes back, not even a reset."""
        self.is_connected = True
        self.failure = 0
        """The error code of a handshake that failed."""
        self.is_left = False

    def reset(self) -> None:
        self.incoming.reset()
        self.outgoing.reset()

    def leave(self) -> None:
        """Close this side: sent bytes still arrive; bytes from the other side cause a reset."""
        if self.is_left:
            return
        self.is_left = True
        self.outgoing.finished = True
        is_instant = self.incoming.link.is_instant and self.outgoing.link.is_instant
        if is_instant or self.outgoing.reader_is_gone:
            self.incoming.reset()
        elif not self.incoming.is_reset:
            self._abandon_incoming()

    def vanish(self) -> None:
        """Lose this side and what it sent; the other side is not notified."""
        self.is_left = True
        if self.outgoing.on_the_way or not self.outgoing.finished:
            self.outgoing.forget()
            self.outgoing.finished = False
        if not self.incoming.is_reset:
            self._abandon_incoming()

    def _abandon_incoming(self) -> None:
        self.incoming.forget()
        self.incoming.reader_is_gone = True


class Handshake:
    """A connection that one machine has begun to another."""

    __slots__ = ("due_ms", "endpoint", "from_host", "host", "port", "retries")

    def __init__(self, endpoint: VirtualEndpoint, *, host: str, port: int, from_host: str) -> None:
        self.endpoint = endpoint
        self.host = host
        self.port = port
        self.from_host = from_host
        self.retries = 0
        self.due_ms = self._there.arrival_ms()

    @property
    def _there(self) -> VirtualLink:
        return self.endpoint.outgoing.link

    @property
    def is_over(self) -> bool:
        return self.endpoint.is_connected or self.endpoint.is_left or self.endpoint.failure != 0

    @property
    def is_due(self) -> bool:
        return self.due_ms <= self._there.now_ms

    @property
    def passes(self) -> bool:
        """Return whether the request and its response get through."""
        return not self._there.is_cut and not self.endpoint.incoming.link.is_cut

    def retry(self) -> None:
        self.retries += 1
        self.due_ms = self._there.now_ms + (HANDSHAKE_RETRY_MS << self.retries - 1)
        if self.retries > HANDSHAKE_RETRIES_MAX:
            self.endpoint.failure = errno.ETIMEDOUT


class VirtualClient:
    """A test's end of a connection: no window, no blocking, and everything that arrived in `received`."""

    __slots__ = ("_endpoint", "received")

    def __init__(self, endpoint: VirtualEndpoint) -> None:
        self._endpoint = endpoint
        self.received = bytearray()

    def send(self, payload: bytes) -> None:
        if self._endpoint.outgoing.is_reset:
            raise os_error(errno.EPIPE)
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
