"""Rounds of each Spark load. Rows are checked: a round with a missing, extra or altered row has no figure."""

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from headrace.bench.brokers import HEADRACE, MeasuredBroker
from headrace.bench.errors import RunRejected
from headrace.bench.figures import Round
from headrace.bench.topics import create_topics, delete_topics, end_offsets
from tools.bench.spark.driver import Driver
from tools.bench.spark.subjects import EXACTLY_ONCE, FORMATS, read_options, write_options

PARTITIONS = 4
FIRST_BATCHES = 5
"""First micro-batches of a query that do not count, in which workers start and code is generated."""

TRIGGER = "triggerExecution"


class Rows(NamedTuple):
    """Number and size of rows; Spark computes their totals."""

    number: int
    value_bytes: int


class LoadedTopic(NamedTuple):
    name: str
    rows: Rows
    totals: Mapping[str, int]
    """Number of rows, bytes of values, and checksum of keys and values."""


def load_topic(driver: Driver, broker: MeasuredBroker, name: str, rows: Rows, *, batch_bytes: int) -> LoadedTopic:
    """Write a topic with these rows in batches of about this size, and check its end offsets."""
    create_topics(broker.address, [name], partitions=PARTITIONS)
    options = {**write_options(HEADRACE, broker.address, name), "kafka.batch.size": str(batch_bytes)}
    driver.ask("write", sink=FORMATS[HEADRACE].name, options=options, rows=rows.number, value_bytes=rows.value_bytes)
    found = sum(end_offsets(broker.address, name, partitions=PARTITIONS))
    require("end offsets", found, rows.number)
    return LoadedTopic(name, rows, driver.ask("generated", rows=rows.number, value_bytes=rows.value_bytes))


