"""Replicas that lose their folder or miss changes, and requests that clients may not send."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from headrace import Admin
from headrace.bench.links import BenchConnection
from headrace.client import EARLIEST, LATEST, TopicPartition
from headrace.client.errors import ClientError
from headrace.model.errors import ErrorCode
from headrace.testing import EmbeddedCluster
from headrace.wire.messages import fetch
from tests.cluster_process.test_failover import QUIET, read_all, send, wait_until_in_sync
from tests.process_groups import LOOK_S, wait_until

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

SESSION_MS = 60_000
"""Longer than a test: brokers that a test pauses stay in sync."""
FETCH_VERSION = 11
WAIT_S_MAX = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replicas")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[EmbeddedCluster]:
    config = {
        "auto.create.topics.enable": "false",
        "broker.session.timeout.ms": str(SESSION_MS),
        "replica.lag.time.max.ms": str(SESSION_MS),
    }
    with EmbeddedCluster(brokers=3, data_dir=str(folder), config=config) as running:
        yield running


@pytest.fixture
def topic(cluster: EmbeddedCluster, request: pytest.FixtureRequest) -> str:
    return new_topic(cluster, cluster.unused_topic_name(request.node.name))


def new_topic(cluster: EmbeddedCluster, name: str) -> str:
    return cluster.create_topic(name, replicas=3, configs={"min.insync.replicas": "2"})


def followers(cluster: EmbeddedCluster, topic: str) -> list[int]:
    return [node_id for node_id in cluster.node_ids if node_id != cluster.leader(topic, 0)]


def offsets(cluster: EmbeddedCluster, topic: str) -> tuple[int, int]:
    """Return where the log begins and its high watermark; the leader may just have been killed."""
    place = TopicPartition(topic, 0)
    deadline_s = time.monotonic() + WAIT_S_MAX
    while True:
        try:
            with Admin(cluster.bootstrap_servers) as admin:
                begin, end = (admin.offsets({place: which})[place] for which in (EARLIEST, LATEST))
            failure = None if ErrorCode.NONE == begin.error == end.error else f"{begin}, {end}"
        except ClientError as error:
            failure = str(error)
        if failure is None:
            return begin.offset, end.offset
        assert time.monotonic() < deadline_s, failure
        time.sleep(LOOK_S)


def test_a_follower_whose_folder_is_gone_copies_everything_again(
    cluster: EmbeddedCluster, topic: str, folder: Path
) -> None:
    send(cluster, topic, range(500))
    victim, other = followers(cluster, topic)
    cluster.kill(victim)
    shutil.rmtree(folder / f"broker-{victim}" / f"{topic}-0")
    cluster.restart(victim)
    wait_until_in_sync(cluster, topic)
    cluster.kill(cluster.leader(topic, 0))  # one of the two others has to lead, perhaps the victim
    assert read_all(cluster, topic) == list(range(500))
    cluster.restart(*(node_id for node_id in cluster.node_ids if node_id not in (victim, other)))
    wait_until_in_sync(cluster, topic)


def test_a_leader_whose_folder_is_gone_does_not_lead_with_an_empty_log(
    cluster: EmbeddedCluster, topic: str, folder: Path
) -> None:
    """All brokers were down, so that the leader could not be replaced before it returned."""
    send(cluster, topic, range(500))
    victim = cluster.leader(topic, 0)
    for node_id in cluster.node_ids:
        cluster.kill(node_id)
    shutil.rmtree(folder / f"broker-{victim}" / f"{topic}-0")
    cluster.restart(*cluster.node_ids)
    wait_until_in_sync(cluster, topic)
    assert read_all(cluster, topic) == list(range(500))


def test_a_replica_that_missed_a_recreated_topic_has_the_new_records_alone(cluster: EmbeddedCluster) -> None:
    topic = new_topic(cluster, cluster.unused_topic_name("recreated"))
    send(cluster, topic, range(100))
    victim = followers(cluster, topic)[0]
    cluster.kill(victim)
    cluster.delete_topic(topic)
    with Admin(cluster.bootstrap_servers) as admin:
        wait_until(lambda: topic not in {each.name for each in admin.topics()}, "it is not deleted", WAIT_S_MAX)
        wait_until(lambda: victim not in {each.node_id for each in admin.cluster().brokers}, "not fenced", WAIT_S_MAX)
    cluster.create_topic(topic, replicas=2)
    cluster.restart(victim)
    send(cluster, topic, range(1_000, 1_050))
    assert read_all(cluster, topic) == list(range(1_000, 1_050))
    cluster.delete_topic(topic)
    new_topic(cluster, topic)
    send(cluster, topic, range(2_000, 2_050))
    wait_until_in_sync(cluster, topic)
    assert read_all(cluster, topic) == list(range(2_000, 2_050))


def test_deleted_records_stay_gone_when_the_leader_is_killed(cluster: EmbeddedCluster, topic: str) -> None:
    send(cluster, topic, range(300))
    place = TopicPartition(topic, 0)
    with Admin(cluster.bootstrap_servers) as admin:
        assert admin.delete_records({place: 200})[place].error == ErrorCode.NONE
    victim = cluster.leader(topic, 0)
    cluster.kill(victim)
    assert offsets(cluster, topic) == (200, 300)
    assert read_all(cluster, topic, **{"auto.offset.reset": "earliest"}) == list(range(200, 300))
    cluster.restart(victim)
    wait_until_in_sync(cluster, topic)


def produce_to_leader(address: str, topic: str) -> None:
    """Write a record that no follower has."""
    producer = Producer({"bootstrap.servers": address, "acks": 1, **QUIET})
    producer.produce(topic, "more", partition=0)
    assert producer.flush(WAIT_S_MAX) == 0


def fetched(connection: BenchConnection, topic: str, offset: int, *, replica_id: int = -1) -> fetch.FetchResponse:
    """Fetch as a broker with this id, or as a consumer."""
    partition = fetch.FetchRequestPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = (fetch.FetchRequestTopic(topic=topic, partitions=(partition,)),)
    response = connection.call(fetch, fetch.FetchRequest(replica_id=replica_id, topics=topics), FETCH_VERSION)
    assert isinstance(response, fetch.FetchResponse)
    return response


def test_a_client_that_pretends_to_be_a_follower_is_refused(cluster: EmbeddedCluster, topic: str) -> None:
    """The high watermark waits for two followers that hang, and stays where it is (CVE-2018-1288)."""
    send(cluster, topic, range(10))
    wait_until(lambda: offsets(cluster, topic) == (0, 10), "not committed", WAIT_S_MAX)
    leader, hanging = cluster.leader(topic, 0), followers(cluster, topic)
    address = cluster.address(leader)
    for node_id in hanging:
        cluster.pause(node_id)
    try:
        with BenchConnection(address) as connection:
            produce_to_leader(address, topic)
            for follower in hanging:
                assert fetched(connection, topic, 11, replica_id=follower).error_code != ErrorCode.NONE
            (found,) = fetched(connection, topic, 10).responses[0].partitions
            assert found.high_watermark == 10
    finally:
        for node_id in hanging:
            cluster.resume(node_id)
    wait_until(lambda: offsets(cluster, topic) == (0, 11), "the followers do not continue", WAIT_S_MAX)
