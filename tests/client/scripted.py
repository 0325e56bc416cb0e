"""A broker made of functions, and a network and a clock that exist only in memory."""

from collections.abc import Callable, Mapping
from struct import unpack_from
from typing import Any

from headrace.ports.network import BROKEN, READABLE, WRITABLE, Token
from headrace.wire.apis import ApiKey, codec
from headrace.wire.frames import read_request_header, response_frame
from headrace.wire.messages import api_versions

Handler = Callable[[Any, int], Any]
"""(request, version) -> response message, or None for silence."""


class ScriptedBroker:
    """Answers requests with what the handlers say; `served` is what it claims to know."""

    def __init__(self, handlers: Mapping[ApiKey, Handler], served: Mapping[int, tuple[int, int]] | None = None) -> None:
        self.handlers = dict(handlers)
        self.served = dict(served) if served is not None else {key: (0, codec(key).MAX_VERSION) for key in handlers}
        self.seen: list[tuple[ApiKey, int, Any]] = []
        self.client_ids: list[str | None] = []
        self._received = bytearray()

    def feed(self, chunk: bytes) -> bytes:
        """The bytes that answer these."""
        self._received += chunk
        answers = b""
        while len(self._received) >= 4:
            (size,) = unpack_from(">i", self._received)
            if len(self._received) < 4 + size:
                break
            frame = bytes(self._received[4 : 4 + size])
            del self._received[: 4 + size]
            answers += self._answer(frame)
        return answers

    def _answer(self, frame: bytes) -> bytes:
        head = read_request_header(frame, 0, len(frame))
        key = ApiKey(head.api_key)
        self.client_ids.append(head.client_id)
        if key == ApiKey.API_VERSIONS:
            version, body = self._versions(head.api_version)
            return response_frame(key, version, head.correlation_id, body)
        request = codec(key).decode_request(frame, head.body_position, len(frame), head.api_version)
        self.seen.append((key, head.api_version, request))
        response = self.handlers[key](request, head.api_version)
        if response is None:
            return b""
        return response_frame(
            key, head.api_version, head.correlation_id, codec(key).encode_response(response, head.api_version)
        )

    def _versions(self, version: int) -> tuple[int, bytes]:
        lowest, highest = self.served.get(ApiKey.API_VERSIONS, (0, 4))
        keys: dict[Any, Any] = {**self.served, ApiKey.API_VERSIONS: (lowest, highest)}
        error, version = (35, 0) if version > highest else (0, version)
        response = api_versions.ApiVersionsResponse(
            error_code=error,
            api_keys=tuple(
                api_versions.ApiVersionsResponseApiKey(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in keys.items()
            ),
        )
        return version, api_versions.encode_response(response, version)


class VirtualClock:
    def __init__(self) -> None:
        self.now_ms = 1_000.0

    def monotonic_ms(self) -> float:
        return self.now_ms

    def wall_ms(self) -> int:
        return int(self.now_ms)


class ScriptedTransport:
    def __init__(self, network: "ScriptedNetwork", token: int, peer: Callable[[bytes], bytes] | None) -> None:
        self.token = Token(token)
        self.peer_address = "scripted"
        self.incoming = bytearray()
        self.is_broken = False
        self.is_closed = False
        self._network = network
        self._peer = peer

    def recv_into(self, buffer: memoryview, /) -> int:
        if self.incoming:
            count = min(len(buffer), len(self.incoming), self._network.chunk_bytes)
            buffer[:count] = self.incoming[:count]
            del self.incoming[:count]
            return count
        if self.is_broken:
            return 0
        raise BlockingIOError

    def send(self, buffer: bytes | bytearray | memoryview, flags: int = 0, /) -> int:
        if self._peer is None:
            raise ConnectionRefusedError(111, "Connection refused")
        part = bytes(buffer[: self._network.chunk_bytes])
        self.incoming += self._peer(part)
        return len(part)

    def close(self) -> None:
        self.is_closed = True


class ScriptedNetwork:
    """`peers` by port; a port that is not there refuses. A poll without events lets the time pass."""

    more = 0

    def __init__(self, clock: VirtualClock, peers: dict[int, Callable[[bytes], bytes]], chunk_bytes: int = 2**30):
        self.clock = clock
        self.peers = peers
        self.chunk_bytes = chunk_bytes
        self.transports: list[ScriptedTransport] = []
        self.connected_to: list[int] = []
        self._interest: dict[int, int] = {}

    def connect(self, host: str, port: int) -> Any:
        self.connected_to.append(port)
        transport = ScriptedTransport(self, len(self.transports), self.peers.get(port))
        self.transports.append(transport)
        return transport

    def watch(self, token: int, interest: int) -> None:
        self._interest[token] = interest

    def forget(self, token: int) -> None:
        del self._interest[token]

    def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
        events = []
        for token, interest in self._interest.items():
            transport = self.transports[token]
            ready = interest & WRITABLE
            if transport.incoming:
                ready |= READABLE
            elif transport.is_broken:
                ready |= READABLE | BROKEN
            if ready:
                events.append((token, ready))
        if not events:
            assert timeout_ms < float("inf")
            self.clock.now_ms += max(timeout_ms, 0.01)
        return events

    def listen(self, host: str, port: int) -> list[Any]:
        raise AssertionError("a client does not listen")

    def wake(self) -> None: ...
    def close(self) -> None: ...
