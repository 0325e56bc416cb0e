"""Consume loads: a topic of 1 KB records, written once and read repeatedly by librdkafka or raw fetches."""

from dataclasses import replace

from headrace.bench import librdkafka
from headrace.bench.brokers import MeasuredBroker
from headrace.bench.errors import BenchError, RunRejected
from headrace.bench.figures import Round
from headrace.bench.loads import LARGE, SINGLE
from headrace.bench.produce import check_arrival, prepare_topic, send
from headrace.bench.replay import ReplayClient
from headrace.bench.requests import fetch_frames
from headrace.bench.topics import end_offsets

FETCH_BYTES = 1 << 20
"""Maximum bytes per partition of a raw fetch; librdkafka's default."""

FETCH_WAIT_MS = 500
READ_SECONDS_MAX = 300
LIBRDKAFKA, REPLAY = "librdkafka", "replay"


class ConsumeRounds:
    """Prepare the rounds; the first round fills the topic."""

    def __init__(
        self, broker: MeasuredBroker, client: ReplayClient, *, topic: str, total_bytes: int, partitions: int, by: str
    ) -> None:
        self._broker = broker
        self._client = client
        self._topic = topic
        self._total_bytes = total_bytes
        self._partitions = partitions
        self._by = by
        self._ends: list[int] = []

    def __call__(self) -> Round:
        if not self._ends:
            self._ends = fill_topic(self._broker, self._client, self._topic, self._total_bytes, self._partitions)
        before = self._broker.cpu_seconds()
        read_bytes, seconds = self._read()
        after = self._broker.cpu_seconds()
        figures = {"megabytes_per_second": read_bytes / 1e6 / seconds}
        if before is not None and after is not None:
            figures["cpu_seconds_per_gigabyte"] = (after - before) / (read_bytes / 1e9)
        return figures

    def _read(self) -> tuple[int, float]:
        """Return bytes and seconds: bytes of values for librdkafka, of batches for raw fetches, which are 1 % apart."""
        address = self._broker.address
        if self._by == LIBRDKAFKA:
            consumed = librdkafka.consume(address, self._topic, ends=self._ends)
            if consumed.messages != sum(self._ends):
                raise RunRejected(f"{consumed.messages} of {sum(self._ends)} messages were received")
            return consumed.bytes, consumed.seconds
        frames = fetch_frames(self._topic, range(self._partitions), bytes_max=FETCH_BYTES, wait_ms_max=FETCH_WAIT_MS)
        report = self._client.fetch(address, frames, [(0, end) for end in self._ends], seconds=READ_SECONDS_MAX)
        if report.records != sum(self._ends):
            raise RunRejected(f"{report.records} of {sum(self._ends)} records were received")
        return report.bytes, report.seconds


class SmallFetchRounds:
    """Fetches that return one small batch each, with one request in flight per connection, of a topic written once."""

    def __init__(self, broker: MeasuredBroker, client: ReplayClient, *, topic: str, fetches: int) -> None:
        self._broker = broker
        self._client = client
        self._topic = topic
        connections = SINGLE.connections
        self._load = replace(SINGLE, partitions=connections, seconds=READ_SECONDS_MAX)
        self._batches = max(fetches // connections, 1)
        self._is_filled = False

    def __call__(self) -> Round:
        address, partitions = self._broker.address, self._load.partitions
        if not self._is_filled:
            frames = prepare_topic(address, self._topic, self._load)
            wanted = replace(self._load, bytes_max=self._batches * partitions * frames.batch_bytes)
            report = send(self._client, address, frames, wanted)
            check_arrival(self._client, address, self._topic, wanted, report)
            self._is_filled = True
        ends = end_offsets(address, self._topic, partitions=partitions)
        fetches = fetch_frames(self._topic, range(partitions), bytes_max=1, wait_ms_max=FETCH_WAIT_MS)
        before = self._broker.cpu_seconds()
        report = self._client.fetch(address, fetches, [(0, end) for end in ends], seconds=READ_SECONDS_MAX)
        after = self._broker.cpu_seconds()
        if report.records != sum(ends):
            raise RunRejected(f"{report.records} of {sum(ends)} records were received")
        # A batch has one record and a response has at least one batch, so records equal requests.
        figures = {"requests_per_second": report.records / report.seconds}
        if before is not None and after is not None:
            figures["cpu_us_per_request"] = (after - before) / report.records * 1e6
        return figures


def fill_topic(
    broker: MeasuredBroker, client: ReplayClient, topic: str, total_bytes: int, partitions: int
) -> list[int]:
    """Fill a topic with this many bytes of 1 KB records in 1 MB batches; return its end offsets."""
    load = replace(LARGE, partitions=partitions, connections=partitions, bytes_max=total_bytes)
    load = replace(load, seconds=READ_SECONDS_MAX)
    frames = prepare_topic(broker.address, topic, load)
    if total_bytes < frames.batch_bytes * partitions:
        least = -(-frames.batch_bytes * partitions // 1_000_000)
        raise BenchError(f"{partitions} partitions with a batch of 1 MB each take {least} MB: use at least that many")
    report = send(client, broker.address, frames, load)
    check_arrival(client, broker.address, topic, load, report)
    return end_offsets(broker.address, topic, partitions=partitions)
