"""Figures of clusters: their start, memory and metadata, shards against one shard, and one broker against a commit."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from headrace.bench import processes
from headrace.bench.brokers import HEADRACE, MeasuredBroker
from headrace.bench.errors import BenchError
from headrace.bench.figures import Measurement, Round
from headrace.bench.loads import LARGE, PIPELINED, PRODUCE_LOADS, SINGLE, ProduceLoad
from headrace.bench.produce import ProduceRounds
from headrace.bench.replay import ReplayClient
from headrace.bench.rounds import Measured, ProgressReport, in_turns
from headrace.bench.shards import ShardedBroker, ShardsProduceRounds, shards_name
from headrace.bench.topics import create_topics
from headrace.client.errors import ClientError
from tools.bench.idle import MEGABYTE, SETTLE_SECONDS
from tools.bench.metadata import MetadataRounds
from tools.bench.targets import Target
from tools.commit_figures import ROOT, CommitBroker, source_of

BROKERS = 3
SHARDS = 2
PARTITIONS_PER_TOPIC = 10
COMMAND_SECONDS_MAX = 120
START = f"start of {BROKERS} brokers"
METADATA = f"metadata of {BROKERS} brokers, 1,000 topics x {PARTITIONS_PER_TOPIC}"
TOPICS = "10,000 topics in batches of 100"
BEFORE = "earlier commit"
IN_PROCESS = "this process"

CPU_TIMES_MAX = 1.05
"""Limit for the CPU per request of one broker, relative to the earlier commit."""
SHARDS_TIMES_MIN = {False: 1.25, True: 1.6}
"""Limit for the rate of two shards, relative to one, by whether there are cores for the load generators too."""
CORES_FOR_GENERATORS = 4
COMPARED_LOADS = (SINGLE, PIPELINED, LARGE)
"""Loads whose CPU is compared with the earlier commit: medium batches measure the disk rather than the broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterExtent:
    """Size of the measurement: the full one takes about five minutes."""

    rounds: int
    compared_rounds: int
    """Rounds in which one broker and the earlier commit take turns."""
    seconds: float
    metadata_topics: int
    topics: int


FULL = ClusterExtent(rounds=5, compared_rounds=10, seconds=1.0, metadata_topics=1_000, topics=10_000)
QUICK = ClusterExtent(rounds=1, compared_rounds=1, seconds=0.2, metadata_topics=100, topics=200)


def cluster_targets() -> tuple[Target, ...]:
    times = SHARDS_TIMES_MIN[(os.cpu_count() or 1) >= CORES_FOR_GENERATORS]
    return (
        Target(START, "seconds", True, 2.0),
        Target(START, "idle_megabytes", True, 45.0),
        Target(TOPICS, "seconds", True, 60.0),
        *(
            Target(load.name, "requests_per_second", False, times, shards_name(1), shards_name(SHARDS))
            for load in PRODUCE_LOADS
        ),
        *(Target(load.name, "cpu_us_per_request", True, CPU_TIMES_MAX, BEFORE) for load in COMPARED_LOADS),
    )


