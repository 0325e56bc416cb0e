"""Parts of the comparison with Spark's connector: one broker, one Spark, alternating formats."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from headrace.bench.brokers import HEADRACE, HeadraceBroker
from headrace.bench.errors import BenchError, ToolMissing
from headrace.bench.figures import Measurement
from headrace.bench.rounds import Measured, ProgressReport, in_turns
from headrace.client.errors import ClientError
from tools.bench.spark import targets
from tools.bench.spark.connector import CONNECTOR_VERSION
from tools.bench.spark.driver import MASTER, Driver
from tools.bench.spark.rounds import (
    LoadedTopic,
    MemoryRounds,
    ReadRounds,
    Rows,
    StreamRounds,
    WriteRounds,
    load_topic,
)
from tools.bench.spark.subjects import CONNECTOR, EXACTLY_ONCE, FILES, FILES_NUMPY

LARGE_BYTES = 1_000
SMALL_BYTES = 100
BATCH_BYTES = 16_384
"""Batch size in the topics that are read: the default of producers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Size of a comparison."""

    rounds: int
    warm_rounds: int
    """Warm-up rounds that do not count, in which Java compiles and workers start."""
    large_rows: int
    small_rows: int
    write_rows: int
    batch_rows: int
    batches: int
    stream_rounds: int
    memory_batches: int
    memory_batch_rows: int


FULL = Sizes(
    rounds=5,
    warm_rounds=2,
    large_rows=1_000_000,
    small_rows=4_000_000,
    write_rows=4_000_000,
    batch_rows=50_000,
    batches=40,
    stream_rounds=3,
    memory_batches=500,
    memory_batch_rows=20_000,
)
QUICK = Sizes(
    rounds=1,
    warm_rounds=0,
    large_rows=2_000,
    small_rows=5_000,
    write_rows=5_000,
    batch_rows=500,
    batches=7,
    stream_rounds=1,
    memory_batches=20,
    memory_batch_rows=100,
)

Part = Callable[["SparkComparison"], None]


class SparkComparison:
    """Runs the selected parts and collects their measurements; a failed part is reported and skipped."""

    def __init__(self, folder: Path, *, sizes: Sizes, jars: Sequence[Path], report: ProgressReport) -> None:
        """Prepare the comparison; without jars only our format is measured."""
        self.folder = folder
        self.sizes = sizes
        self.connector = f"{CONNECTOR} {CONNECTOR_VERSION}" if jars else ""
        self.broker = HeadraceBroker(folder / "broker")
        self.driver = Driver(folder / "spark", jars=jars)
        self.numpy_driver = Driver(folder / "spark-numpy", with_helper=False)
        self.measurements: list[Measurement] = []
        self.failures: dict[str, str] = {}
        """Reasons of failed parts, by name."""
        self._report = report
        self._topics: dict[Rows, LoadedTopic] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._report("starting a broker and Spark")
            stack.enter_context(self.broker).start()
            stack.enter_context(self.numpy_driver)
            stack.enter_context(self.driver).start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def run(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                PARTS[name](self)
            except (BenchError, ClientError) as error:
                self.failures[name] = "; ".join(filter(None, (str(error), self.broker.epitaph())))
                self._report(f"{name} does not count: {error}")

    def topic(self, count: int, value_bytes: int) -> LoadedTopic:
        """Return the topic with these rows; created on first use."""
        rows = Rows(count, value_bytes)
        if rows not in self._topics:
            self._report(f"loading {count} rows of {value_bytes} bytes")
            name = f"loaded-{len(self._topics)}"
            self._topics[rows] = load_topic(self.driver, self.broker, name, rows, batch_bytes=BATCH_BYTES)
        return self._topics[rows]

    def measure(self, load: str, subjects: Mapping[str, Measured], *, rounds: int = 0, warm_rounds: int = -1) -> None:
        """Measure in alternating rounds; warm-up rounds have the same order."""
        warm_rounds = self.sizes.warm_rounds if warm_rounds < 0 else warm_rounds
        if warm_rounds:
            in_turns(f"{load}, warming up", subjects, rounds=warm_rounds, client=MASTER, report=self._report)
        rounds = rounds or self.sizes.rounds
        self.measurements += in_turns(load, subjects, rounds=rounds, client=MASTER, report=self._report)


def _reads(comparison: SparkComparison, load: str, topic: LoadedTopic, drivers: Mapping[str, Driver]) -> None:
    """Read the whole topic by each of the subjects and by the connector."""
    made = {subject: ReadRounds(driver, comparison.broker, subject, topic) for subject, driver in drivers.items()}
    if comparison.connector:
        made[comparison.connector] = ReadRounds(comparison.driver, comparison.broker, CONNECTOR, topic)
    for rounds in made.values():
        rounds.check()
    comparison.measure(load, made)


def read(comparison: SparkComparison) -> None:
    sizes, drivers = comparison.sizes, {HEADRACE: comparison.driver}
    _reads(comparison, targets.READ_LARGE, comparison.topic(sizes.large_rows, LARGE_BYTES), drivers)
    _reads(comparison, targets.READ_SMALL, comparison.topic(sizes.small_rows, SMALL_BYTES), drivers)


def scan(comparison: SparkComparison) -> None:
    sizes, drivers = comparison.sizes, {FILES_NUMPY: comparison.numpy_driver}
    if comparison.driver.about["helper"]:
        drivers = {FILES: comparison.driver, **drivers}
    _reads(comparison, targets.SCAN_LARGE, comparison.topic(sizes.large_rows, LARGE_BYTES), drivers)
    _reads(comparison, targets.SCAN_SMALL, comparison.topic(sizes.small_rows, SMALL_BYTES), drivers)
    if FILES not in drivers:
        raise ToolMissing("scans with the compiled helper: it is not built, see `headrace doctor`")


def write(comparison: SparkComparison) -> None:
    rows = Rows(comparison.sizes.write_rows, SMALL_BYTES)
    totals = comparison.driver.ask("generated", rows=rows.number, value_bytes=rows.value_bytes)
    names = {HEADRACE: HEADRACE, EXACTLY_ONCE: EXACTLY_ONCE, comparison.connector: CONNECTOR}
    comparison.measure(
        targets.WRITE,
        {
            name: WriteRounds(comparison.driver, comparison.broker, subject, rows, totals)
            for name, subject in names.items()
            if name
        },
    )


def stream(comparison: SparkComparison) -> None:
    names = {HEADRACE: HEADRACE, comparison.connector: CONNECTOR}
    _streams(comparison, targets.STREAM, names, writes=False)
    names = {HEADRACE: HEADRACE, EXACTLY_ONCE: EXACTLY_ONCE, comparison.connector: CONNECTOR}
    _streams(comparison, targets.STREAM_WRITE, names, writes=True)
    found = {one.subject: one for one in comparison.measurements if one.load == targets.STREAM_WRITE}
    pairs = zip(found[EXACTLY_ONCE].values("batch_ms"), found[HEADRACE].values("batch_ms"), strict=True)
    comparison.measurements.append(
        Measurement(
            load=targets.STREAM_ADDED,
            subject=HEADRACE,
            client=MASTER,
            rounds=tuple({"added_ms": exactly - at_least} for exactly, at_least in pairs),
        )
    )


def _streams(comparison: SparkComparison, load: str, names: Mapping[str, str], *, writes: bool) -> None:
    sizes = comparison.sizes
    topic = comparison.topic(sizes.batch_rows * sizes.batches, SMALL_BYTES)
    subjects = {
        name: StreamRounds(
            comparison.driver,
            comparison.broker,
            subject,
            topic,
            batch_rows=sizes.batch_rows,
            folder=comparison.folder / f"checkpoints {load}" / name,
            writes=writes,
        )
        for name, subject in names.items()
        if name
    }
    comparison.measure(load, subjects, rounds=sizes.stream_rounds, warm_rounds=min(1, sizes.warm_rounds))


def memory(comparison: SparkComparison) -> None:
    sizes = comparison.sizes
    streaming = StreamRounds(
        comparison.driver,
        comparison.broker,
        EXACTLY_ONCE,
        comparison.topic(sizes.memory_batch_rows * sizes.memory_batches, SMALL_BYTES),
        batch_rows=sizes.memory_batch_rows,
        folder=comparison.folder / "checkpoints memory",
        writes=True,
    )
    rounds = MemoryRounds(streaming, batches=sizes.memory_batches)
    comparison.measure(targets.MEMORY, {HEADRACE: rounds}, rounds=1, warm_rounds=0)


PARTS: Mapping[str, Part] = {"read": read, "scan": scan, "write": write, "stream": stream, "memory": memory}