def require(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise RunRejected(f"{what}: {found} where {expected} was expected")


class _Costs:
    """CPU of Spark with all its processes, and of the broker, in a round."""

    def __init__(self, driver: Driver, broker: MeasuredBroker) -> None:
        self._driver = driver
        self._broker = broker
        self._began = self._seconds()

    def _seconds(self) -> float:
        return self._driver.cpu_seconds() + (self._broker.cpu_seconds() or 0.0)

    def figures(self, rows: Rows, seconds: float) -> dict[str, float]:
        return {
            "rows_per_second": rows.number / seconds,
            "megabytes_per_second": rows.number * rows.value_bytes / seconds / 1e6,
            "cpu_us_per_row": (self._seconds() - self._began) * 1e6 / rows.number,
        }


class ReadRounds:
    """A batch read of a whole topic."""

    def __init__(self, driver: Driver, broker: MeasuredBroker, subject: str, topic: LoadedTopic) -> None:
        self._driver = driver
        self._broker = broker
        self._topic = topic
        self._query = {
            "source": FORMATS[subject].name,
            "options": read_options(subject, broker.address, topic.name),
        }

    def check(self) -> None:
        """Check every key and every value."""
        require("all rows", self._driver.ask("totals", **self._query), self._topic.totals)

    def __call__(self) -> Round:
        costs = _Costs(self._driver, self._broker)
        answer = self._driver.ask("read", **self._query)
        for name in ("rows", "bytes"):
            require(name, answer[name], self._topic.totals[name])
        return costs.figures(self._topic.rows, answer["seconds"])


class WriteRounds:
    """A batch write into a new topic, which is read back and deleted."""

    def __init__(
        self, driver: Driver, broker: MeasuredBroker, subject: str, rows: Rows, totals: Mapping[str, int]
    ) -> None:
        self._driver = driver
        self._broker = broker
        self._subject = subject
        self._rows = rows
        self._totals = totals
        self._number = 0

    def __call__(self) -> Round:
        self._number += 1
        address, topic = self._broker.address, f"written-{FORMATS[self._subject].name}-{self._number}"
        create_topics(address, [topic], partitions=PARTITIONS)
        options = write_options(self._subject, address, topic)
        if self._subject == EXACTLY_ONCE:
            options["idempotenceKey"] = topic
        costs = _Costs(self._driver, self._broker)
        answer = self._driver.ask(
            "write",
            sink=FORMATS[self._subject].name,
            options=options,
            rows=self._rows.number,
            value_bytes=self._rows.value_bytes,
        )
        figures = costs.figures(self._rows, answer["seconds"])
        check_written(self._driver, self._broker, topic, self._totals)
        delete_topics(address, topic)
        return figures


def check_written(driver: Driver, broker: MeasuredBroker, topic: str, totals: Mapping[str, int]) -> None:
    """Check by a read of committed records that each row exists once."""
    options = read_options(HEADRACE, broker.address, topic)
    require("rows in the topic", driver.ask("totals", source=FORMATS[HEADRACE].name, options=options), totals)


class StreamRounds:
    """A query that reads a topic in micro-batches and discards the rows or writes them to a topic."""

    def __init__(
        self,
        driver: Driver,
        broker: MeasuredBroker,
        subject: str,
        topic: LoadedTopic,
        *,
        batch_rows: int,
        folder: Path,
        writes: bool,
    ) -> None:
        self._driver = driver
        self._broker = broker
        self._subject = subject
        self._topic = topic
        self._batch_rows = batch_rows
        self._folder = folder
        self._writes = writes
        self._number = 0

    def __call__(self) -> Round:
        answer = self.run()
        times = [steps[TRIGGER] for steps in answer["steps_ms"]]
        if len(times) <= FIRST_BATCHES:
            raise RunRejected(f"{len(times)} micro-batches are too few to measure: use more than {FIRST_BATCHES}")
        return {"batch_ms": median(times[FIRST_BATCHES:])}

    def run(self, *, with_memory: bool = False) -> Any:
        """Run a query to its end and check the rows that it read and wrote."""
        self._number += 1
        address, name = self._broker.address, f"streamed-{self._number}"
        form = FORMATS[self._subject]
        sink, sink_options = "noop", {}
        if self._writes:
            create_topics(address, [name], partitions=PARTITIONS)
            sink, sink_options = form.name, write_options(self._subject, address, name)
        source_options = read_options(self._subject, address, self._topic.name)
        answer = self._driver.ask(
            "stream",
            source=form.name,
            source_options={
                **source_options,
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(self._batch_rows),
            },
            sink=sink,
            sink_options=sink_options,
            checkpoint=str(self._folder / f"{form.name}-{name}"),
            broker_process_id=self._broker.process_id if with_memory else None,
        )
        for total in ("rows", "checksum"):
            require(f"{total} of the query", answer[total], self._topic.totals[total])
        if self._writes:
            check_written(self._driver, self._broker, name, self._topic.totals)
            delete_topics(address, name)
        return answer


class MemoryRounds:
    """Memory growth of the broker and the Python workers from one micro-batch to a much later one."""

    def __init__(self, streaming: StreamRounds, *, batches: int) -> None:
        self._streaming = streaming
        self._batches = batches

    def __call__(self) -> Round:
        samples = self._streaming.run(with_memory=True)["memory"]
        width = self._batches // 20
        early, late = self._batches // 5, self._batches - 1
        broker_before, workers_before = _around(samples, early - width, early + width)
        broker, workers = _around(samples, late - 2 * width, late)
        return {
            "broker_megabytes": broker / 1e6,
            "broker_growth": broker / broker_before - 1,
            "workers_megabytes": workers / 1e6,
            "workers_growth": workers / workers_before - 1,
        }


def _around(samples: list[tuple[int, int, int]], first: int, last: int) -> tuple[float, float]:
    """Return the medians of the samples between two micro-batches."""
    chosen = [sample for sample in samples if first <= sample[0] <= last]
    if not chosen:
        raise RunRejected(f"no sample of the memory between the micro-batches {first} and {last}")
    return median(sample[1] for sample in chosen), median(sample[2] for sample in chosen)
