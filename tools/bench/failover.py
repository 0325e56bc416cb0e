"""Figures of failovers: how long three brokers acknowledge nothing when one is killed, paused or stopped."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from compat.environments import Missing
from compat.java_client.steady_producer import JavaProducer
from headrace.bench.brokers import HEADRACE
from headrace.bench.figures import Measurement, Round
from headrace.bench.rounds import ProgressReport
from headrace.broker.coordinators.topic import partition_for
from headrace.client import Admin
from headrace.testing import EmbeddedCluster
from tests.cluster_process.replicated_load import QUIET, REPLICAS, TOPIC_CONFIGS, WAIT_S_MAX, ProducedRecords
from tests.process_groups import wait_until
from tools.bench.targets import Target

CONFIG = {"auto.create.topics.enable": "false"}
MANY_PARTITIONS = 200
RATE = 200
"""Records per second of the producer whose acknowledgements are watched."""
RATE_OF_MANY = 4_000
SETTLE_S = 1.0
"""Time in which the producer writes before the fault."""
NEW_CLIENT_EVERY_S = 0.5
NEW_CLIENTS_MAX = 60
SHORT_TIMEOUT_MS = 5_000
CAPACITY_S = 10.0
LOAD_SHARE = 0.8

LEADER = "kill -9 of a leader"
CONTROLLER = "kill -9 of a leader that is the active controller"
MANY = f"kill -9 of a broker, {MANY_PARTITIONS} partitions"
FOLLOWER = "kill -9 of a follower"
COORDINATOR = "kill -9 of a group's coordinator"
PAUSE_NEW = "SIGSTOP of a leader, new clients"
PAUSE_OLD = f"SIGSTOP of a leader, socket.timeout.ms={SHORT_TIMEOUT_MS}"
STOP = "clean stop of a leader, librdkafka"
STOP_JAVA = "clean stop of a leader, Java client"
STEADY = f"no fault, {LOAD_SHARE:.0%} of the most that is acknowledged"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverExtent:
    times: int
    """Faults of each kind; of pauses a third."""
    steady_s: float


FULL = FailoverExtent(times=30, steady_s=600.0)
QUICK = FailoverExtent(times=2, steady_s=20.0)

TARGETS = (
    Target(LEADER, "gap_p50_ms", True, 800),
    Target(LEADER, "gap_p95_ms", True, 2_000),
    Target(CONTROLLER, "gap_p95_ms", True, 3_000),
    Target(MANY, "gap_p95_ms", True, 3_000),
    Target(FOLLOWER, "gap_max_ms", True, 1_500),
    Target(COORDINATOR, "gap_max_ms", True, 5_000),
    Target(PAUSE_NEW, "gap_max_ms", True, 8_000),
    Target(PAUSE_OLD, "gap_max_ms", True, 12_000),
    Target(STOP, "gap_max_ms", True, 200),
    Target(STOP_JAVA, "gap_max_ms", True, 200),
    Target(STEADY, "failovers", True, 0),
)


class FailoverFigures:
    """Runs the selected parts on one cluster and collects their measurements; a part that cannot run is reported."""

    def __init__(self, folder: Path, *, extent: FailoverExtent, report: ProgressReport) -> None:
        self.measurements: list[Measurement] = []
        self.failures: dict[str, str] = {}
        self._folder = folder
        self._extent = extent
        self._report = report

    def run(self, names: Sequence[str]) -> None:
        with EmbeddedCluster(brokers=3, data_dir=str(self._folder / "failover"), config=CONFIG) as cluster:
            faults = Faults(cluster)
            for name in names:
                try:
                    PARTS[name](self, faults)
                except (Missing, AssertionError) as error:
                    self.failures[name] = str(error)
                    self._report(f"{name} does not count: {error}")

    def kills(self, faults: "Faults") -> None:
        self._repeat(LEADER, lambda: faults.kill_leader(is_controller=False))

    def controllers(self, faults: "Faults") -> None:
        self._repeat(CONTROLLER, lambda: faults.kill_leader(is_controller=True))

    def many(self, faults: "Faults") -> None:
        self._repeat(MANY, faults.kill_leader_of_many)

    def followers(self, faults: "Faults") -> None:
        self._repeat(FOLLOWER, faults.kill_follower)

    def groups(self, faults: "Faults") -> None:
        self._repeat(COORDINATOR, faults.kill_coordinator)

    def pauses(self, faults: "Faults") -> None:
        times = max(self._extent.times // 3, 1)
        self._repeat(PAUSE_NEW, faults.pause_under_new_clients, times=times)
        self._repeat(PAUSE_OLD, faults.pause_under_short_timeout, times=times)

    def stops(self, faults: "Faults") -> None:
        self._repeat(STOP, faults.stop_leader)
        self._repeat(STOP_JAVA, faults.stop_leader_of_java, client="Java client with defaults, one record at a time")

    def steady(self, faults: "Faults") -> None:
        failovers, gap_ms, rate = faults.run_steadily(self._extent.steady_s)
        self._report(f"{STEADY}: {failovers} failovers at {rate:,} records/s")
        found: Round = {"failovers": failovers, "gap_max_ms": gap_ms, "per_second": rate}
        self.measurements.append(Measurement(load=STEADY, subject=HEADRACE, client=LIBRDKAFKA, rounds=(found,)))

    def _repeat(self, load: str, gap_s: Callable[[], float], *, times: int = 0, client: str = "") -> None:
        gaps_ms: list[float] = []
        for number in range(times or self._extent.times):
            gaps_ms.append(round(1_000 * gap_s()))
            self._report(f"{load}: {number + 1}, {gaps_ms[-1]:.0f} ms")
        rounds = (*({"gap_ms": gap} for gap in gaps_ms), _summary(gaps_ms))
        measurement = Measurement(load=load, subject=HEADRACE, client=client or LIBRDKAFKA, rounds=rounds)
        self.measurements.append(measurement)


LIBRDKAFKA = f"librdkafka with defaults, {RATE} records/s"

PARTS: Mapping[str, Callable[[FailoverFigures, "Faults"], None]] = {
    "kills": FailoverFigures.kills,
    "controllers": FailoverFigures.controllers,
    "many": FailoverFigures.many,
    "followers": FailoverFigures.followers,
    "groups": FailoverFigures.groups,
    "pauses": FailoverFigures.pauses,
    "stops": FailoverFigures.stops,
    "steady": FailoverFigures.steady,
}


def _summary(gaps_ms: Sequence[float]) -> Round:
    ordered = sorted(gaps_ms)
    return {
        "gap_p50_ms": _share(ordered, 50),
        "gap_p95_ms": _share(ordered, 95),
        "gap_max_ms": ordered[-1],
    }


def _share(ordered: Sequence[float], percent: int) -> float:
    """Return the value that this share of the values does not exceed."""
    return ordered[-(-len(ordered) * percent // 100) - 1]


class Faults:
    """Each method inflicts one fault on a cluster whose replicas are in sync and returns the gap in seconds."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    def kill_leader(self, *, is_controller: bool) -> float:
        controller = self._cluster.active_controller()
        topic = self._topic(REPLICAS)
        leaders = [self._cluster.leader(topic, partition) for partition in range(REPLICAS)]
        partition = next(place for place, node_id in enumerate(leaders) if (node_id == controller) == is_controller)
        return self._gap_of_kill(topic, [partition], leaders[partition])

    def kill_leader_of_many(self) -> float:
        """Until every partition of the victim has acknowledged again."""
        topic = self._topic(MANY_PARTITIONS)
        victim = self._cluster.leader(topic, 0)
        return self._gap_of_kill(topic, range(MANY_PARTITIONS), victim, rate=RATE_OF_MANY)

    def kill_follower(self) -> float:
        topic = self._topic(1)
        leader = self._cluster.leader(topic, 0)
        victim = next(node_id for node_id in self._cluster.node_ids if node_id != leader)
        return self._gap_of_kill(topic, [0], victim)

    def _gap_of_kill(self, topic: str, partitions: Sequence[int], victim: int, *, rate: int = RATE) -> float:
        with self._produced(topic, partitions, rate=rate) as produced:
            self._cluster.kill(victim)
            gap_s = _gap(produced)
        self._bring_back(victim)
        return gap_s

    def kill_coordinator(self) -> float:
        """Until an offset is committed."""
        topic = self._topic(REPLICAS)
        group = f"{topic}-group"
        with self._consumer(topic, group) as consumer:
            _commit(consumer, topic)
            offsets = self._described("__consumer_offsets")
            victim = offsets[partition_for(group, len(offsets))]
            self._cluster.kill(victim)
            began_s = time.monotonic()
            _commit(consumer, topic)
            gap_s = time.monotonic() - began_s
        self._bring_back(victim)
        return gap_s

    def pause_under_new_clients(self) -> float:
        """Until a client that began after the pause has written."""
        topic = self._topic(1)
        victim = self._cluster.leader(topic, 0)
        self._cluster.pause(victim)
        began_s = time.monotonic()
        written = threading.Event()
        producers: list[Producer] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                written.set()

        try:
            while not written.is_set():
                assert len(producers) < NEW_CLIENTS_MAX, "no new client could write"
                producer = Producer({"bootstrap.servers": self._cluster.bootstrap_servers, **QUIET})
                producer.produce(topic, b"new", partition=0, on_delivery=delivered)
                producers.append(producer)
                until_s = time.monotonic() + NEW_CLIENT_EVERY_S
                while not written.is_set() and time.monotonic() < until_s:
                    for each in producers:
                        each.poll(0.005)
            gap_s = time.monotonic() - began_s
        finally:
            self._cluster.resume(victim)
        for producer in producers:
            producer.flush(WAIT_S_MAX)
        self._wait_until_in_sync()
        return gap_s

    def pause_under_short_timeout(self) -> float:
        topic = self._topic(1)
        victim = self._cluster.leader(topic, 0)
        with self._produced(topic, [0], settings={"socket.timeout.ms": SHORT_TIMEOUT_MS}) as produced:
            self._cluster.pause(victim)
            try:
                gap_s = _gap(produced)
            finally:
                self._cluster.resume(victim)
        self._wait_until_in_sync()
        return gap_s

    def stop_leader(self) -> float:
        topic = self._topic(1)
        victim = self._cluster.leader(topic, 0)
        with self._produced(topic, [0]) as produced:
            self._cluster.shut_down(victim)
            gap_s = _gap(produced)
        self._bring_back(victim)
        return gap_s

    def stop_leader_of_java(self) -> float:
        topic = self._topic(1)
        victim = self._cluster.leader(topic, 0)
        producer = JavaProducer(self._cluster.bootstrap_servers, topic, 0)
        time.sleep(SETTLE_S)
        producer.take_longest_gap_ms()
        self._cluster.shut_down(victim)
        time.sleep(SETTLE_S)
        gap_s = producer.take_longest_gap_ms() / 1_000
        producer.stop()
        self._bring_back(victim)
        return gap_s

    def run_steadily(self, seconds: float) -> tuple[int, int, int]:
        """Return how many partitions changed their leader, the longest gap in ms, and the rate."""
        topic = self._topic(2 * REPLICAS)
        partitions = range(2 * REPLICAS)
        with self._produced(topic, partitions, rate=1 << 20) as produced:
            before = sum(produced.acknowledged.values())
            time.sleep(CAPACITY_S)
            capacity = (sum(produced.acknowledged.values()) - before) / CAPACITY_S
        rate = int(LOAD_SHARE * capacity)
        before_epochs = self._epochs(topic)
        with self._produced(topic, partitions, rate=rate) as produced:
            produced.forget_gaps()
            time.sleep(seconds)
            gap_ms = round(1_000 * produced.longest_gap_s)
        after = self._epochs(topic)
        return sum(now != then for now, then in zip(after, before_epochs, strict=True)), gap_ms, rate

    # Parts of them

    def _topic(self, partitions: int) -> str:
        name = self._cluster.unused_topic_name("failover")
        topic = self._cluster.create_topic(name, partitions=partitions, replicas=REPLICAS, configs=TOPIC_CONFIGS)
        self._wait_until_in_sync()
        return topic

    @contextmanager
    def _produced(
        self, topic: str, partitions: Sequence[int], *, rate: int = RATE, settings: Mapping[str, Any] | None = None
    ) -> Iterator[ProducedRecords]:
        """Run a producer; the fault follows when it has written for a while, and no error may reach it."""
        produced = ProducedRecords(
            self._cluster.bootstrap_servers, topic, partitions=partitions, rate=rate, settings=settings or {}
        )
        stop = threading.Event()
        thread = threading.Thread(target=produced.run, args=(stop,))
        thread.start()
        try:
            wait_until(lambda: min(produced.acknowledged.values()), "nothing was acknowledged", WAIT_S_MAX)
            time.sleep(SETTLE_S)
            produced.forget_gaps()
            yield produced
        finally:
            stop.set()
            thread.join()
        assert not produced.errors, f"errors reached the application: {produced.errors[:3]}"

    @contextmanager
    def _consumer(self, topic: str, group: str) -> Iterator[Consumer]:
        consumer = Consumer({"bootstrap.servers": self._cluster.bootstrap_servers, "group.id": group, **QUIET})
        consumer.subscribe([topic])
        try:
            wait_until(lambda: consumer.poll(0.1) or consumer.assignment(), "no partition is assigned", WAIT_S_MAX)
            yield consumer
        finally:
            consumer.close()

    def _described(self, topic: str) -> list[int]:
        """Return the leader of each partition."""
        with Admin(self._cluster.bootstrap_servers) as admin:
            (described,) = admin.topics([topic])
        return [partition.leader for partition in described.partitions]

    def _epochs(self, topic: str) -> list[int]:
        with Admin(self._cluster.bootstrap_servers) as admin:
            (described,) = admin.topics([topic])
        return [partition.leader_epoch for partition in described.partitions]

    def _bring_back(self, victim: int) -> None:
        self._cluster.restart(victim)
        self._wait_until_in_sync()

    def _wait_until_in_sync(self) -> None:
        def all_in_sync() -> bool:
            with Admin(self._cluster.bootstrap_servers) as admin:
                return all(len(one.isr) == len(one.replicas) for topic in admin.topics() for one in topic.partitions)

        wait_until(all_in_sync, "the replicas did not become in sync again", WAIT_S_MAX)


def _gap(produced: ProducedRecords) -> float:
    """Wait until every partition acknowledges again, and return the longest gap."""
    time.sleep(SETTLE_S)
    target = {partition: count + 1 for partition, count in produced.acknowledged.items()}
    wait_until(
        lambda: all(produced.acknowledged[partition] >= count for partition, count in target.items()),
        "the producer does not continue",
        WAIT_S_MAX,
    )
    return produced.longest_gap_s


def _commit(consumer: Consumer, topic: str) -> None:
    """Commit as an application does that tries again while the coordinator moves."""
    deadline_s = time.monotonic() + WAIT_S_MAX
    while True:
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
            return
        except KafkaException:
            assert time.monotonic() < deadline_s, "the offset was not committed"
