"""Wall clocks of brokers that jump by an hour: no broker is fenced, no transaction ends, no record is lost (G10)."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace import Admin, Consumer, Producer
from headrace.client import TopicPartition
from headrace.testing import EmbeddedCluster
from headrace.testing import cluster as testing_cluster
from tests.batch_commits.task_records import committed_values
from tests.cluster_process.test_failures import SteadyProducer, read_all
from tests.process_groups import wait_until

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

HOUR_MS = 3_600_000
RECORDS_AFTER = 300
"""Records acknowledged after a jump: several heartbeats and checks of sessions pass meanwhile."""
PROGRAM = """
import os, runpy, sys, time
jump_file, true_time_ns = sys.argv.pop(1), time.time_ns
def time_ns():
    try:
        with open(jump_file) as file:
            return true_time_ns() + int(file.read() or 0) * 1_000_000
    except FileNotFoundError:
        return true_time_ns()
time.time_ns = time_ns
runpy.run_module("headrace", run_name="__main__", alter_sys=True)
"""
"""A broker whose wall clock is ahead by the milliseconds in a file; its monotonic clock is right."""

Jump = Callable[[int, int], None]


@pytest.fixture
def jumpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[EmbeddedCluster, Jump]]:
    node_command = testing_cluster.node_command

    def with_clock(node, nodes, **options):
        python, _module_option, _module, *words = node_command(node, nodes, **options)
        assert (python, _module) == (sys.executable, "headrace")
        return [python, "-c", PROGRAM, str(tmp_path / f"jump-{node.node_id}"), *words]

    def jump(node_id: int, jump_ms: int) -> None:
        written = tmp_path / "written"
        written.write_text(str(jump_ms))
        written.rename(tmp_path / f"jump-{node_id}")

    monkeypatch.setattr(testing_cluster, "node_command", with_clock)
    with EmbeddedCluster(brokers=3) as cluster:
        yield cluster, jump


def membership(cluster: EmbeddedCluster) -> tuple[list[int], int, int]:
    with Admin(cluster.bootstrap_servers) as admin:
        quorum = admin.quorum()
        registered = admin.cluster(include_fenced=True).brokers
        return [broker.node_id for broker in registered if not broker.is_fenced], quorum.leader, quorum.leader_epoch


def timestamp_of(cluster: EmbeddedCluster, partition: TopicPartition) -> int:
    """The time at which the leader of a partition appends a record, by its own wall clock."""
    with Producer(cluster.bootstrap_servers) as producer:
        sent = producer.send(partition.topic, b"-1", partition=partition.partition).result(timeout_ms=60_000)
    with Consumer(bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        return next(record.timestamp for record in consumer if record.offset == sent.offset)


def test_wall_clocks_jump_and_nothing_else_does(jumpy: tuple[EmbeddedCluster, Jump]) -> None:
    cluster, jump = jumpy
    topic = cluster.create_topic("steady", partitions=3)
    by_broker = cluster.create_topic(
        "stamped", partitions=3, configs={"message.timestamp.type": "LogAppendTime", "retention.ms": "-1"}
    )
    before = membership(cluster)
    assert before[0] == [1, 2, 3]
    partition = TopicPartition(topic, 0)
    controller = cluster.active_controller()
    stamps = {index: timestamp_of(cluster, TopicPartition(by_broker, index)) for index in range(3)}

    def jump_all(jump_ms: int) -> None:
        """Put the clock of the controller and those of the others an hour apart, in opposite directions."""
        for node_id in cluster.node_ids:
            jump(node_id, jump_ms if node_id == controller else -jump_ms)
        count = len(steady.acknowledged)
        wait_until(lambda: len(steady.acknowledged) > count + RECORDS_AFTER, "the leader does not go on")

    with (
        Producer(cluster.bootstrap_servers, transactional_id="over-the-jump") as transactional,
        SteadyProducer(cluster.bootstrap_servers, partition).running() as steady,
    ):
        with transactional.transaction():
            transactional.send(topic, b"1", partition=1)
            jump_all(HOUR_MS)
            jump_all(-HOUR_MS)
    assert membership(cluster) == before
    for index in range(3):
        jumped_ms = timestamp_of(cluster, TopicPartition(by_broker, index)) - stamps[index]
        assert abs(jumped_ms) > HOUR_MS / 2, "the clock of the leader has jumped"
    assert read_all(cluster.bootstrap_servers, partition) == steady.acknowledged
    assert committed_values(cluster.bootstrap_servers, topic, 1, partition=1) == [b"1"]
    cluster.create_topic("after", partitions=3)
