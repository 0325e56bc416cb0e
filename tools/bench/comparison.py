"""Comparison of all loads on Headrace, on Apache Kafka if available, and on bare system calls."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from headrace.bench.brokers import HEADRACE, PURE_PYTHON, BrokerProcess, HeadraceBroker, PurePythonBroker, free_ports
from headrace.bench.consume import LIBRDKAFKA, REPLAY, ConsumeRounds
from headrace.bench.errors import BenchError
from headrace.bench.figures import Measurement
from headrace.bench.latency import (
    COLD,
    ONE_AT_A_TIME,
    ROUND_TRIP,
    ROUND_TRIP_LIBRDKAFKA,
    ColdReaderRounds,
    OneAtATimeRounds,
    RoundTripRounds,
)
from headrace.bench.loads import LARGE, PRODUCE_LOADS
from headrace.bench.machine import require_disk
from headrace.bench.produce import ProduceRounds
from headrace.bench.replay import ReplayClient
from headrace.bench.rounds import Measured, ProgressReport, in_turns
from headrace.client.errors import ClientError
from headrace.wire.compiled import has_request_helper
from headrace.wire.records.compression import Compression
from tools.bench import targets
from tools.bench.commits import CommitRounds
from tools.bench.compaction import BesideCompactionRounds, CleaningRounds
from tools.bench.durable import DURABLE_LOADS, DurableRounds
from tools.bench.floor import BARE, AppendFloorRounds
from tools.bench.idle import connections_round, partitions_round
from tools.bench.kafka import KAFKA_NAME, KafkaBroker
from tools.bench.metadata import MetadataRounds
from tools.bench.rebalance import CLASSIC, CONSUMER, RebalanceLoad, RebalanceRounds
from tools.bench.recovery import LARGE_BATCHES, SMALL_BATCHES, RecoveryRounds
from tools.bench.startup import StartRounds, embedded_round
from tools.bench.transactions import TransactionLoad, TransactionRounds
from tools.bench.warm_up import warm_up

IN_PROCESS = "this process"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Size of a comparison: the full one takes about 15 minutes, the quick one about four."""

    rounds: int
    consume_rounds: int
    consume_bytes: int
    cold_bytes: int
    cold_seconds: float
    round_trips: int
    starts: int
    connections: int
    partitions: int
    metadata_topics: int
    metadata_seconds: float
    coordinator_seconds: float
    members: int
    compacted_bytes: int
    recovery_small_bytes: int
    recovery_large_bytes: int
    disk_bytes: int
    """Disk space that the whole comparison needs at most."""

    is_quick: bool


FULL = Extent(
    rounds=3,
    consume_rounds=7,
    consume_bytes=4_000_000_000,
    cold_bytes=2_000_000_000,
    cold_seconds=3.0,
    round_trips=2_000,
    starts=4,
    connections=1_000,
    partitions=4_000,
    metadata_topics=1_000,
    metadata_seconds=2.0,
    coordinator_seconds=3.0,
    members=100,
    compacted_bytes=64_000_000,
    recovery_small_bytes=50_000_000,
    recovery_large_bytes=1_000_000_000,
    disk_bytes=40_000_000_000,
    is_quick=False,
)
QUICK = Extent(
    rounds=3,
    consume_rounds=3,
    consume_bytes=400_000_000,
    cold_bytes=400_000_000,
    cold_seconds=1.0,
    round_trips=500,
    starts=3,
    connections=1_000,
    partitions=4_000,
    metadata_topics=1_000,
    metadata_seconds=1.0,
    coordinator_seconds=1.0,
    members=100,
    compacted_bytes=16_000_000,
    recovery_small_bytes=5_000_000,
    recovery_large_bytes=200_000_000,
    disk_bytes=12_000_000_000,
    is_quick=True,
)

Part = Callable[["Comparison"], None]


class Maker(Protocol):
    def __call__(self, folder: Path, settings: Mapping[str, str] | None = None) -> BrokerProcess: ...


