"""A transport that a test fills and empties by hand."""

import errno

from headrace.broker.net.connection import Connection
from headrace.ports.network import Token


class ScriptedTransport:
    """Takes at most `room` bytes altogether and `send_once` in one call; `trouble` is raised by the next call."""

    def __init__(self, token=1, *, disk=None, host="10.0.0.7"):
        self.token = Token(token)
        self.peer_address = f"{host}:1234"
        self.incoming = bytearray()
        self.ended = False
        self.receive_once = 1 << 30
        self.sent = bytearray()
        self.calls = []
        """(kind, bytes taken, flags) of every send."""
        self.room = 1 << 40
        self.send_once = 1 << 40
        self.trouble = None
        self.closed = False
        self._disk = disk

    def recv_into(self, buffer):
        self._raise()
        taken = self.incoming[: min(len(buffer), self.receive_once)]
        if not taken and not self.ended:
            raise BlockingIOError(errno.EAGAIN, "nothing there")
        del self.incoming[: len(taken)]
        buffer[: len(taken)] = taken
        return len(taken)

    def send(self, buffer, flags=0):
        return self._take("send", bytes(buffer), flags)

    def send_range(self, part):
        return self._take("slice", self._disk.read(part.file, part.length, part.position), 0)

    def _take(self, kind, content, flags):
        self._raise()
        taken = min(len(content), self.room, self.send_once)
        if taken == 0 and content:
            raise BlockingIOError(errno.EAGAIN, "no room")
        self.sent += content[:taken]
        self.room -= taken
        self.calls.append((kind, taken, flags))
        return taken

    def _raise(self):
        if self.trouble is not None:
            raise self.trouble

    def close(self):
        self.closed = True


def connection(transport=None):
    transport = transport if transport is not None else ScriptedTransport()
    return Connection(transport, "PLAINTEXT", [], 0.0)


def frame(content):
    return len(content).to_bytes(4, "big") + content
