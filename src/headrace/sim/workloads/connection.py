"""A client's connection: requests out, answers in as the world is stepped."""

from collections import deque
from typing import Any, NamedTuple

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
    """Pipelines as many requests as the client likes; answers come in `poll`, in the order of the requests."""

    def __init__(self, world: World, host: str, port: int) -> None:
        self.wire = world.connect(host, port)
        self._time = world.time
        self._asked: deque[_Asked] = deque()
        self._next_correlation = 0

    @property
    def unanswered(self) -> int:
        return len(self._asked)

    @property
    def waiting_since_ms(self) -> float | None:
        """When the oldest request without an answer was sent."""
        return self._asked[0].sent_ms if self._asked else None

    def is_closed(self) -> bool:
        return self.wire.is_closed()

    def send(self, api_key: ApiKey, version: int, request: object, tag: Any = None, *, answered: bool = True) -> int:
        """Send a request without waiting; its answer comes with `tag`. The correlation id."""
        correlation = self._next_correlation
        self._next_correlation += 1
        body = codec(api_key).encode_request(request, version)
        self.wire.send(frames.request_frame(api_key, version, correlation, CLIENT_ID, body))
        if answered:
            self._asked.append(_Asked(correlation, api_key, version, tag, self._time.now_ms))
        return correlation

    def poll(self) -> list[tuple[Any, Any]]:
        """The answers that have arrived whole since the last call: (tag, message)."""
        if not self.wire.has_news():
            return []
        received = self.wire.receive()
        answers = []
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
            assert answered == asked.correlation, "answers come in the order of the requests"
            answers.append(
                (asked.tag, codec(asked.api_key).decode_response(frame, position, len(frame), asked.version))
            )
        return answers
