"""Clients that pipeline requests without end: they send and receive what goes without waiting, and check nothing."""

import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
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
    """Connections that send `requests`, one each, again and again."""

    def __init__(self, connect: Callable[[], RawConnection], requests: Sequence[bytes]) -> None:
        self._stack = ExitStack()
        self._connect = connect
        self._requests = requests
        self._unsent: dict[socket.socket, bytes] = {}
        self.rounds = 0

    def __enter__(self) -> Self:
        for _ in self._requests:
            connection = self._stack.enter_context(self._connect()).socket
            connection.setblocking(False)
            # They leave with a reset: an end of the stream would wait behind what the broker does not read.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LEAVE_WITH_RESET)
            self._unsent[connection] = b""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def has_begun(self) -> bool:
        return self.rounds >= ROUNDS_MIN

    def go_on(self) -> None:
        """Every connection sends as many requests as there is room for, and drops the answers that have arrived."""
        for connection, request in zip(self._unsent, self._requests, strict=True):
            unsent = self._unsent[connection] or request * PIPELINED_AT_ONCE
            try:
                self._unsent[connection] = unsent[connection.send(unsent) :]
            except BlockingIOError:
                self._unsent[connection] = unsent
            try:
                connection.recv(_RECEIVED_ONCE_BYTES)
            except BlockingIOError:
                pass
        self.rounds += 1
        time.sleep(ASK_AGAIN_S)
