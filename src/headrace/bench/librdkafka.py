"""Loads by librdkafka (confluent-kafka), the client of most applications."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from headrace.bench.errors import RunRejected, ToolMissing

POLL_MESSAGES_MAX = 10_000
POLL_SECONDS = 0.05
"""Maximum wait of a poll for a full set of messages: the extra time at the end of a topic."""

SILENCE_SECONDS_MAX = 30
"""A consumer that has not received everything gives up after this time without a message."""

FLUSH_SECONDS_MAX = 60
FULL_QUEUE_WAIT_SECONDS = 0.01
MESSAGES_BETWEEN_LOOKS = 1_000
"""Messages sent between two reads of the clock."""

LINGER_MS = 20
QUIET = {"log_level": 0}
"""librdkafka's log is for debugging only; errors are returned by calls."""


class Produced(NamedTuple):
    messages: int
    seconds: float


class Consumed(NamedTuple):
    messages: int
    bytes: int
    seconds: float


def client_library() -> Any:
    try:
        return import_module("confluent_kafka")
    except ImportError:
        raise ToolMissing("this load needs librdkafka: pip install confluent-kafka") from None


def version() -> str:
    text: str = client_library().libversion()[0]
    return text


def produce(
    bootstrap: str, topic: str, *, partitions: int, message_bytes: int, acks: str, seconds: float, bytes_max: int
) -> Produced:
    """Send at full speed until the time or the byte limit is reached; return when all messages are acknowledged."""
    producer = client_library().Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": LINGER_MS,
            "acks": acks,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1 << 20,
            **QUIET,
        }
    )
    value = bytes(message_bytes)
    failures: list[str] = []
    noted = _failure_noter(failures)
    messages = 0
    began = time.monotonic()
    while time.monotonic() - began < seconds and (not bytes_max or messages * message_bytes < bytes_max):
        for number in range(messages, messages + MESSAGES_BETWEEN_LOOKS):
            # Only some deliveries are checked, because a check costs more than sending; end offsets cover the rest.
            callback = None if number % MESSAGES_BETWEEN_LOOKS else noted
            while True:
                try:
                    producer.produce(topic, value, partition=number % partitions, on_delivery=callback)
                    break
                except BufferError:
                    producer.poll(FULL_QUEUE_WAIT_SECONDS)
        messages += MESSAGES_BETWEEN_LOOKS
    left = producer.flush(FLUSH_SECONDS_MAX)
    if left or failures:
        raise RunRejected(f"{left} messages were not sent; {failures[0] if failures else 'no error was reported'}")
    return Produced(messages, time.monotonic() - began)


@contextmanager
def consumer(bootstrap: str, topic: str, starts: dict[int, int]) -> Iterator[Any]:
    """Return a consumer without a group that starts at these offsets, by partition."""
    library = client_library()
    reading = library.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "headrace-bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            **QUIET,
        }
    )
    try:
        reading.assign([library.TopicPartition(topic, partition, offset) for partition, offset in starts.items()])
        yield reading
    finally:
        reading.close()


def consume(bootstrap: str, topic: str, *, ends: list[int]) -> Consumed:
    """Read every partition from start to end and check that offsets are consecutive."""
    positions = [0] * len(ends)
    messages = read_bytes = 0
    with consumer(bootstrap, topic, dict.fromkeys(range(len(ends)), 0)) as reading:
        began = heard = time.monotonic()
        while positions != ends:
            batch = reading.consume(POLL_MESSAGES_MAX, POLL_SECONDS)
            now = time.monotonic()
            if batch:
                heard = now
            elif now - heard > SILENCE_SECONDS_MAX:
                raise RunRejected(f"the consumer receives no more messages: it is at {positions} of {ends}")
            for message in batch:
                if message.error() is not None:
                    raise RunRejected(f"the consumer received the error {message.error()}")
                partition, offset = message.partition(), message.offset()
                if offset != positions[partition]:
                    raise RunRejected(f"partition {partition} gave offset {offset} after {positions[partition] - 1}")
                positions[partition] = offset + 1
                read_bytes += len(message.value())
            messages += len(batch)
        return Consumed(messages, read_bytes, time.monotonic() - began)


def round_trips(bootstrap: str, topic: str, *, count: int, message_bytes: int, pause_seconds: float) -> list[float]:
    """Return the times from produce to consume through a parked fetch, in seconds."""
    producer = client_library().Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "1", **QUIET})
    value = bytes(message_bytes)
    times = []
    with consumer(bootstrap, topic, {0: 0}) as reading:
        for number in range(count + 1):
            time.sleep(pause_seconds)
            sent = time.perf_counter()
            producer.produce(topic, value, partition=0)
            message = reading.poll(SILENCE_SECONDS_MAX)
            times.append(time.perf_counter() - sent)
            producer.poll(0)
            if message is None or message.error() is not None or message.offset() != number:
                raise RunRejected(f"message {number} was not received as it was sent")
    return times[1:]  # the first one includes connecting and metadata


def one_at_a_time(bootstrap: str, topic: str, *, count: int, message_bytes: int) -> list[float]:
    """Return the times from produce to acknowledgement with acks=all, one message at a time, in seconds."""
    producer = client_library().Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all", **QUIET})
    value = bytes(message_bytes)
    failures: list[str] = []
    times = []
    for _ in range(count + 1):
        sent = time.perf_counter()
        producer.produce(topic, value, partition=0, on_delivery=_failure_noter(failures))
        producer.flush(FLUSH_SECONDS_MAX)
        times.append(time.perf_counter() - sent)
    if failures:
        raise RunRejected(f"a message was refused: {failures[0]}")
    return times[1:]


def _failure_noter(failures: list[str]) -> Callable[[object, object], None]:
    def noted(error: object, _message: object) -> None:
        if error is not None:
            failures.append(str(error))

    return noted