class Comparison:
    """Runs the selected parts and collects their measurements; a failed part is reported and skipped."""

    def __init__(self, folder: Path, *, extent: Extent, with_kafka: bool, report: ProgressReport) -> None:
        self.folder = folder
        self.client = ReplayClient(folder)
        self.extent = extent
        self.makers: dict[str, Maker] = {HEADRACE: HeadraceBroker}
        if with_kafka:
            self.makers[KAFKA_NAME] = KafkaBroker
        self.measurements: list[Measurement] = []
        self.failures: dict[str, str] = {}
        """Reasons of failed parts, by name."""

        self._report = report
        self._loaded: list[BrokerProcess] = []

    def run(self, names: Sequence[str]) -> None:
        """Run the parts that share running brokers first, then those that start their own."""
        free_bytes = shutil.disk_usage(self.folder).free
        if free_bytes < self.extent.disk_bytes:
            needed, free = self.extent.disk_bytes / 1e9, free_bytes / 1e9
            raise BenchError(f"this needs {needed:.0f} GB of disk and {free:.0f} GB are free: choose another --folder")
        with ExitStack() as stack:
            if any(name in LOADED_PARTS for name in names):
                self._loaded = [stack.enter_context(broker).start() for broker in self.new_brokers("loaded")]
            for name in names:
                if name in LOADED_PARTS:
                    self._run(name, LOADED_PARTS[name])
        for name in names:
            if name in LONE_PARTS:
                self._run(name, LONE_PARTS[name])

    def _run(self, name: str, part: Part) -> None:
        try:
            part(self)
        except Exception as error:  # a failed part must not cost the ten minutes of the others
            deaths = [broker.epitaph() for broker in self._loaded]
            expected = isinstance(error, BenchError | ClientError)
            reason = str(error) if expected else f"{type(error).__name__}: {error}"
            self.failures[name] = "; ".join(filter(None, (reason, *deaths)))
            self._report(f"{name} does not count: {reason}")

    def new_brokers(self, purpose: str, settings: Mapping[str, str] | None = None) -> list[BrokerProcess]:
        """Create one empty broker of each kind, without starting it."""
        self._report(f"brokers for {purpose}")
        return [make(self.folder / f"{purpose}-{place}", settings) for place, make in enumerate(self.makers.values())]

    def measure(
        self,
        load: str,
        make: Callable[[BrokerProcess], Measured],
        *,
        rounds: int = 0,
        warm_figure: str = "",
        warm: Callable[[BrokerProcess], Measured] | None = None,
        client: str = "",
        others: Mapping[str, Measured] | None = None,
    ) -> None:
        """Measure a load on the running brokers in alternating rounds, after a warm-up by it or by `warm`."""
        subjects = {broker.name: make(broker) for broker in self._loaded}
        if warm_figure:
            for broker in self._loaded:
                measured = warm(broker) if warm is not None else subjects[broker.name]
                warm_up(load, broker.name, measured, figure=warm_figure, report=self._report)
        self.add(load, {**subjects, **(others or {})}, rounds=rounds or self.extent.rounds, client=client)

    def add(self, load: str, subjects: Mapping[str, Measured], *, rounds: int, client: str = "") -> None:
        client = client or self.client.description
        self.measurements += in_turns(load, subjects, rounds=rounds, client=client, report=self._report)


def produce(comparison: Comparison) -> None:
    with ExitStack() as stack:
        pure = None
        if has_request_helper():
            pure = stack.enter_context(PurePythonBroker(comparison.folder / "pure-python")).start()
        for number, full in enumerate(PRODUCE_LOADS):
            load = full.quick() if comparison.extent.is_quick else full
            make = partial(ProduceRounds, client=comparison.client, load=load, topic=f"produce-{number}")
            warm = partial(make, load=full.quick(), topic=f"warm-{number}")
            others: dict[str, Measured] = {} if pure is None else {PURE_PYTHON: make(pure)}
            if full is LARGE:
                others[BARE] = AppendFloorRounds(comparison.folder, comparison.client, load)
            comparison.measure(full.name, make, warm_figure="cpu_us_per_request", warm=warm, others=others)


