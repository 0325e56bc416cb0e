"""The active controller killed under load: how soon topics can be created again, and whether other leaders go on."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple

from headrace import Admin, Consumer, Producer
from headrace.client import LATEST, NewTopic, TopicPartition
from headrace.client.errors import ClientError
from headrace.testing import EmbeddedCluster
from tests.process_groups import wait_until

PARTITIONS = 6
WAIT_S_MAX = 60


class ControllerKill(NamedTuple):
    created_again_s: float
    """Time from the kill until a topic was created."""
    longest_gap_s: float
    """Longest time between two acknowledgements of a leader on another broker."""
    acknowledged: int
    """Records of that leader, all of which were found in their order."""


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


def kill_active_controller(cluster: EmbeddedCluster) -> ControllerKill:
    """Kill the active controller while a leader on another broker gets records; start it again at the end."""
    victim = cluster.active_controller()
    survivor = next(node_id for node_id in cluster.node_ids if node_id != victim)
    address = cluster.address(survivor)
    topic = cluster.create_topic(cluster.unused_topic_name("kept"), partitions=PARTITIONS)
    places = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    partition = next(place for place in places if cluster.leader(*place) == survivor)
    with SteadyProducer(address, partition).running() as producer:
        cluster.kill(victim)
        created_again_s = create_topic_patiently(address, cluster.unused_topic_name("after-the-kill"))
    assert read_all(address, partition) == producer.acknowledged
    cluster.restart(victim)
    return ControllerKill(created_again_s, producer.longest_gap_s, len(producer.acknowledged))
