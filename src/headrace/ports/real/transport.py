"""A TCP socket as a Transport: its methods are the socket's own, so a send or receive costs no Python frame."""

import os
import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from headrace.ports.disk import Buffer, FileRange
from headrace.ports.network import Token

COPY_BYTES_MAX = 256 * 1024
"""Bytes of a file range that are read at a time where the system has no sendfile."""
HAS_SENDFILE = hasattr(os, "sendfile")


class Send(Protocol):
    def __call__(self, buffer: Buffer, flags: int = 0, /) -> int: ...


class TcpTransport:
    __slots__ = ("_socket", "peer_address", "recv_into", "send", "send_range", "send_vector", "token")

    def __init__(self, connection: socket.socket, peer_address: str, *, use_sendfile: bool = HAS_SENDFILE) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection
        self.token = Token(connection.fileno())
        self.peer_address = peer_address
        self.recv_into: Callable[[memoryview], int] = connection.recv_into
        self.send: Send = connection.send
        self.send_vector: Callable[[Sequence[Buffer]], int] = connection.sendmsg
        self.send_range = _sendfile(connection) if use_sendfile else _read_and_send(connection)

    def close(self) -> None:
        self._socket.close()


def _sendfile(connection: socket.socket) -> Callable[[FileRange], int]:
    # The descriptor is looked up each time: after close it is -1, and never another connection's.
    descriptor = connection.fileno

    def send_range(part: FileRange) -> int:
        file, position, length = part
        return os.sendfile(descriptor(), file, position, length)

    return send_range


def _read_and_send(connection: socket.socket) -> Callable[[FileRange], int]:
    def send_range(part: FileRange) -> int:
        file, position, length = part
        return connection.send(os.pread(file, min(length, COPY_BYTES_MAX), position))

    return send_range