def consume(comparison: Comparison) -> None:
    extent, figure = comparison.extent, "cpu_seconds_per_gigabyte"
    make = partial(ConsumeRounds, client=comparison.client, partitions=4, total_bytes=extent.consume_bytes)
    by_user = partial(make, topic="consume-librdkafka", by=LIBRDKAFKA)
    rounds = extent.consume_rounds
    comparison.measure(targets.CONSUME, by_user, rounds=rounds, warm_figure=figure, client=LIBRDKAFKA)
    raw = partial(make, topic="consume-raw", by=REPLAY, total_bytes=extent.consume_bytes // 4)
    comparison.measure(targets.CONSUME_RAW, raw, warm_figure=figure)


def latency(comparison: Comparison) -> None:
    count = comparison.extent.round_trips
    make = partial(RoundTripRounds, client=comparison.client, count=count)
    comparison.measure(ROUND_TRIP, partial(make, topic="round-raw", by=REPLAY), warm_figure="p50_us")
    comparison.measure(
        ROUND_TRIP_LIBRDKAFKA,
        partial(make, topic="round-librdkafka", by=LIBRDKAFKA),
        warm_figure="p50_us",
        client=LIBRDKAFKA,
    )
    one = partial(OneAtATimeRounds, topic="one", count=count)
    comparison.measure(ONE_AT_A_TIME, one, warm_figure="p50_us", client=LIBRDKAFKA)


def cold(comparison: Comparison) -> None:
    require_disk(comparison.folder, COLD)
    extent = comparison.extent
    make = partial(ColdReaderRounds, client=comparison.client, topic="paced")
    comparison.measure(COLD, partial(make, cold_bytes=extent.cold_bytes, seconds=extent.cold_seconds))


def durable(comparison: Comparison) -> None:
    require_disk(comparison.folder, "a sync")
    for number, (name, full) in enumerate(DURABLE_LOADS.items()):
        load = full.quick() if comparison.extent.is_quick else full
        make = partial(DurableRounds, client=comparison.client, load=load, folder=comparison.folder)
        comparison.measure(name, partial(make, topic=f"durable-{number}"))


def metadata(comparison: Comparison) -> None:
    extent = comparison.extent
    make = partial(MetadataRounds, client=comparison.client, topic="metadata", partitions=10)
    many = partial(make, topics=extent.metadata_topics, seconds=extent.metadata_seconds)
    comparison.measure(targets.METADATA, many, warm_figure="cpu_us_per_request")


def coordinators(comparison: Comparison) -> None:
    seconds = comparison.extent.coordinator_seconds
    commits = partial(CommitRounds, client=comparison.client, topic="commits", connections=32, depth=1)
    comparison.measure(targets.COMMITS, partial(commits, seconds=seconds), warm_figure="cpu_us_per_request")
    load = TransactionLoad(producers=8, records=10, partitions=4, seconds=seconds)
    transactions = partial(TransactionRounds, load=load, topic="transactions")
    comparison.measure(targets.TRANSACTIONS, transactions, warm_figure="cpu_us_per_transaction", client=IN_PROCESS)


def groups(comparison: Comparison) -> None:
    members = comparison.extent.members
    loads = {
        targets.REBALANCE_CLASSIC: RebalanceLoad(protocol=CLASSIC, members=members, partitions=members),
        targets.REBALANCE_CONSUMER: RebalanceLoad(protocol=CONSUMER, members=members, partitions=members),
    }
    settings = loads[targets.REBALANCE_CLASSIC].settings()
    with ExitStack() as stack:
        brokers = [stack.enter_context(broker).start() for broker in comparison.new_brokers("groups", settings)]
        for name, load in loads.items():
            subjects = {broker.name: RebalanceRounds(broker, load, topic="rebalance") for broker in brokers}
            comparison.add(name, subjects, rounds=comparison.extent.rounds, client=IN_PROCESS)


def compaction(comparison: Comparison) -> None:
    """Measure Headrace alone: the time at which Apache Kafka compacts cannot be chosen."""
    extent = comparison.extent
    cleaning = CleaningRounds(
        comparison.folder / "cleaning",
        record_bytes=1_000,
        total_bytes=extent.compacted_bytes,
        compression=Compression.NONE,
    )
    comparison.add(targets.CLEANING, {HEADRACE: cleaning}, rounds=extent.rounds, client=IN_PROCESS)
    metrics = ("127.0.0.1", free_ports(1)[0])
    settings = {"headrace.metrics.listen": "{}:{}".format(*metrics)}
    with HeadraceBroker(comparison.folder / "compaction", settings).start() as broker:
        beside = BesideCompactionRounds(
            broker,
            comparison.client,
            topic="compaction",
            total_bytes=extent.compacted_bytes,
            seconds=extent.cold_seconds,
            metrics=metrics,
        )
        comparison.add(targets.BESIDE_COMPACTION, {HEADRACE: beside}, rounds=extent.rounds)


def start(comparison: Comparison) -> None:
    folder, rounds = comparison.folder, comparison.extent.starts
    starts = {name: StartRounds(make, folder / f"start {name}") for name, make in comparison.makers.items()}
    comparison.add(targets.START, starts, rounds=rounds, client=IN_PROCESS)
    embedded = {HEADRACE: partial(embedded_round, folder)}
    comparison.add(targets.EMBEDDED, embedded, rounds=rounds, client=IN_PROCESS)


def idle(comparison: Comparison) -> None:
    """Measure idle brokers; the quick form skips Apache Kafka, which needs a minute for its partitions."""
    extent = comparison.extent
    brokers = comparison.new_brokers("idle")
    for broker in brokers[:1] if extent.is_quick else brokers:
        with broker.start():
            connected = {broker.name: partial(connections_round, broker, connections=extent.connections)}
            comparison.add(targets.CONNECTIONS, connected, rounds=1, client=IN_PROCESS)
            parted = {broker.name: partial(partitions_round, broker, partitions=extent.partitions)}
            comparison.add(targets.PARTITIONS, parted, rounds=1, client=IN_PROCESS)


def recovery(comparison: Comparison) -> None:
    extent = comparison.extent
    small = replace(SMALL_BATCHES, bytes_max=extent.recovery_small_bytes)
    large = replace(LARGE_BATCHES, bytes_max=extent.recovery_large_bytes)
    for broker in comparison.new_brokers("recovery"):
        rounds = extent.rounds if broker.name == HEADRACE else 1
        with broker.start():
            make = partial(RecoveryRounds, broker, comparison.client)
            comparison.add(targets.RECOVERY_SMALL, {broker.name: make(small, topic="small")}, rounds=rounds)
            comparison.add(targets.RECOVERY_LARGE, {broker.name: make(large, topic="large")}, rounds=rounds)


LOADED_PARTS: Mapping[str, Part] = {
    "produce": produce,
    "consume": consume,
    "latency": latency,
    "cold": cold,
    "durable": durable,
    "metadata": metadata,
    "coordinators": coordinators,
}
LONE_PARTS: Mapping[str, Part] = {
    "groups": groups,
    "compaction": compaction,
    "start": start,
    "idle": idle,
    "recovery": recovery,
}
PARTS = (*LOADED_PARTS, *LONE_PARTS)
