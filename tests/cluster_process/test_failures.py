"""Brokers and controllers that are killed, hang and return, under real clients."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from headrace import Admin, Consumer, Producer
from headrace.client import LATEST, NewTopic, TopicPartition
from headrace.client.errors import ClientError
from headrace.testing import EmbeddedCluster
from tests.process_groups import wait_until

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

KILLS = 5
CREATED_AGAIN_S_MAX = 3.0
WAIT_S_MAX = 60
GAP_S_MAX = 1.0
"""Longest time between two acknowledgements of a leader that is not affected; a busy machine takes its share."""


class SteadyProducer:
    """Sends a numbered record at a time to one partition and notes what was acknowledged, and when."""

    def __init__(self, bootstrap: str, partition: TopicPartition) -> None:
        self.acknowledged: list[int] = []
        self.longest_gap_s = 0.0
        self._bootstrap = bootstrap
        self._partition = partition
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        with Producer(self._bootstrap, enable_idempotence=False) as producer:
            last = time.monotonic()
            for number in count():
                if self._stop.is_set():
                    return
                topic, partition = self._partition
                producer.send(topic, b"%d" % number, partition=partition).result(timeout_ms=WAIT_S_MAX * 1000)
                self.acknowledged.append(number)
                now = time.monotonic()
                self.longest_gap_s = max(self.longest_gap_s, now - last)
                last = now
                time.sleep(0.005)

    @contextmanager
    def running(self) -> Iterator["SteadyProducer"]:
        self._thread.start()
        try:
            wait_until(lambda: self.acknowledged, "nothing was acknowledged")
            yield self
        finally:
            self._stop.set()
            self._thread.join(WAIT_S_MAX)


def read_all(bootstrap: str, partition: TopicPartition) -> list[int]:
    with Admin(bootstrap) as admin:
        end = admin.offsets({partition: LATEST})[partition].offset
    found: list[int] = []
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        for record in consumer:
            assert record.value is not None
            found.append(int(record.value))
            if record.offset == end - 1:
                return found
    return found


def create_topic_patiently(bootstrap: str, name: str, *, seconds_max: float = WAIT_S_MAX) -> float:
    """Create a topic as a client does that retries; return how long it took."""
    began = time.monotonic()
    while True:
        try:
            with Admin(bootstrap, timeout_ms=5_000) as admin:
                outcome = admin.create_topics([NewTopic(name, partitions=3)])[name]
            if not outcome.error or outcome.error.name == "TOPIC_ALREADY_EXISTS":
                return time.monotonic() - began
            failure = outcome.message or outcome.error.name
        except ClientError as error:
            failure = str(error)
        assert time.monotonic() - began < seconds_max, failure
        time.sleep(0.02)


def test_topics_are_created_again_soon_after_the_active_controller_was_killed(cluster: EmbeddedCluster) -> None:
    """Leaders on other brokers acknowledge all the time."""
    took: list[float] = []
    for number in range(KILLS):
        victim = cluster.active_controller()
        survivor = next(node_id for node_id in cluster.node_ids if node_id != victim)
        topic = cluster.create_topic(cluster.unused_topic_name("kept"), partitions=6)
        partition = next(TopicPartition(topic, index) for index in range(6) if cluster.leader(topic, index) == survivor)
        with SteadyProducer(cluster.address(survivor), partition).running() as producer:
            cluster.kill(victim)
            took.append(create_topic_patiently(cluster.address(survivor), f"after-kill-{number}"))
        assert producer.longest_gap_s < GAP_S_MAX
        assert read_all(cluster.address(survivor), partition) == producer.acknowledged
        cluster.restart(victim)
    assert sorted(took)[-1] < CREATED_AGAIN_S_MAX, took


def test_a_killed_broker_returns_with_its_records(cluster: EmbeddedCluster, topic: str) -> None:
    victim = next(node_id for node_id in cluster.node_ids if node_id != cluster.active_controller())
    partition = next(TopicPartition(topic, index) for index in range(6) if cluster.leader(topic, index) == victim)
    with SteadyProducer(cluster.bootstrap_servers, partition).running() as producer:
        cluster.kill(victim)
        with Admin(cluster.bootstrap_servers) as admin:
            wait_until(lambda: admin.topics([topic])[0].partitions[partition.partition].leader == -1, "it still leads")
            (fenced,) = (one for one in admin.cluster(include_fenced=True).brokers if one.is_fenced)
            assert fenced.node_id == victim
        before = len(producer.acknowledged)
        cluster.restart(victim)
        wait_until(lambda: len(producer.acknowledged) > before + 20, "it does not go on")
    assert read_all(cluster.bootstrap_servers, partition) == producer.acknowledged


def test_a_broker_that_hangs_is_fenced_and_returns(cluster: EmbeddedCluster, topic: str) -> None:
    victim = next(node_id for node_id in cluster.node_ids if node_id != cluster.active_controller())
    others = ",".join(cluster.address(node_id) for node_id in cluster.node_ids if node_id != victim)
    cluster.pause(victim)
    try:
        with Admin(others) as admin:
            wait_until(lambda: victim not in {one.node_id for one in admin.cluster().brokers}, "it is not fenced")
    finally:
        cluster.resume(victim)
    with Admin(others) as admin:
        wait_until(lambda: victim in {one.node_id for one in admin.cluster().brokers}, "it does not return")
        wait_until(lambda: all(p.leader >= 0 for p in admin.topics([topic])[0].partitions), "a partition has no leader")


def test_a_topic_that_was_recreated_while_a_broker_was_down_has_no_old_record(cluster: EmbeddedCluster) -> None:
    topic = cluster.create_topic(cluster.unused_topic_name("recreated"), partitions=6)
    send_to_all_partitions(cluster, topic, b"old")
    victim = next(node_id for node_id in cluster.node_ids if node_id != cluster.active_controller())
    cluster.kill(victim)
    with Admin(cluster.bootstrap_servers) as admin:  # until then, the new topic gets partitions on it
        wait_until(lambda: victim not in {one.node_id for one in admin.cluster().brokers}, "it is not fenced")
    cluster.delete_topic(topic)
    cluster.create_topic(topic, partitions=6)
    cluster.restart(victim)
    send_to_all_partitions(cluster, topic, b"new")
    assert values(cluster, topic) == [b"new"] * 6
    cluster.delete_topic(topic)
    cluster.create_topic(topic, partitions=6)  # with the same partitions on the victim as at first
    assert victim in {cluster.leader(topic, index) for index in range(6)}
    send_to_all_partitions(cluster, topic, b"newest")
    assert values(cluster, topic) == [b"newest"] * 6


def send_to_all_partitions(cluster: EmbeddedCluster, topic: str, value: bytes) -> None:
    with Producer(cluster.bootstrap_servers) as producer:
        for index in range(6):
            sent = producer.send(topic, value, partition=index).result(timeout_ms=WAIT_S_MAX * 1000)
            assert sent.offset == 0


def values(cluster: EmbeddedCluster, topic: str) -> list[bytes | None]:
    with Consumer(topic, bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        return [next(consumer).value for _ in range(6)]


def test_without_a_majority_leaders_go_on_and_changes_are_refused(cluster: EmbeddedCluster, topic: str) -> None:
    survivor, *victims = cluster.node_ids
    partition = next(TopicPartition(topic, index) for index in range(6) if cluster.leader(topic, index) == survivor)
    with SteadyProducer(cluster.address(survivor), partition).running() as producer:
        for victim in victims:
            cluster.kill(victim)
        before = len(producer.acknowledged)
        with Admin(cluster.address(survivor), timeout_ms=10_000) as admin:
            with pytest.raises(ClientError):
                admin.create_topics([NewTopic("never")])["never"].check("never")
            with pytest.raises(ClientError):
                admin.quorum()
        wait_until(lambda: len(producer.acknowledged) > before + 20, "the leader does not go on")
        cluster.restart(*victims)
    assert read_all(cluster.bootstrap_servers, partition) == producer.acknowledged
    create_topic_patiently(cluster.bootstrap_servers, "again")
