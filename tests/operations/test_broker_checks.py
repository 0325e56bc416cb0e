"""Findings of doctor about a cluster, given the cluster's answers."""

import socket

from headrace.client.types import (
    Broker,
    ConfigEntry,
    ConfigSource,
    LogDirDescription,
    PartitionDescription,
    QuorumDescription,
    QuorumReplica,
    ReplicaSize,
    TopicDescription,
)
from headrace.model.errors import ErrorCode
from headrace.operations.broker_checks import (
    address_finding,
    config_findings,
    fenced_findings,
    listener_findings,
    log_dir_findings,
    partition_findings,
    quorum_findings,
)
from headrace.operations.findings import Level
from tests.reserved_ports import reserved_port


def topic(
    name: str, *, leader: int = 1, replicas: tuple[int, ...] = (1,), isr: tuple[int, ...] = (1,)
) -> TopicDescription:
    partition = PartitionDescription(partition=0, leader=leader, leader_epoch=0, replicas=replicas, isr=isr, offline=())
    return TopicDescription(name=name, partitions=(partition,))


def entry(name: str, value: str, source: ConfigSource = ConfigSource.TOPIC) -> ConfigEntry:
    return ConfigEntry(name=name, value=value, source=source, is_default=False, read_only=False, sensitive=False)


def test_an_address_that_can_be_reached_and_one_that_cannot() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert address_finding(Broker(1, "127.0.0.1", server.getsockname()[1]), "b").level is Level.OK
    closed = address_finding(Broker(1, "127.0.0.1", reserved_port()), "b")
    assert closed.level is Level.PROBLEM
    assert "advertised.listeners" in closed.advice


def test_partitions() -> None:
    assert [finding.level for finding in partition_findings([topic("a")])] == [Level.OK]
    offline, lagging = partition_findings([topic("a", leader=-1), topic("b", replicas=(1, 2))])
    assert offline.level is Level.PROBLEM
    assert "a-0" in offline.seen
    assert lagging.level is Level.WARNING
    assert "b-0" in lagging.seen


def test_long_lists_are_cut() -> None:
    (offline,) = partition_findings([topic(f"t{n}", leader=-1) for n in range(9)])
    assert offline.seen.endswith("t0-0, t1-0, t2-0, t3-0, t4-0 and 4 more")


def test_configs_that_surprise() -> None:
    topics = [topic("u"), topic("m"), topic("r"), topic("fine")]
    configs = {
        "u": (entry("unclean.leader.election.enable", "true"),),
        "m": (entry("min.insync.replicas", "2"),),
        "r": (entry("retention.ms", "-1"), entry("retention.bytes", "-1", ConfigSource.DEFAULT)),
        "fine": (entry("cleanup.policy", "compact,delete"), entry("min.insync.replicas", "1")),
    }
    findings = list(config_findings(topics, configs))
    assert [finding.level for finding in findings] == [Level.WARNING, Level.PROBLEM, Level.NOTE]
    assert [name in finding.seen for name, finding in zip("umr", findings, strict=True)] == [True] * 3
    assert not list(config_findings([topic("fine")], {"fine": configs["fine"]}))


def test_log_directories() -> None:
    replica = ReplicaSize(topic="a", partition=0, size_bytes=2048, offset_lag=0, is_future=False)
    folders = [
        LogDirDescription(
            node_id=1, path="/a", error=ErrorCode.NONE, total_bytes=9, usable_bytes=-1, replicas=(replica,)
        ),
        LogDirDescription(node_id=1, path="/b", error=ErrorCode.NONE, total_bytes=9, usable_bytes=5, replicas=()),
        LogDirDescription(node_id=2, path="/b", error=ErrorCode.NONE, total_bytes=9, usable_bytes=5, replicas=()),
        LogDirDescription(
            node_id=1, path="/c", error=ErrorCode.KAFKA_STORAGE_ERROR, total_bytes=9, usable_bytes=5, replicas=()
        ),
    ]
    findings = list(log_dir_findings(folders, {1: 5, 2: 6}))
    assert [finding.level for finding in findings] == [Level.OK, Level.WARNING, Level.PROBLEM, Level.PROBLEM]
    assert "/b is full" in findings[2].seen
    assert "delete records or topics" in findings[2].advice
    assert "2.0 KiB in 1 partition" in findings[0].seen


def test_listeners_that_other_machines_reach() -> None:
    assert list(listener_findings(1, "PLAINTEXT://127.0.0.1:9092,A://localhost:9093,B://[::1]:9094")) == []
    assert list(listener_findings(1, "")) == []
    found = list(listener_findings(1, "LOCAL://127.0.0.1:9091, PLAINTEXT://:9092, INNER://10.1.2.3:9093"))
    assert [(each.level, each.seen.split()[0]) for each in found] == [
        (Level.WARNING, "0.0.0.0:9092"),
        (Level.WARNING, "10.1.2.3:9093"),
    ]
    assert "without authentication" in found[0].seen
    assert "127.0.0.1" in found[0].advice


def test_brokers_that_are_fenced() -> None:
    (found,) = fenced_findings([Broker(1, "a", 1), Broker(2, "b", 2, None, True)])
    assert (found.level, found.about) == (Level.PROBLEM, "broker 2")
    assert "start it" in found.advice
    assert "headrace cluster unregister" in found.advice


def test_voters_of_the_metadata_quorum() -> None:
    def found(*lags: int) -> list[Level]:
        voters = tuple(QuorumReplica(node, 100, lag, None) for node, lag in enumerate(lags, 1))
        return [
            finding.level
            for finding in quorum_findings(
                QuorumDescription(leader=1, leader_epoch=1, high_watermark=100, voters=voters, observers=())
            )
        ]

    assert found(0, 0, 0) == [Level.OK]
    assert found(0, 5_000, 0) == [Level.WARNING]
    assert found(0, 5_000) == [Level.WARNING, Level.WARNING]
