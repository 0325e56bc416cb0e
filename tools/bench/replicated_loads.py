"""Loads on topics with three replicas, whose partitions are led by all brokers of a cluster.

Every round has new topics. After it, the files of each replica are read: every checksum must be right, every offset
must follow the one before, and all replicas must end where the acknowledgements say.
"""

import mmap
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from headrace.bench import librdkafka
from headrace.bench.errors import BenchError, RunRejected
from headrace.bench.figures import Round
from headrace.bench.histograms import histogram_of, percentile_us
from headrace.bench.loads import ProduceLoad
from headrace.bench.produce import produce_round
from headrace.bench.replay import ReplayClient, ReplayReport
from headrace.bench.requests import ReplayFrames, produce_frames
from headrace.bench.shards import together
from headrace.bench.topics import (
    ADMIN_TIMEOUT_MS,
    LOOK_AGAIN_SECONDS,
    delete_topics,
    producer_identities,
    wait_until_served,
)
from headrace.client import Admin, NewTopic
from headrace.wire.records.batch_walk import WalkBounds, walk_batches
from tools.bench.commits import check_commits, commit_frames, wait_for_coordinators
from tools.bench.measured_clusters import MeasuredCluster

MIN_IN_SYNC = "2"
REPLICAS_SECONDS_MAX = 60
"""Time in which all replicas must have what was acknowledged."""
COMMITS_APART = 1_000
"""Distance of the offsets of two rounds."""


class _Topics:
    """Creates the topics of each round, and removes them after it."""

    def __init__(self, cluster: MeasuredCluster, prefix: str) -> None:
        self._cluster = cluster
        self._prefix = prefix
        self._round = 0

    @contextmanager
    def led_by_all(self, partitions: int) -> Iterator[str]:
        """Create one topic whose partitions are led by the brokers in turn."""
        node_ids = list(self._cluster.brokers)
        with self._created({"all": [_rotated(node_ids, index) for index in range(partitions)]}) as names:
            yield names[0]

    @contextmanager
    def led_by_each(self, partitions: int) -> Iterator[list[str]]:
        """Create a topic for each broker, which leads all of its partitions."""
        node_ids = list(self._cluster.brokers)
        placed = {str(node_id): [_rotated(node_ids, place)] * partitions for place, node_id in enumerate(node_ids)}
        with self._created(placed) as names:
            yield names

    @contextmanager
    def _created(self, placed: dict[str, list[list[int]]]) -> Iterator[list[str]]:
        self._round += 1
        prefix = f"{self._prefix}-{self._round}-"
        topics = [
            NewTopic(
                f"{prefix}{name}",
                assignments=dict(enumerate(replicas)),
                configs={"min.insync.replicas": MIN_IN_SYNC},
            )
            for name, replicas in placed.items()
        ]
        with Admin(self._cluster.address, timeout_ms=ADMIN_TIMEOUT_MS) as admin:
            for name, outcome in admin.create_topics(topics).items():
                if outcome.error:
                    raise BenchError(f'topic "{name}" cannot be created: {outcome.message or outcome.error.name}')
        for topic, replicas in zip(topics, placed.values(), strict=True):
            wait_until_served(self._cluster.address, [topic.name], partitions=len(replicas))
        try:
            yield [topic.name for topic in topics]
        finally:
            delete_topics(self._cluster.address, prefix)


def _rotated(node_ids: Sequence[int], places: int) -> list[int]:
    first = places % len(node_ids)
    return [*node_ids[first:], *node_ids[:first]]


