"""Latency loads: produce to a parked fetch, single messages, and a producer beside a reader of cold data."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Self

from headrace.bench import librdkafka
from headrace.bench.brokers import MeasuredBroker
from headrace.bench.consume import FETCH_BYTES, FETCH_WAIT_MS, LIBRDKAFKA, fill_topic
from headrace.bench.errors import CannotBeMeasured
from headrace.bench.figures import Round
from headrace.bench.histograms import Histogram, histogram_of, percentile_us
from headrace.bench.loads import ProduceLoad
from headrace.bench.machine import drop_from_cache
from headrace.bench.produce import check_arrival, prepare_topic
from headrace.bench.replay import ReplayClient, ReplayReport
from headrace.bench.requests import fetch_frames
from headrace.bench.topics import create_topics

ROUND_TRIP = "produce to a parked fetch"
ROUND_TRIP_LIBRDKAFKA = "produce to a parked fetch, librdkafka"
ONE_AT_A_TIME = "one message at a time, acks=all"
COLD = "producer beside a cold reader"
"""Names of the loads."""

MESSAGE_BYTES = 100
PARKED_PAUSE_US = 1_000
"""Delay between sending a fetch and producing, so that the fetch is parked at the broker."""

PARKED_WAIT_MS = 10_000
COLD_PARTITIONS = 4
COLD_READ_SECONDS_MAX = 1.0
"""Time that a reader of cold data reads before it checks whether to continue, and restarts."""
PACED = ProduceLoad(connections=8, depth=4, records=1, record_bytes=1_000, partitions=1)
PACED_INTERVAL_US = 4_000
"""Eight producers with a request every 4 ms each: a load that leaves the broker time for a reader."""


class _Topics:
    """Return the name of a new topic for each round."""

    def __init__(self, broker: MeasuredBroker, name: str) -> None:
        self.broker = broker
        self._name = name
        self._count = 0

    def next(self) -> str:
        self._count += 1
        return f"{self._name}-{self._count}"


class RoundTripRounds:
    """Latency from produce to consume through a parked fetch, by raw requests or librdkafka."""

    def __init__(self, broker: MeasuredBroker, client: ReplayClient, *, topic: str, count: int, by: str) -> None:
        self._topics = _Topics(broker, topic)
        self._client = client
        self._count = count
        self._by = by

    def __call__(self) -> Round:
        topic, address = self._topics.next(), self._topics.broker.address
        if self._by == LIBRDKAFKA:
            create_topics(address, [topic], partitions=1)
            times = librdkafka.round_trips(
                address, topic, count=self._count, message_bytes=MESSAGE_BYTES, pause_seconds=PARKED_PAUSE_US / 1e6
            )
            return _latencies(histogram_of(times))
        load = ProduceLoad(connections=1, depth=1, records=1, record_bytes=MESSAGE_BYTES, partitions=1)
        produced = prepare_topic(address, topic, load)
        fetched = fetch_frames(topic, [0], bytes_max=FETCH_BYTES, wait_ms_max=PARKED_WAIT_MS)
        report = self._client.round_trips(
            address, produced, fetched, count=self._count, offset=0, pause_us=PARKED_PAUSE_US
        )
        return _latencies(report.histogram)


class OneAtATimeRounds:
    """Latency from produce to acknowledgement with acks=all, one message at a time, by librdkafka."""

    def __init__(self, broker: MeasuredBroker, *, topic: str, count: int) -> None:
        self._topics = _Topics(broker, topic)
        self._count = count

    def __call__(self) -> Round:
        topic, address = self._topics.next(), self._topics.broker.address
        create_topics(address, [topic], partitions=1)
        times = librdkafka.one_at_a_time(address, topic, count=self._count, message_bytes=MESSAGE_BYTES)
        return _latencies(histogram_of(times))


class ColdReaderRounds:
    """A paced producer alone, then beside a reader of data that is not in the page cache."""

    def __init__(
        self, broker: MeasuredBroker, client: ReplayClient, *, topic: str, cold_bytes: int, seconds: float
    ) -> None:
        if broker.folder is None:
            raise CannotBeMeasured("the cold reader needs a broker that the benchmark started, to drop its page cache")
        self._broker, self._folder = broker, broker.folder
        self._client = client
        self._topics = _Topics(broker, topic)
        self._cold_topic = f"{topic}-cold"
        self._cold_bytes = cold_bytes
        self._load = replace(PACED, seconds=seconds)
        self._ends: list[int] = []

    def __call__(self) -> Round:
        if not self._ends:
            self._ends = fill_topic(self._broker, self._client, self._cold_topic, self._cold_bytes, COLD_PARTITIONS)
        alone = self._produce()
        with _Reading(self._client, self._broker.address, self._cold_topic, self._ends, self._forget) as reading:
            beside = self._produce()
        alone_p99, beside_p99 = alone.p99_us(), beside.p99_us()
        return {
            "alone_p99_us": alone_p99,
            "beside_p99_us": beside_p99,
            "p99_ratio": beside_p99 / alone_p99,
            "cold_megabytes_per_second": reading.megabytes_per_second(),
        }

    def _forget(self) -> None:
        for index in range(COLD_PARTITIONS):
            drop_from_cache(self._folder / f"{self._cold_topic}-{index}")

    def _produce(self) -> ReplayReport:
        topic, address = self._topics.next(), self._broker.address
        frames = prepare_topic(address, topic, self._load)
        report = self._client.exchange(
            address, frames, depth=self._load.depth, seconds=self._load.seconds, interval_us=PACED_INTERVAL_US
        )
        check_arrival(self._client, address, topic, self._load, report)
        return report


class _Reading:
    """A thread that waits for reader processes, which read all data repeatedly while this context is open.

    The page cache is dropped before each pass, so that a fast disk does not leave the producer alone half of the time.
    """

    def __init__(
        self, client: ReplayClient, address: str, topic: str, ends: list[int], forget: Callable[[], None]
    ) -> None:
        self._client = client
        self._address = address
        self._frames = fetch_frames(topic, range(len(ends)), bytes_max=FETCH_BYTES, wait_ms_max=FETCH_WAIT_MS)
        self._ranges = [(0, end) for end in ends]
        self._forget = forget
        self._is_over = threading.Event()
        self._read_bytes = 0
        self._seconds = 0.0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._read, name="cold reader")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        self._is_over.set()
        self._thread.join()
        if self._failure is not None and kind is None:
            raise self._failure

    def _read(self) -> None:
        try:
            while not self._seconds or not self._is_over.is_set():
                self._forget()
                report = self._client.fetch(
                    self._address,
                    self._frames,
                    self._ranges,
                    seconds=COLD_READ_SECONDS_MAX,
                    check=False,
                    must_end=False,
                )
                self._read_bytes += report.bytes
                self._seconds += report.seconds
        except BaseException as failure:
            self._failure = failure

    def megabytes_per_second(self) -> float:
        return self._read_bytes / 1e6 / self._seconds


def _latencies(histogram: Histogram) -> Round:
    return {"p50_us": percentile_us(histogram, 0.5), "p99_us": percentile_us(histogram, 0.99)}
