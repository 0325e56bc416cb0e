"""A client's connection: it sends requests and receives responses as the world is stepped."""

from collections import deque
from typing import Any, NamedTuple

from headrace.sim.fabric import LOOPBACK
from headrace.sim.world import World
from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec

CLIENT_ID = "sim"


class _Asked(NamedTuple):
    correlation: int
    api_key: ApiKey
    version: int
    tag: Any
    sent_ms: float


class KafkaConnection:
    """Pipelines any number of requests; `poll` returns the responses, in the order of the requests."""

    def __init__(self, world: World, host: str, port: int, *, from_host: str = LOOPBACK) -> None:
        self.wire = world.connect(host, port, from_host=from_host)
        self._time = world.time
        self._asked: deque[_Asked] = deque()
        self._next_correlation = 0

    @property
    def unanswered(self) -> int:
        return len(self._asked)

    @property
    def waiting_since_ms(self) -> float | None:
        """Return when the oldest unanswered request was sent."""
        return self._asked[0].sent_ms if self._asked else None

    def is_closed(self) -> bool:
        return self.wire.is_closed()

    def send(self, api_key: ApiKey, version: int, request: object, tag: Any = None, *, answered: bool = True) -> int:
        """Send a request without waiting; its response comes with `tag`. Return the correlation id."""
        correlation = self._next_correlation
        self._next_correlation += 1
        body = codec(api_key).encode_request(request, version)
        self.wire.send(frames.request_frame(api_key, version, correlation, CLIENT_ID, body))
        if answered:
            self._asked.append(_Asked(correlation, api_key, version, tag, self._time.now_ms))
        return correlation

    def poll(self) -> list[tuple[Any, Any]]:
        """Return the complete responses since the last call: (tag, message)."""
        if not self.wire.has_unread():
            return []
        received = self.wire.receive()
        results = []
        while len(received) >= frames.SIZE_BYTES:
            end = frames.SIZE_BYTES + int.from_bytes(received[: frames.SIZE_BYTES], "big")
            if len(received) < end:
                break
            frame = bytes(received[frames.SIZE_BYTES : end])
            del received[:end]
            asked = self._asked.popleft()
            answered, position = frames.read_response_header(
                frame, 0, len(frame), api_key=asked.api_key, api_version=asked.version
            )
            assert answered == asked.correlation, "responses come in the order of the requests"
            results.append(
                (asked.tag, codec(asked.api_key).decode_response(frame, position, len(frame), asked.version))
            )
        return results
