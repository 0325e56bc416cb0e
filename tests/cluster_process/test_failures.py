"""Brokers and controllers that are killed, hang and return, under real clients."""

import pytest

from headrace import Admin, Consumer, Producer
from headrace.client import NewTopic, TopicPartition
from headrace.client.errors import ClientError
from headrace.operations.broker_checks import check_broker
from headrace.operations.findings import Level
from headrace.testing import EmbeddedCluster
from tests.cluster_process.controller_kills import (
    WAIT_S_MAX,
    SteadyProducer,
    create_topic_patiently,
    kill_active_controller,
    read_all,
)
from tests.process_groups import wait_until

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

KILLS = 5
CREATED_AGAIN_S_MAX = 3.0
GAP_S_MAX = 1.0
"""Longest time between two acknowledgements of a leader that is not affected; a busy machine takes its share."""


def test_topics_are_created_again_soon_after_the_active_controller_was_killed(cluster: EmbeddedCluster) -> None:
    """Leaders on other brokers acknowledge all the time."""
    kills = [kill_active_controller(cluster) for _ in range(KILLS)]
    assert max(kill.longest_gap_s for kill in kills) < GAP_S_MAX
    assert max(kill.created_again_s for kill in kills) < CREATED_AGAIN_S_MAX, kills


def fenced_brokers(admin: Admin) -> list[int]:
    return [one.node_id for one in admin.cluster(include_fenced=True).brokers if one.is_fenced]


def test_a_killed_broker_returns_with_its_records(cluster: EmbeddedCluster, topic: str) -> None:
    victim = next(node_id for node_id in cluster.node_ids if node_id != cluster.active_controller())
    partition = next(TopicPartition(topic, index) for index in range(6) if cluster.leader(topic, index) == victim)
    with SteadyProducer(cluster.bootstrap_servers, partition).running() as producer:
        cluster.kill(victim)
        with Admin(cluster.bootstrap_servers) as admin:
            wait_until(lambda: admin.topics([topic])[0].partitions[partition.partition].leader == -1, "it still leads")
            wait_until(lambda: fenced_brokers(admin) == [victim], "it is not fenced")  # a lost link comes before
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


def test_without_a_majority_leaders_continue_and_changes_are_refused(cluster: EmbeddedCluster, topic: str) -> None:
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
        found = check_broker(cluster.address(survivor), expected=True, timeout_ms=10_000)
        (controller,) = (finding for finding in found if finding.about == "controller")
        assert controller.level is Level.PROBLEM
        assert "since" in controller.seen
        assert "a majority of them must run" in controller.advice
        wait_until(lambda: len(producer.acknowledged) > before + 20, "the leader does not go on")
        cluster.restart(*victims)
    assert read_all(cluster.bootstrap_servers, partition) == producer.acknowledged
    create_topic_patiently(cluster.bootstrap_servers, "again")
