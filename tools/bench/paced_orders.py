"""Orders at a steady rate, encoded in advance so that sending is cheap, with the times at which they arrived."""

import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from headrace.bench.errors import BenchError
from headrace.bench.links import CLIENT_ID, BenchConnection
from headrace.bench.orders import SECONDS, closing_value, orders
from headrace.wire.frames import read_response_header, request_frame
from headrace.wire.messages import produce
from headrace.wire.records.builder import NewRecord, build_batch

TICK_SECONDS = 0.02
PRODUCE_VERSION = 9
ACKS_ALL = -1
SEND_TIMEOUT_MS = 30_000
DENSITY = 1_000_000 / SECONDS
"""Orders per second of event time, as in the demo."""
STAMPED = {"message.timestamp.type": "LogAppendTime"}
"""Topic config: the broker sets the timestamps, because the records are encoded long before they are sent."""


class Tick(NamedTuple):
    """The records that are sent together."""

    frame: bytes
    counts: tuple[int, ...]
    """Records by partition."""


def encoded_ticks(topic: str, count: int, *, partitions: int, per_second: int, seed: int) -> list[Tick]:
    """Encode the orders by ticks. Orders of a customer are in one partition; the last tick closes all windows."""
    seconds = round(count / DENSITY) + 1
    coming = orders(count, seed=seed, seconds=seconds)
    size = max(round(per_second * TICK_SECONDS), 1)
    found = []
    while chunk := list(islice(coming, size)):
        rows: list[list[NewRecord]] = [[] for _ in range(partitions)]
        for order in chunk:
            rows[order.customer % partitions].append(NewRecord(0, order.key, order.value))
        found.append(_tick(topic, rows))
    found.append(_tick(topic, [[NewRecord(0, None, closing_value(seconds))]] * partitions))
    return found


def _tick(topic: str, rows: Sequence[list[NewRecord]]) -> Tick:
    parts = tuple(
        produce.ProduceRequestPartition(index=index, records=bytes(build_batch(records)))
        for index, records in enumerate(rows)
        if records
    )
    data = produce.ProduceRequestTopic(name=topic, partition_data=parts)
    request = produce.ProduceRequest(acks=ACKS_ALL, timeout_ms=SEND_TIMEOUT_MS, topic_data=(data,))
    body = produce.encode_request(request, PRODUCE_VERSION)
    frame = request_frame(produce.API_KEY, PRODUCE_VERSION, 0, CLIENT_ID, body)
    return Tick(bytes(frame), tuple(len(records) for records in rows))


class PacedSender:
    """A thread that sends the ticks on time and knows when each record arrived."""

    def __init__(self, address: str, ticks: Sequence[Tick], *, partitions: int) -> None:
        self._address = address
        self._ticks = ticks
        self.times: list[float] = []
        """Time of the acknowledgement of each tick."""
        self._ends: list[list[int]] = [[] for _ in range(partitions)]
        """End offsets after each tick, by partition."""
        self._failure: BenchError | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send, name="paced-orders")

    def __enter__(self) -> "PacedSender":
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def is_done(self) -> bool:
        if self._failure is not None:
            raise self._failure
        return not self._thread.is_alive()

    def _send(self) -> None:
        try:
            with BenchConnection(self._address) as link:
                began = time.monotonic()
                totals = [0] * len(self._ends)
                for number, tick in enumerate(self._ticks):
                    if self._over.wait(max(began + number * TICK_SECONDS - time.monotonic(), 0)):
                        return
                    _check(link.exchange(tick.frame))
                    for partition, sent in enumerate(tick.counts):
                        totals[partition] += sent
                        self._ends[partition].append(totals[partition])
                    self.times.append(time.time())
        except BenchError as error:
            self._failure = error

    def rate(self) -> float:
        """Return the actual rate in orders per second; the last tick has no orders."""
        return sum(ends[-2] for ends in self._ends) / (self.times[-2] - self.times[0])

    def sent_at(self, partition: int, offset: int) -> float | None:
        """Return the arrival time of a record; None if it has not been sent yet."""
        number = bisect_right(self._ends[partition], offset)
        return self.times[number] if number < len(self.times) else None

    def oldest(self, offsets: Iterator[tuple[int, int]]) -> float | None:
        """Return the arrival time of the first of these records, given by partition and offset; None for no records."""
        found = [at for partition, offset in offsets if (at := self.sent_at(partition, offset)) is not None]
        return min(found, default=None)


def _check(answer: bytes) -> None:
    _, position = read_response_header(answer, 0, len(answer), api_key=produce.API_KEY, api_version=PRODUCE_VERSION)
    decoded = produce.decode_response(answer, position, len(answer), PRODUCE_VERSION)
    for topic in decoded.responses:
        for part in topic.partition_responses:
            if part.error_code:
                raise BenchError(f"orders were refused with error {part.error_code}")