class ReplicatedProduceRounds:
    """Prepared batches, from one process of the replay client for each broker.

    `load` has the connections and partitions of each broker. With `interval_us` each connection sends at that interval.
    """

    def __init__(
        self,
        cluster: MeasuredCluster,
        client: ReplayClient,
        load: ProduceLoad,
        *,
        topic: str,
        interval_us: int = 0,
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._load = load
        self._topics = _Topics(cluster, topic)
        self._interval_us = interval_us

    def __call__(self) -> Round:
        load, cluster = self._load, self._cluster
        with self._topics.led_by_each(load.partitions) as topics:
            frames = [self._frames(topic) for topic in topics]
            before = cluster.cpu_seconds()
            with ThreadPoolExecutor(len(topics)) as pool:
                addresses = [broker.address for broker in cluster.brokers.values()]
                reports = list(pool.map(self._send, addresses, frames))
            after = cluster.cpu_seconds()
            for topic, report in zip(topics, reports, strict=True):
                check_replicas(cluster, topic, load.partitions, records=report.requests * load.records)
        report = together(reports)
        return produce_round(report, report.requests * frames[0].batch_bytes, after - before)

    def _frames(self, topic: str) -> ReplayFrames:
        load = self._load
        return produce_frames(
            topic,
            producer_identities(self._cluster.address, load.connections),
            partitions=load.partitions,
            records=load.records,
            record_bytes=load.record_bytes,
            acks=load.acks,
        )

    def _send(self, address: str, frames: ReplayFrames) -> ReplayReport:
        load = self._load
        return self._client.exchange(
            address,
            frames,
            depth=load.depth,
            seconds=load.seconds,
            requests_max=load.bytes_max // frames.batch_bytes // len(self._cluster.brokers),
            interval_us=self._interval_us,
        )


class ReplicatedMessageRounds:
    """Messages of one librdkafka producer, which builds the batches and finds the leaders."""

    def __init__(self, cluster: MeasuredCluster, load: ProduceLoad, *, topic: str) -> None:
        self._cluster = cluster
        self._load = load
        self._topics = _Topics(cluster, topic)

    def __call__(self) -> Round:
        load, cluster = self._load, self._cluster
        with self._topics.led_by_all(load.partitions) as topic:
            before, client_before = cluster.cpu_seconds(), time.process_time()
            sent = librdkafka.produce(
                cluster.address,
                topic,
                partitions=load.partitions,
                message_bytes=load.record_bytes,
                acks=str(load.acks),
                seconds=load.seconds,
                bytes_max=load.bytes_max,
            )
            after, client_after = cluster.cpu_seconds(), time.process_time()
            check_replicas(cluster, topic, load.partitions, records=sent.messages)
        gigabytes = sent.messages * load.record_bytes / 1e9
        return {
            "megabytes_per_second": gigabytes * 1e3 / sent.seconds,
            "cpu_seconds_per_gigabyte": (after - before) / gigabytes,
            "client_cpu_seconds_per_gigabyte": (client_after - client_before) / gigabytes,
        }


class ReplicatedSingleRounds:
    """The time from produce to acknowledgement with acks=all, one message at a time, by librdkafka."""

    def __init__(self, cluster: MeasuredCluster, *, topic: str, count: int, message_bytes: int) -> None:
        self._cluster = cluster
        self._topics = _Topics(cluster, topic)
        self._count = count
        self._message_bytes = message_bytes

    def __call__(self) -> Round:
        with self._topics.led_by_all(1) as topic:
            times = librdkafka.one_at_a_time(
                self._cluster.address, topic, count=self._count, message_bytes=self._message_bytes
            )
            check_replicas(self._cluster, topic, 1, records=self._count + 1)
        histogram = histogram_of(times)
        return {"p50_us": percentile_us(histogram, 0.5), "p99_us": percentile_us(histogram, 0.99)}


class ReplicatedCommitRounds:
    """Offset commits of groups whose coordinators are on all brokers: one process of the client for each broker."""

    def __init__(
        self, cluster: MeasuredCluster, client: ReplayClient, *, topic: str, groups: int, seconds: float
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._topic = topic
        self._groups = [f"{topic}-{number:05}" for number in range(groups)]
        self._seconds = seconds
        self._at: dict[str, list[str]] = {}
        """The groups by the address of their coordinator."""
        self._round = 0

    def __call__(self) -> Round:
        self._round += 1
        if self._round == 1:
            self._prepare()
        first = self._round * COMMITS_APART
        offsets = {group: first + number for number, group in enumerate(self._groups)}
        shares = [{group: offsets[group] for group in groups} for groups in self._at.values()]
        before = self._cluster.cpu_seconds()
        with ThreadPoolExecutor(len(shares)) as pool:
            reports = list(pool.map(self._commit, self._at, shares))
        after = self._cluster.cpu_seconds()
        for address, share in zip(self._at, shares, strict=True):
            check_commits(address, self._topic, share)
        report = together(reports)
        return {
            "requests_per_second": report.requests / report.seconds,
            "cpu_us_per_request": (after - before) / report.requests * 1e6,
            "p50_us": report.p50_us(),
            "p99_us": report.p99_us(),
        }

    def _prepare(self) -> None:
        with Admin(self._cluster.address, timeout_ms=ADMIN_TIMEOUT_MS) as admin:
            for outcome in admin.create_topics([NewTopic(self._topic, 1)]).values():
                outcome.check("the topic of the offsets")
        wait_until_served(self._cluster.address, [self._topic], partitions=1)
        for group, address in wait_for_coordinators(self._cluster.address, self._groups).items():
            self._at.setdefault(address, []).append(group)

    def _commit(self, address: str, offsets: dict[str, int]) -> ReplayReport:
        return self._client.exchange(address, commit_frames(self._topic, offsets), depth=1, seconds=self._seconds)


# The check of all replicas


def check_replicas(cluster: MeasuredCluster, topic: str, partitions: int, *, records: int) -> None:
    """Raise RunRejected unless every replica has all records, in one sequence, with the checksums of their batches."""
    deadline = time.monotonic() + REPLICAS_SECONDS_MAX
    while True:
        ends = {
            node_id: sum(log_end(folder / f"{topic}-{index}") for index in range(partitions))
            for node_id, folder in cluster.folders().items()
        }
        if set(ends.values()) == {records}:
            return
        if time.monotonic() > deadline:
            raise RunRejected(f"{records} records were acknowledged, but the brokers have {ends}")
        time.sleep(LOOK_AGAIN_SECONDS)


def log_end(folder: Path) -> int:
    """Return the offset after the sound batches at the beginning of a partition's log."""
    next_offset = 0
    for path in sorted(folder.glob("*.log")):
        if not path.stat().st_size:
            continue
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            with memoryview(content) as batches:
                places, noted, _end = walk_batches(batches, WalkBounds(next_offset, 0))
            del noted
            if places:
                next_offset = places[-1][1] + 1
    return next_offset
