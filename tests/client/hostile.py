"""Servers on loopback that do harm: to clients that connect, or to the bytes between a client and a broker."""

import socket
import struct
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import pytest

from headrace.wire.apis import ApiKey

from .scripted import ScriptedBroker

RECEIVE_BYTES = 65_536
JOIN_S = 60


class HostileServer:
    """Calls `behave` with every connection, in a thread of its own; closes all of them at the end."""

    def __init__(self, behave: Callable[[socket.socket], None]) -> None:
        self._behave = behave
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self.accepted = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    @property
    def port(self) -> int:
        port: int = self._listening.getsockname()[1]
        return port

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        shut(self._listening)
        for thread in self._threads:  # the one that accepts is the first, and none is begun after its end
            for connection in self._open:
                shut(connection)
            thread.join(JOIN_S)
            assert not thread.is_alive()

    def _accept(self) -> None:
        while True:
            try:
                connection, _address = self._listening.accept()
            except OSError:
                return
            self.accepted += 1
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            self._behave(connection)
        except OSError:
            pass
        finally:
            shut(connection)


def shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()


def no_name_resolves(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name leads anywhere, and no server is asked for it: some machines wait long for an answer that never comes."""
    real = socket.getaddrinfo

    def refuse(host: Any, *arguments: Any, **options: Any) -> Any:
        if str(host).endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def listen_only(connection: socket.socket) -> None:
    while connection.recv(RECEIVE_BYTES):
        pass


class FaultProxy(HostileServer):
    """Stands before a broker; passes bytes in small slices and cuts connections after given numbers of bytes."""

    def __init__(self, *, slice_bytes: int = RECEIVE_BYTES) -> None:
        super().__init__(self._forward)
        self.broker = ("127.0.0.1", 0)
        self._slice_bytes = slice_bytes
        self.cuts: list[int] = []
        """After how many bytes each of the next connections is cut, in either direction."""

    def _forward(self, client: socket.socket) -> None:
        budget = self.cuts.pop(0) if self.cuts else 2**60
        broker = socket.create_connection(self.broker)
        self._open.append(broker)
        back = threading.Thread(target=self._pump, args=(broker, client, budget), daemon=True)
        self._threads.append(back)
        back.start()
        self._pump(client, broker, budget)

    def _pump(self, source: socket.socket, sink: socket.socket, budget: int) -> None:
        try:
            while budget > 0 and (chunk := source.recv(min(self._slice_bytes, budget))):
                sink.sendall(chunk)
                budget -= len(chunk)
        except OSError:
            pass
        finally:
            shut(source)
            shut(sink)


class ScriptedServer(HostileServer):
    """A broker made of functions, on real connections; all of them have the same `answer`."""

    def __init__(self, keys: Mapping[ApiKey, int] | set[ApiKey], answer: Callable[[Any], Any]) -> None:
        super().__init__(self._answer_all)
        self._handlers = {key: lambda request, _version: answer(request) for key in keys}
        self._lock = threading.Lock()

    def _answer_all(self, connection: socket.socket) -> None:
        broker = ScriptedBroker(self._handlers)
        while chunk := connection.recv(RECEIVE_BYTES):
            with self._lock:
                answers = broker.feed(chunk)
            connection.sendall(answers)


Lie = Callable[[bytes], bytes]
"""Bytes that are sent in the place of a frame, whose size comes first."""


def truncated(frame: bytes) -> bytes:
    """Half of the answer, as a frame of its own."""
    half = frame[4 : 4 + max(4, len(frame) // 2)]
    return struct.pack(">i", len(half)) + half


def oversized(frame: bytes) -> bytes:
    """Announced as longer than anything that may come."""
    return struct.pack(">i", 2**31 - 1) + frame[4:]


def reordered(frame: bytes) -> bytes:
    """The answer to a question that was not asked yet."""
    (number,) = struct.unpack_from(">i", frame, 4)
    return frame[:4] + struct.pack(">i", number + 1) + frame[8:]


def garbled(frame: bytes) -> bytes:
    return frame[:8] + b"\xff" * (len(frame) - 8)


def never_ending(frame: bytes) -> bytes:
    """More is announced than comes, for as long as the client waits."""
    (size,) = struct.unpack_from(">i", frame)
    return struct.pack(">i", size + 1_000_000) + frame[4:]


class LyingProxy(FaultProxy):
    """Stands before a broker; the answer whose turn it is, of all that pass, is not passed as it is."""

    def __init__(self, lie: Lie) -> None:
        super().__init__()
        self._lie = lie
        self.lie_in = -1
        """Number of answers that pass before the next lie; below zero, all pass."""

    def _forward(self, client: socket.socket) -> None:
        broker = socket.create_connection(self.broker)
        self._open.append(broker)
        back = threading.Thread(target=self._pass_answers, args=(broker, client), daemon=True)
        self._threads.append(back)
        back.start()
        self._pump(client, broker, 2**60)

    def _pass_answers(self, broker: socket.socket, client: socket.socket) -> None:
        received = bytearray()
        try:
            while chunk := broker.recv(RECEIVE_BYTES):
                received += chunk
                while len(received) >= 4 and len(received) >= 4 + struct.unpack_from(">i", received)[0]:
                    end = 4 + struct.unpack_from(">i", received)[0]
                    frame = bytes(received[:end])
                    del received[:end]
                    client.sendall(self._lie(frame) if self.lie_in == 0 else frame)
                    self.lie_in -= 1
        except OSError:
            pass
        finally:
            shut(broker)
            shut(client)
