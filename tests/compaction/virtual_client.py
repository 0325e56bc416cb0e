"""A Kafka client on a virtual connection: it asks, and the world is stepped until the answer is here."""

from typing import Any

from headrace.sim.node import HOST, PORT
from headrace.sim.world import World
from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec
from headrace.wire.messages import create_topics, fetch

PRODUCE_VERSION = 9
FETCH_VERSION = 12
CREATE_TOPICS_VERSION = 7
WAIT_MS = 30_000
FETCH_BYTES_MAX = 1 << 20
ATTEMPTS_MAX = 50


class VirtualClient:
    def __init__(self, world: World) -> None:
        self._world = world
        self._connection = world.connect(HOST, PORT)
        self._asked: list[tuple[int, int]] = []

    def send(self, api_key: int, version: int, message: object) -> None:
        body = codec(api_key).encode_request(message, version)
        self._connection.send(frames.request_frame(api_key, version, len(self._asked), "tests", body))
        self._asked.append((api_key, version))

    def poll(self) -> list[Any]:
        """The answers that have arrived whole since the last call, in the order of the requests."""
        received = self._connection.receive()
        answers = []
        while len(received) >= frames.SIZE_BYTES:
            end = frames.SIZE_BYTES + int.from_bytes(received[: frames.SIZE_BYTES], "big")
            if len(received) < end:
                break
            frame = bytes(received[frames.SIZE_BYTES : end])
            del received[:end]
            api_key, version = self._asked.pop(0)
            _, position = frames.read_response_header(frame, 0, len(frame), api_key=api_key, api_version=version)
            answers.append(codec(api_key).decode_response(frame, position, len(frame), version))
        return answers

    def ask(self, api_key: int, version: int, message: object) -> Any:
        self.send(api_key, version, message)
        answers: list[Any] = []

        def has_ended() -> bool:
            answers.extend(self.poll())
            return bool(answers) or self._connection.is_closed()

        self._world.run_until(has_ended)
        assert answers, "the node closed the connection"
        return answers[0]

    def create_topic(self, name: str, configs: dict[str, str]) -> None:
        topic = create_topics.CreateTopicsRequestTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=tuple(
                create_topics.CreateTopicsRequestConfig(name=key, value=value) for key, value in configs.items()
            ),
        )
        request = create_topics.CreateTopicsRequest(topics=(topic,), timeout_ms=WAIT_MS)
        assert self.ask(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, request).topics[0].error_code == 0

    def fetch(self, topic: str, offset: int) -> Any:
        part = fetch.FetchRequestPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES_MAX)
        request = fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=FETCH_BYTES_MAX,
            topics=(fetch.FetchRequestTopic(topic=topic, partitions=(part,)),),
        )
        return self.ask(ApiKey.FETCH, FETCH_VERSION, request).responses[0].partitions[0]

    def await_high_watermark(self, topic: str, offset: int) -> None:
        """After a start it may come back later than the listener."""
        for _ in range(ATTEMPTS_MAX):
            if self.fetch(topic, offset=0).high_watermark >= offset:
                return
        raise AssertionError(f"the high watermark of {topic} does not reach {offset}")
