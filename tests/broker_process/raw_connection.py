"""A connection that sends what a test wants sent, byte by byte if need be: what no stock client would do."""

import socket
from struct import Struct
from types import TracebackType
from typing import Any, Self

from headrace.wire.apis import ApiKey, codec
from headrace.wire.frames import read_response_header, request_frame

SIZE = Struct(">i")
ANSWER_S_MAX = 60.0


class RawConnection:
    def __init__(self, address: str, *, source: str | None = None) -> None:
        """Connect to the address, from the address `source` of this machine where one is given."""
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection(
            (host.strip("[]"), int(port)), ANSWER_S_MAX, source_address=(source, 0) if source else None
        )
        self._correlation_id = 0

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_request(self, key: ApiKey, version: int, request: object) -> None:
        self._correlation_id += 1
        body = codec(key).encode_request(request, version)
        self.send(request_frame(key, version, self._correlation_id, "raw", body))

    def receive(self, key: ApiKey, version: int) -> Any:
        frame = self.receive_frame()
        assert frame is not None, "the broker closed the connection instead of answering"
        correlation_id, position = read_response_header(frame, 0, len(frame), api_key=key, api_version=version)
        assert correlation_id == self._correlation_id
        return codec(key).decode_response(frame, position, len(frame), version)

    def call(self, key: ApiKey, version: int, request: object) -> Any:
        self.send_request(key, version, request)
        return self.receive(key, version)

    def receive_frame(self) -> bytes | None:
        """The next answer, or None when the broker has closed the connection."""
        head = self._receive_exactly(SIZE.size)
        return None if head is None else self._receive_exactly(SIZE.unpack(head)[0])

    def is_closed_by_broker(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _receive_exactly(self, size: int) -> bytes | None:
        received = b""
        while len(received) < size:
            more = self.socket.recv(size - len(received))
            if not more:
                assert not received, "the broker closed the connection inside an answer"
                return None
            received += more
        return received

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
