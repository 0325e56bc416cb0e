"""Connections for single requests over a plain socket, used to prepare and check loads."""

import socket
from types import ModuleType
from typing import Any, Self

from headrace.bench.errors import BenchError
from headrace.client.addresses import parse_bootstrap
from headrace.wire.frames import SIZE_BYTES, read_response_header, request_frame

ANSWER_SECONDS_MAX = 60
CLIENT_ID = "headrace-bench"


def host_and_port(bootstrap: str) -> tuple[str, int]:
    """Return the first bootstrap server as an IPv4 address, as the replay client needs it."""
    host, port = parse_bootstrap(bootstrap)[0]
    try:
        return socket.gethostbyname(host), port
    except OSError as error:
        raise BenchError(f"{host} has no IPv4 address ({error}): use an IPv4 address of the broker") from None


class BenchConnection:
    def __init__(self, bootstrap: str) -> None:
        address = host_and_port(bootstrap)
        try:
            self._socket = socket.create_connection(address, ANSWER_SECONDS_MAX)
        except OSError as error:
            raise BenchError(f"cannot reach {bootstrap}: {error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, codec: ModuleType, request: object, version: int) -> Any:
        """Send a message of a module in wire/messages and wait for the response."""
        body = self.exchange(
            request_frame(codec.API_KEY, version, 0, CLIENT_ID, codec.encode_request(request, version))
        )
        _, position = read_response_header(body, 0, len(body), api_key=codec.API_KEY, api_version=version)
        return codec.decode_response(body, position, len(body), version)

    def exchange(self, frame: bytes) -> bytes:
        """Send a frame and return the response without its size."""
        try:
            self._socket.sendall(frame)
            return self._receive(int.from_bytes(self._receive(SIZE_BYTES), "big"))
        except OSError as error:
            raise BenchError(f"the broker did not answer: {error}") from None

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            part = self._socket.recv(min(count - len(received), 1 << 20))
            if not part:
                raise ConnectionError("it closed the connection")
            received += part
        return bytes(received)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
