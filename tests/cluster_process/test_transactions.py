"""Transactions, batch commits and scans whose coordinators and partitions are on different brokers."""

import confluent_kafka
import pytest

from headrace.client import Admin, Consumer, IsolationLevel, Producer, TopicPartition
from headrace.client.batch_commits import BatchOutcome, BatchWriter
from headrace.client.blocking.batch_commits import BatchCommits
from headrace.client.blocking.scans import Scans
from headrace.model.errors import ErrorCode
from headrace.testing import EmbeddedCluster
from tests.batch_commits.task_records import committed_values, write
from tests.broker_process.raw_connection import RawConnection
from tests.process_groups import wait_until
from tests.scans.manifest_rows import checked_rows

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

PARTITIONS = range(6)
TRANSACTION_S_MAX = 60


def committed(cluster: EmbeddedCluster, topic: str, count: int) -> list[list[bytes]]:
    """The committed values of each partition, `count` of them."""
    return [committed_values(cluster.bootstrap_servers, topic, count, partition=index) for index in PARTITIONS]


def librdkafka_producer(cluster: EmbeddedCluster, transactional_id: str) -> confluent_kafka.Producer:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": transactional_id}
    )
    producer.init_transactions(TRANSACTION_S_MAX)
    return producer


def test_transactions_on_all_brokers_have_one_outcome(cluster: EmbeddedCluster, topic: str) -> None:
    ids = [f"{topic}-{number}" for number in range(6)]
    for transactional_id in ids:
        producer = librdkafka_producer(cluster, transactional_id)
        for round_ in range(3):
            producer.begin_transaction()
            for index in PARTITIONS:
                producer.produce(topic, value=f"{transactional_id} {round_}".encode(), partition=index)
            if round_ == 1:
                producer.abort_transaction(TRANSACTION_S_MAX)
            else:
                producer.commit_transaction(TRANSACTION_S_MAX)
    expected = [f"{transactional_id} {round_}".encode() for transactional_id in ids for round_ in (0, 2)]
    assert committed(cluster, topic, len(expected)) == [expected] * len(PARTITIONS)
    with Admin(cluster.bootstrap_servers) as admin:
        described = admin.describe_transactions(ids)
        assert len({each.coordinator for each in described.values()}) > 1, "one broker coordinates all ids"
        assert {each.transactional_id for each in admin.transactions()} >= set(ids)
        assert admin.hanging_transactions(TopicPartition(topic, index) for index in PARTITIONS) == ()


def test_records_and_offsets_of_a_group_are_committed_together(cluster: EmbeddedCluster, topic: str) -> None:
    source = cluster.create_topic(cluster.unused_topic_name("source"), partitions=len(PARTITIONS))
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        for index in PARTITIONS:
            producer.send(source, b"row", partition=index)
    for group in (f"{topic}-group-{number}" for number in range(4)):
        with (
            Consumer(
                bootstrap_servers=cluster.bootstrap_servers, group_id=group, auto_offset_reset="earliest"
            ) as consumer,
            Producer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=f"copy for {group}") as producer,
        ):
            consumer.subscribe(source)
            copied = 0
            while copied < len(PARTITIONS):
                found = list(consumer.poll(timeout_ms=1_000))
                if not found:
                    continue
                with producer.transaction() as transaction:
                    for record in found:
                        producer.send(topic, group.encode(), partition=record.partition)
                    ends = {TopicPartition(source, record.partition): record.offset + 1 for record in found}
                    transaction.commit_offsets(ends, consumer.group_identity())
                copied += len(found)
        with Admin(cluster.bootstrap_servers) as admin:
            offsets = admin.group_offsets(group)
            assert {place: at.offset for place, at in offsets.items()} == {
                TopicPartition(source, index): 1 for index in PARTITIONS
            }
    assert [len(values) for values in committed(cluster, topic, 4)] == [4] * len(PARTITIONS)


@pytest.mark.parametrize("victim", ["coordinator", "leader"])
def test_a_commit_survives_the_death_of_a_broker(cluster: EmbeddedCluster, topic: str, victim: str) -> None:
    transactional_id = f"{topic}-id"
    producer = librdkafka_producer(cluster, transactional_id)
    producer.begin_transaction()
    for index in PARTITIONS:
        producer.produce(topic, value=b"v", partition=index)
    producer.flush(TRANSACTION_S_MAX)
    with Admin(cluster.bootstrap_servers) as admin:
        coordinator = admin.describe_transactions([transactional_id])[transactional_id].coordinator
    other = next(node_id for node_id in cluster.node_ids if node_id != coordinator)
    producer.commit_transaction(TRANSACTION_S_MAX)
    killed = coordinator if victim == "coordinator" else other
    cluster.kill(killed)
    cluster.restart(killed)
    assert committed(cluster, topic, 1) == [[b"v"]] * len(PARTITIONS)
    with Admin(cluster.bootstrap_servers) as admin:
        wait_until(
            lambda: admin.describe_transactions([transactional_id])[transactional_id].state == "CompleteCommit",
            "the transaction has not ended",
        )


def written_to_all(cluster: EmbeddedCluster, topic: str, writer: BatchWriter, value: bytes) -> None:
    for index in PARTITIONS:
        with RawConnection(cluster.address(cluster.leader(topic, index))) as connection:
            wait_until(
                lambda index=index, connection=connection: (  # type: ignore[misc]
                    write(connection, writer, topic, value, partition=index) is ErrorCode.NONE
                ),
                "the row is not accepted",
            )


def test_a_batch_is_committed_on_all_brokers_at_once(cluster: EmbeddedCluster, topic: str) -> None:
    owner = f"query/{topic}"
    with BatchCommits(cluster.bootstrap_servers) as batch_commits:
        lent = [
            batch_commits.begin_batch_writer(owner, run="r1", batch_id=0, task_attempt_id=attempt)
            for attempt in range(3)
        ]
        first, second, loser = (writer for writer in lent if writer is not None)
        for writer, value in ((first, b"a"), (second, b"b"), (loser, b"c")):
            written_to_all(cluster, topic, writer, value)
        victim = next(node_id for node_id in cluster.node_ids if node_id != cluster.active_controller())
        cluster.kill(victim)  # a process that dies loses no rows, unlike a machine without power
        cluster.restart(victim)
        outcome = batch_commits.commit_batch(owner, run="r1", batch_id=0, writers=[first, second])
        assert outcome is BatchOutcome.COMMITTED
        again = batch_commits.commit_batch(owner, run="r1", batch_id=0, writers=[first, second])
        assert again is BatchOutcome.ALREADY_COMMITTED
    assert committed(cluster, topic, 2) == [[b"a", b"b"]] * len(PARTITIONS)


def test_a_scan_finds_the_files_of_every_broker(cluster: EmbeddedCluster, topic: str) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        for index in PARTITIONS:
            producer.send(topic, f"row {index}".encode(), partition=index)
    with Scans(cluster.bootstrap_servers) as scans:
        manifest = scans.scan_manifest(
            [TopicPartition(topic, index) for index in PARTITIONS], isolation_level=IsolationLevel.READ_COMMITTED
        )
        assert {lease.node for lease in manifest.leases} == set(cluster.node_ids)
        assert {each.partition: each.node for each in manifest.partitions} == {
            index: cluster.leader(topic, index) for index in PARTITIONS
        }
        found = {each.partition: checked_rows(each, manifest.cluster_id) for each in manifest.partitions}
        scans.scan_release(manifest)
    assert found == {index: [(0, None, f"row {index}".encode())] for index in PARTITIONS}
