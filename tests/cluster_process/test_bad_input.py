"""Nodes that do not belong to the cluster, and peers that send garbage: refused with the reason; the rest goes on."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace import Admin, Producer
from headrace.client import NewTopic
from headrace.log.cluster_key import ClusterKey, new_cluster_key, read_cluster_key, write_cluster_key
from headrace.operations.local_nodes import LocalNode, NodeProcess, node_command
from headrace.ports.real.disk import RealDisk
from headrace.ports.real.entropy import RealEntropy
from headrace.ports.real.processes import stop
from headrace.testing import EmbeddedCluster
from tests.process_groups import wait_until
from tests.reserved_ports import reserved_port

pytestmark = pytest.mark.process

STOP_S_MAX = 30


def members(cluster: EmbeddedCluster) -> list[LocalNode]:
    return list(cluster._nodes.values())


def key_of(cluster: EmbeddedCluster) -> ClusterKey:
    key = read_cluster_key(RealDisk(), members(cluster)[0].folder)
    assert key is not None
    return key


@contextmanager
def newcomer(
    cluster: EmbeddedCluster, folder: Path, *, node_id: int, key: ClusterKey | None = None, peers: str = ""
) -> Iterator[NodeProcess]:
    """A node that tries to join the cluster."""
    node = LocalNode(node_id, reserved_port(), reserved_port(), str(folder / "newcomer"))
    Path(node.folder).mkdir(exist_ok=True)
    write_cluster_key(RealDisk(), node.folder, key or key_of(cluster))
    command = node_command(node, members(cluster), controllers=3)
    at = command.index("--peers") + 1
    command[at] = peers or ",".join(each.cluster_address for each in members(cluster))
    process = NodeProcess(node, command, stops_with_starter=True)
    try:
        yield process
    finally:
        stop(process.process, STOP_S_MAX)
        process.release()


def brokers(cluster: EmbeddedCluster) -> list[int]:
    with Admin(cluster.bootstrap_servers) as admin:
        return [broker.node_id for broker in admin.cluster().brokers]


def assert_it_continues(cluster: EmbeddedCluster) -> None:
    assert brokers(cluster) == [1, 2, 3]
    topic = cluster.create_topic(cluster.unused_topic_name("still"), partitions=3)
    with Producer(cluster.bootstrap_servers) as producer:
        for partition in range(3):
            producer.send(topic, b"x", partition=partition).result(timeout_ms=60_000)


def says(process: NodeProcess, *texts: str) -> Callable[[], bool]:
    return lambda: all(text in process.log.read_text() for text in texts)


def test_a_second_node_with_an_id_in_use_is_refused(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    with newcomer(cluster, tmp_path, node_id=2) as process:
        wait_until(says(process, "node.id"), "the reason is not told")
        assert_it_continues(cluster)


def test_a_node_with_another_key_is_refused(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    key = new_cluster_key(RealEntropy(), key_of(cluster).cluster_id)
    with newcomer(cluster, tmp_path, node_id=4, key=key) as process:
        wait_until(says(process, "cluster.key"), "the reason is not told")
        assert_it_continues(cluster)


def test_a_node_of_another_cluster_is_refused(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    with newcomer(cluster, tmp_path, node_id=4, key=ClusterKey("another", key_of(cluster).secret)) as process:
        wait_until(says(process, "another", key_of(cluster).cluster_id), "the reason is not told")
        assert_it_continues(cluster)


def test_a_node_finds_the_cluster_though_a_peer_has_no_address(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    peers = f"nowhere.invalid:19092,{members(cluster)[0].cluster_address}"
    with newcomer(cluster, tmp_path, node_id=4, peers=peers):
        wait_until(lambda: brokers(cluster) == [1, 2, 3, 4], "it has not joined")
    wait_until(lambda: brokers(cluster) == [1, 2, 3], "it has not left")


@pytest.mark.parametrize(
    "content", [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\0\0\0\x0a\x00\x03\x00\x0c\0\0\0\x01\xff\xff"]
)
def test_garbage_at_the_cluster_listener_harms_no_other_connection(cluster: EmbeddedCluster, content: bytes) -> None:
    for node in members(cluster):
        with socket.create_connection(("127.0.0.1", node.cluster_port), 10) as garbage:
            garbage.sendall(content)
            garbage.settimeout(60)
            assert garbage.recv(1) == b""  # closed without an answer
    assert_it_continues(cluster)


def test_a_data_folder_of_another_node_is_refused(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    with newcomer(cluster, tmp_path, node_id=5):
        wait_until(lambda: brokers(cluster) == [1, 2, 3, 5], "it has not joined")
    with newcomer(cluster, tmp_path, node_id=6) as process:
        wait_until(lambda: process.process.poll() is not None, "it runs on")
        assert says(process, "belongs to node.id '5', but this node has '6'; choose another directory")()
    wait_until(lambda: brokers(cluster) == [1, 2, 3], "it has not left")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: b"", "it cannot be decoded"),
        (lambda content: content[:-9], "it cannot be decoded"),
        (lambda content: content.replace(b'"leaderEpoch":', b'"leaderEpoch":1'), "its checksum is wrong"),
    ],
)
def test_a_node_with_a_damaged_vote_does_not_start_and_the_rest_continues(
    cluster: EmbeddedCluster, damage: Callable[[bytes], bytes], reason: str
) -> None:
    victim = next(node for node in members(cluster) if node.node_id != cluster.active_controller())
    cluster.kill(victim.node_id)
    path = next(Path(victim.folder).glob("*/quorum-state"))
    kept = path.read_bytes()
    damaged = damage(kept)
    path.write_bytes(damaged)
    process = NodeProcess(victim, node_command(victim, members(cluster), controllers=3), stops_with_starter=True)
    try:
        wait_until(lambda: process.process.poll() is not None, "it runs")
        assert process.process.returncode == 1
        assert says(process, "quorum-state", reason, "let the node join again with an empty data folder")()
        assert path.read_bytes() == damaged  # nothing is repaired in silence
        create_elsewhere(cluster, victim.node_id)
    finally:
        process.release()
        path.write_bytes(kept)
        cluster.restart(victim.node_id)
    assert_it_continues(cluster)


def create_elsewhere(cluster: EmbeddedCluster, lost: int) -> None:
    others = ",".join(cluster.address(node_id) for node_id in cluster.node_ids if node_id != lost)
    with Admin(others) as admin:
        wait_until(lambda: lost not in {one.node_id for one in admin.cluster().brokers}, "it is not fenced")
        name = cluster.unused_topic_name("elsewhere")
        admin.create_topics([NewTopic(name, partitions=2)])[name].check(name)
