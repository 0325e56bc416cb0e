"""Servers on loopback that do harm: to whoever connects, or to the bytes between a client and a broker."""

import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

RECEIVE_BYTES = 65_536
JOIN_S = 5


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
        for connection in self._open:
            shut(connection)
        for thread in self._threads:
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


def listen_only(connection: socket.socket) -> None:
    while connection.recv(RECEIVE_BYTES):
        pass


class FaultProxy(HostileServer):
    """Stands before a broker; passes bytes in small slices and cuts connections after so many of them, in turn."""

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