class ClusterFigures:
    """Runs the selected parts and collects their measurements; a failed part is reported and skipped."""

    def __init__(self, folder: Path, *, extent: ClusterExtent, before: str | None, report: ProgressReport) -> None:
        self.measurements: list[Measurement] = []
        self.failures: dict[str, str] = {}
        """Reasons of failed parts, by name."""
        self._folder = folder
        self._extent = extent
        self._before = before
        self._report = report
        self._client = ReplayClient(folder)

    def run(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                PARTS[name](self)
            except (BenchError, ClientError) as error:
                self.failures[name] = str(error)
                self._report(f"{name} does not count: {error}")

    def start(self) -> None:
        rounds = StartRounds(self._folder)
        self._add(START, {HEADRACE: rounds}, rounds=self._extent.rounds, client=IN_PROCESS)

    def metadata(self) -> None:
        with running_cluster(self._folder / "metadata") as nodes:
            broker = MeasuredBroker(HEADRACE, nodes[-1].address, nodes[-1].pid)
            rounds = MetadataRounds(
                broker,
                self._client,
                topic="metadata",
                topics=self._extent.metadata_topics,
                partitions=PARTITIONS_PER_TOPIC,
                seconds=self._extent.seconds,
            )
            self._add(METADATA, {HEADRACE: rounds}, rounds=self._extent.rounds)

    def topics(self) -> None:
        rounds = TopicRounds(self._folder, topics=self._extent.topics)
        self._add(TOPICS, {HEADRACE: rounds}, rounds=1, client=IN_PROCESS)

    def shards(self) -> None:
        with ExitStack() as stack:
            brokers = [
                stack.enter_context(ShardedBroker(self._folder / f"shards-{count}", count)).start()
                for count in (1, SHARDS)
            ]
            for number, standard in enumerate(PRODUCE_LOADS):
                load = self._timed(standard)
                make = partial(ShardsProduceRounds, client=self._client, load=load, generators=SHARDS)
                subjects = {broker.name: make(broker, topic=f"shards-{number}") for broker in brokers}
                client = f"{self._client.description}, {SHARDS} processes"
                self._add(standard.name, subjects, rounds=self._extent.rounds, client=client)

    def compared(self) -> None:
        """Compare the CPU of one broker with that of the earlier commit, if there is one."""
        if self._before is None:
            return
        sources = {BEFORE: source_of(self._before, self._folder / "before"), HEADRACE: ROOT / "src"}
        with ExitStack() as stack:
            brokers = [
                stack.enter_context(CommitBroker(name, self._folder / f"compared-{number}", source)).start()
                for number, (name, source) in enumerate(sources.items())
            ]
            for number, standard in enumerate(COMPARED_LOADS):
                make = partial(ProduceRounds, client=self._client, load=self._timed(standard))
                subjects = {broker.name: make(broker, topic=f"compared-{number}") for broker in brokers}
                self._add(standard.name, subjects, rounds=self._extent.compared_rounds)

    def _timed(self, load: ProduceLoad) -> ProduceLoad:
        return replace(load, seconds=self._extent.seconds)

    def _add(self, load: str, subjects: Mapping[str, Measured], *, rounds: int, client: str = "") -> None:
        client = client or self._client.description
        self.measurements += in_turns(load, subjects, rounds=rounds, client=client, report=self._report)


class ClusterNode(NamedTuple):
    pid: int
    address: str


@contextmanager
def running_cluster(folder: Path) -> Iterator[list[ClusterNode]]:
    """Start a cluster of three brokers as a user does, and stop it at the end of the block."""
    try:
        printed = _headrace("up", "--brokers", str(BROKERS), "--json", folder=folder)
        yield [ClusterNode(node["pid"], node["address"]) for node in msgspec.json.decode(printed)["nodes"]]
    finally:
        _headrace("down", folder=folder)


def _headrace(command: str, *options: str, folder: Path) -> bytes:
    words = processes.python_command("-m", "headrace", command, *options, "--data-dir", str(folder))
    return processes.run(words, messages=folder.with_suffix(".txt"), seconds_max=COMMAND_SECONDS_MAX)


class StartRounds:
    """Rounds with a new cluster each: the time of `headrace up`, and the memory of the largest broker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._round = 0

    def __call__(self) -> Round:
        self._round += 1
        began = time.monotonic()
        with running_cluster(self._folder / f"start-{self._round}") as nodes:
            seconds = time.monotonic() - began
            time.sleep(SETTLE_SECONDS)
            largest = max(processes.resident_bytes(node.pid) for node in nodes)
        return {"seconds": seconds, "idle_megabytes": largest / MEGABYTE}


class TopicRounds:
    """A round that creates topics of one partition in a new cluster, until all of them are served."""

    def __init__(self, folder: Path, *, topics: int) -> None:
        self._folder = folder
        self._topics = topics

    def __call__(self) -> Round:
        names = [f"topic-{number}" for number in range(self._topics)]
        with running_cluster(self._folder / "topics") as nodes:
            began = time.monotonic()
            create_topics(nodes[0].address, names, partitions=1)
            seconds = time.monotonic() - began
            time.sleep(SETTLE_SECONDS)
            largest = max(processes.resident_bytes(node.pid) for node in nodes)
        return {"seconds": seconds, "idle_megabytes": largest / MEGABYTE}


PARTS: Mapping[str, Callable[[ClusterFigures], None]] = {
    "start": ClusterFigures.start,
    "metadata": ClusterFigures.metadata,
    "topics": ClusterFigures.topics,
    "shards": ClusterFigures.shards,
    "compared": ClusterFigures.compared,
}
