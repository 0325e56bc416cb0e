"""Clients that pipeline requests without end: they send and receive what goes without waiting, and check nothing."""

import socket
import struct
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from tests.broker_process.raw_connection import RawConnection

PIPELINED_AT_ONCE = 30
ASK_AGAIN_S = 0.02
ROUNDS_MIN = 20
"""An attack is made at least so often, however fast the healthy client is."""
_RECEIVED_ONCE_BYTES = 1 << 20
_LEAVE_WITH_RESET = struct.pack("ii", 1, 0)


class Pipelines:
    """Connections that send `requests`, one each, again and again; one that the broker closes is made again."""

    def __init__(self, connect: Callable[[], RawConnection], requests: Sequence[bytes]) -> None:
        self._connect = connect
        self._requests = requests
        self._connections: list[socket.socket] = []
        self._unsent = [b""] * len(requests)
        self.rounds = 0

    def __enter__(self) -> Self:
        self._connections = [self._connected() for _ in self._requests]
        return self

    def _connected(self) -> socket.socket:
        connection = self._connect().socket
        connection.setblocking(False)
        # It leaves with a reset: an end of the stream would wait behind what the broker does not read.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LEAVE_WITH_RESET)
        return connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for connection in self._connections:
            connection.close()

    @property
    def has_begun(self) -> bool:
        return self.rounds >= ROUNDS_MIN

    def resume(self) -> None:
        """Every connection sends as many requests as there is room for, and drops the answers that have arrived."""
        for place in range(len(self._requests)):
            try:
                self._send_and_receive(place)
            except ConnectionError:  # the broker closes a client that is too slow to take its answers
                self._connections[place].close()
                self._connections[place], self._unsent[place] = self._connected(), b""
        self.rounds += 1
        time.sleep(ASK_AGAIN_S)

    def _send_and_receive(self, place: int) -> None:
        connection = self._connections[place]
        unsent = self._unsent[place] = self._unsent[place] or self._requests[place] * PIPELINED_AT_ONCE
        try:
            self._unsent[place] = unsent[connection.send(unsent) :]
        except BlockingIOError:
            pass
        try:
            connection.recv(_RECEIVED_ONCE_BYTES)
        except BlockingIOError:
            pass
