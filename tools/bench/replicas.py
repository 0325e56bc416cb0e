"""Figures of topics with three replicas on three brokers, beside Apache Kafka and perhaps an earlier commit."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from headrace.bench.errors import BenchError
from headrace.bench.figures import Measurement
from headrace.bench.loads import ProduceLoad
from headrace.bench.replay import ReplayClient
from headrace.bench.rounds import Measured, ProgressReport, in_turns
from headrace.client.errors import ClientError
from tools.bench.kafka import KAFKA_NAME
from tools.bench.measured_clusters import BROKERS, MeasuredCluster, headrace_cluster, kafka_cluster
from tools.bench.replicated_loads import (
    ReplicatedCommitRounds,
    ReplicatedMessageRounds,
    ReplicatedProduceRounds,
    ReplicatedSingleRounds,
)
from tools.bench.targets import KAFKA, Target
from tools.bench.warm_up import warm_up
from tools.commit_figures import source_of

BEFORE = "earlier commit"
LIBRDKAFKA = "librdkafka"
ALL, LEADER = -1, 1

MESSAGES_LOAD = ProduceLoad(
    connections=1, depth=1, records=1, record_bytes=1_000, partitions=6, acks=ALL, bytes_max=1_000_000_000
)
MEDIUM_LOAD = ProduceLoad(
    connections=4, depth=4, records=16, record_bytes=1_000, partitions=2, acks=ALL, bytes_max=600_000_000
)
LARGE_LOAD = ProduceLoad(
    connections=2, depth=2, records=1_000, record_bytes=1_000, partitions=2, acks=ALL, bytes_max=1_000_000_000
)
PACED_LOAD = ProduceLoad(connections=8, depth=4, records=1, record_bytes=1_000, partitions=2)
"""The last three are per broker."""

MESSAGES = "acks=all, messages of 1 KB"
MEDIUM = "acks=all, batches of 16 KB"
LARGE = "acks=all, batches of 1 MB"
SINGLE = "acks=all, one message at a time"
PACED = {LEADER: "acks=1, half of Kafka's maximum", ALL: "acks=all, half of Kafka's maximum"}
COMMITS = "offset commits, 30 groups"
GROUPS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaExtent:
    """Size of the measurement: the full one takes about ten minutes."""

    rounds: int
    seconds: float
    singles: int


FULL = ReplicaExtent(rounds=5, seconds=2.0, singles=2_000)
QUICK = ReplicaExtent(rounds=1, seconds=0.2, singles=50)


def replica_targets() -> tuple[Target, ...]:
    return (
        Target(MESSAGES, "megabytes_per_second", False, 1.7, KAFKA),
        Target(MESSAGES, "cpu_seconds_per_gigabyte", True, 0.35, KAFKA),
        Target(MEDIUM, "megabytes_per_second", False, 1.5, KAFKA),
        Target(MEDIUM, "cpu_seconds_per_gigabyte", True, 0.5, KAFKA),
        Target(LARGE, "megabytes_per_second", False, 1.3, KAFKA),
        Target(LARGE, "cpu_seconds_per_gigabyte", True, 0.55, KAFKA),
        Target(SINGLE, "p50_us", True, 700.0),
        Target(SINGLE, "p99_us", True, 4_000.0),
        *(Target(load, "p99_us", True, 0.7, KAFKA) for load in PACED.values()),
        Target(COMMITS, "requests_per_second", False, 1.0, KAFKA),
    )


class ReplicaFigures:
    """Runs the selected parts on clusters that all run meanwhile; a failed part is reported and skipped."""

    def __init__(
        self, folder: Path, *, extent: ReplicaExtent, with_kafka: bool, before: str | None, report: ProgressReport
    ) -> None:
        self.measurements: list[Measurement] = []
        self.failures: dict[str, str] = {}
        """Reasons of failed parts, by name."""
        self._folder = folder
        self._extent = extent
        self._with_kafka = with_kafka
        self._before = before
        self._report = report
        self._client = ReplayClient(folder)
        self._clusters: list[MeasuredCluster] = []

    def run(self, names: Sequence[str]) -> None:
        with ExitStack() as stack:
            for cluster in self._new_clusters():
                self._report(f"starting {BROKERS} brokers of {cluster.name}")
                self._clusters.append(stack.enter_context(cluster).start())
            for name in names:
                try:
                    PARTS[name](self)
                except (BenchError, ClientError) as error:
                    self.failures[name] = str(error)
                    self._report(f"{name} does not count: {error}")

    def _new_clusters(self) -> list[MeasuredCluster]:
        clusters = [headrace_cluster(self._folder / "headrace")]
        if self._before is not None:
            source = source_of(self._before, self._folder / "before")
            clusters.append(headrace_cluster(self._folder / "earlier", name=BEFORE, source=source))
        if self._with_kafka:
            clusters.append(kafka_cluster(self._folder / "kafka"))
        return clusters

    def messages(self) -> None:
        load = self._timed(MESSAGES_LOAD)
        make = partial(ReplicatedMessageRounds, load=load, topic="messages")
        self._measure(MESSAGES, make, warm_figure="cpu_seconds_per_gigabyte", client=LIBRDKAFKA)

    def medium(self) -> None:
        self._produce(MEDIUM, MEDIUM_LOAD, "medium")

    def large(self) -> None:
        self._produce(LARGE, LARGE_LOAD, "large")

    def _produce(self, name: str, load: ProduceLoad, topic: str) -> None:
        make = partial(ReplicatedProduceRounds, client=self._client, load=self._timed(load), topic=topic)
        self._measure(name, make, warm_figure="cpu_seconds_per_gigabyte")

    def single(self) -> None:
        make = partial(ReplicatedSingleRounds, topic="single", count=self._extent.singles, message_bytes=100)
        self._measure(SINGLE, make, warm_figure="p50_us", client=LIBRDKAFKA)

    def paced(self) -> None:
        """Send at half of the highest rate that Apache Kafka reaches here; without it, at half of our own."""
        for acks, name in PACED.items():
            load = self._timed(replace(PACED_LOAD, acks=acks))
            make = partial(ReplicatedProduceRounds, client=self._client, load=load)
            fastest = make(self._clusters[-1], topic=f"fastest-{acks}")
            warm_up(name, self._clusters[-1].name, fastest, figure="requests_per_second", report=self._report)
            rate = median(fastest()["requests_per_second"] for _ in range(self._extent.rounds))
            interval_us = round(BROKERS * load.connections / (rate / 2) * 1e6)
            paced = partial(make, topic=f"paced-{acks}", interval_us=interval_us)
            self._measure(name, paced)

    def commits(self) -> None:
        make = partial(
            ReplicatedCommitRounds, client=self._client, topic="commits", groups=GROUPS, seconds=self._extent.seconds
        )
        self._measure(COMMITS, make, warm_figure="cpu_us_per_request")

    def _timed(self, load: ProduceLoad) -> ProduceLoad:
        return replace(load, seconds=self._extent.seconds)

    def _measure(
        self, load: str, make: Callable[[MeasuredCluster], Measured], *, warm_figure: str = "", client: str = ""
    ) -> None:
        subjects = {cluster.name: make(cluster) for cluster in self._clusters}
        if warm_figure and KAFKA_NAME in subjects:
            warm_up(load, KAFKA_NAME, subjects[KAFKA_NAME], figure=warm_figure, report=self._report)
        client = client or f"{self._client.description}, {BROKERS} processes"
        self.measurements += in_turns(load, subjects, rounds=self._extent.rounds, client=client, report=self._report)


PARTS: Mapping[str, Callable[[ReplicaFigures], None]] = {
    "messages": ReplicaFigures.messages,
    "medium": ReplicaFigures.medium,
    "large": ReplicaFigures.large,
    "single": ReplicaFigures.single,
    "paced": ReplicaFigures.paced,
    "commits": ReplicaFigures.commits,
}
