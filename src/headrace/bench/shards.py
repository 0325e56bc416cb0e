"""Produce loads on brokers with different numbers of shards: the same connections, spread over all shards."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from headrace.bench.brokers import HeadraceBroker
from headrace.bench.errors import BenchError
from headrace.bench.figures import Measurement, Round
from headrace.bench.histograms import merged
from headrace.bench.loads import ProduceLoad
from headrace.bench.produce import check_arrival, produce_round, send
from headrace.bench.replay import ReplayClient, ReplayReport
from headrace.bench.requests import ReplayFrames, produce_frames
from headrace.bench.topics import ADMIN_TIMEOUT_MS, producer_identities, wait_until_served
from headrace.client import Admin, NewTopic

PARTITIONS_PER_GENERATOR = 4
RATE = "requests_per_second"


class ShardedBroker(HeadraceBroker):
    """A broker with a number of shards; its CPU and memory are those of all shards and their parent."""

    def __init__(self, folder: Path, shards: int) -> None:
        super().__init__(folder, {"headrace.controllers.target": "1"}, shards_name(shards))
        self.options = ("--shards", str(shards))


def shards_name(count: int) -> str:
    return "1 shard" if count == 1 else f"{count} shards"


def shard_counts(shards_max: int) -> list[int]:
    """Return the numbers of shards to measure: 1, 2, 4 and so on, and the largest."""
    counts = [1]
    while counts[-1] * 2 < shards_max:
        counts.append(counts[-1] * 2)
    return [*counts, shards_max] if shards_max > 1 else counts


class ShardsProduceRounds:
    """Rounds of a load on a sharded broker, each on new topics.

    Every generator is a process of its own with a share of the connections and a topic whose partitions one shard
    leads. The number of generators is the same for any number of shards.
    """

    def __init__(
        self, broker: ShardedBroker, client: ReplayClient, load: ProduceLoad, *, topic: str, generators: int
    ) -> None:
        self._broker = broker
        self._client = client
        self._load = replace(
            load,
            connections=max(1, load.connections // generators),
            partitions=PARTITIONS_PER_GENERATOR,
            bytes_max=load.bytes_max // generators,
        )
        self._topic = topic
        self._generators = generators
        self._round = 0

    def __call__(self) -> Round:
        self._round += 1
        topics = [f"{self._topic}-{self._round}-{number}" for number in range(self._generators)]
        addresses = create_topics_by_shard(self._broker.address, topics)
        frames = [self._frames(topic) for topic in topics]
        before = self._broker.cpu_seconds()
        with ThreadPoolExecutor(self._generators) as pool:
            reports = list(pool.map(self._send, addresses, frames))
        after = self._broker.cpu_seconds()
        for topic, address, report in zip(topics, addresses, reports, strict=True):
            check_arrival(self._client, address, topic, self._load, report)
        report = together(reports)
        cpu = None if before is None or after is None else after - before
        return produce_round(report, report.requests * frames[0].batch_bytes, cpu)

    def _send(self, address: str, frames: ReplayFrames) -> ReplayReport:
        return send(self._client, address, frames, self._load)

    def _frames(self, topic: str) -> ReplayFrames:
        return produce_frames(
            topic,
            producer_identities(self._broker.address, self._load.connections),
            partitions=self._load.partitions,
            records=self._load.records,
            record_bytes=self._load.record_bytes,
            acks=self._load.acks,
        )


def create_topics_by_shard(bootstrap: str, topics: Sequence[str]) -> list[str]:
    """Create topics whose partitions are all led by one shard, with the shards in turn; return the shard of each."""
    with Admin(bootstrap, timeout_ms=ADMIN_TIMEOUT_MS) as admin:
        shards = admin.cluster().brokers
        owners = [shards[number % len(shards)] for number in range(len(topics))]
        outcomes = admin.create_topics(
            [
                NewTopic(name, assignments={index: [owner.node_id] for index in range(PARTITIONS_PER_GENERATOR)})
                for name, owner in zip(topics, owners, strict=True)
            ]
        )
    for name, outcome in outcomes.items():
        if outcome.error:
            raise BenchError(f'topic "{name}" cannot be created: {outcome.message or outcome.error.name}')
    wait_until_served(bootstrap, topics, partitions=PARTITIONS_PER_GENERATOR)
    return [f"{owner.host}:{owner.port}" for owner in owners]


def together(reports: Sequence[ReplayReport]) -> ReplayReport:
    """Return the report of clients that ran side by side."""
    return ReplayReport(
        requests=sum(report.requests for report in reports),
        seconds=max(report.seconds for report in reports),
        bytes=sum(report.bytes for report in reports),
        records=sum(report.records for report in reports),
        client_cpu_seconds=sum(report.client_cpu_seconds for report in reports),
        histogram=merged(report.histogram for report in reports),
    )


def scaling_lines(measurements: Sequence[Measurement]) -> list[str]:
    """Return for each load the rate of each number of shards in relation to one shard."""
    lines = []
    for load in dict.fromkeys(one.load for one in measurements):
        rates = {one.subject: one.median(RATE) for one in measurements if one.load == load}
        single = rates.pop(shards_name(1))
        times = ", ".join(f"{subject} {rate / single:.2f}" for subject, rate in rates.items())
        lines.append(f"{load}: times the rate of one shard: {times}")
    return lines
