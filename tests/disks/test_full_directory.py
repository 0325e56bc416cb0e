"""A full log directory: records are refused, everything else goes on, and it heals by itself."""

import errno

import pytest

from headrace.log.space import RESERVE_BYTES, ROOM_AGAIN_BYTES
from headrace.model.errors import ErrorCode as E
from headrace.wire.apis import ApiKey
from headrace.wire.messages import create_partitions, delete_records
from tests.disks.virtual_disks import DiskBroker, Sequenced

MINIMUM_BYTES = 1 << 20
CYCLES = 50


def delete_below(client, topic, offset):
    partition = delete_records.DeleteRecordsRequestPartition(partition_index=0, offset=offset)
    request = delete_records.DeleteRecordsRequest(
        topics=(delete_records.DeleteRecordsRequestTopic(name=topic, partitions=(partition,)),), timeout_ms=30_000
    )
    return client.ask(ApiKey.DELETE_RECORDS, 2, request).topics[0].partitions[0]


def grow(client, topic, count):
    request = create_partitions.CreatePartitionsRequest(
        topics=(create_partitions.CreatePartitionsRequestTopic(name=topic, count=count, assignments=None),),
        timeout_ms=30_000,
    )
    return client.ask(ApiKey.CREATE_PARTITIONS, 3, request).results[0]


def test_below_the_minimum_records_are_refused_and_everything_else_continues():
    broker = DiskBroker().with_topic("t").with_topic("old")
    client = broker.client()
    assert client.produce_error("t", 0, client.batch(b"a", b"b")) == 0
    broker.settle(full=False)
    assert broker.has_reserve()
    broker.leave_free(MINIMUM_BYTES - 1)
    broker.settle(full=True)
    assert client.produce_error("t") == E.KAFKA_STORAGE_ERROR
    assert client.values("t") == [b"a", b"b"]
    assert delete_below(client, "t", 1).low_watermark == 1
    assert client.alter_configs(2, "t", {"retention.ms": 1_000_000}) == 0
    refused = client.create_topic("new")
    assert refused.error_code == E.KAFKA_STORAGE_ERROR
    assert "headrace.disk.free.min.bytes" in refused.error_message
    assert "delete records or topics" in refused.error_message
    assert grow(client, "t", 3).error_code == E.KAFKA_STORAGE_ERROR
    assert client.metadata("named", allow_creation=True).topics[0].error_code != 0
    assert client.delete_topic("old") == 0
    assert len(broker.events("log directory is full")) == 1
    page = b"".join(broker.metrics.render((broker.node._families(),))).decode()
    assert 'headrace_disk_full{directory="data"} 1' in page
    broker.empty_out()
    broker.settle(full=False)
    assert len(broker.events("has room again")) == 1
    assert client.produce("t", 0, client.batch(b"c")).base_offset == 2
    assert client.create_topic("new").error_code == 0
    page = b"".join(broker.metrics.render((broker.node._families(),))).decode()
    assert 'headrace_disk_full{directory="data"} 0' in page


def test_a_changed_minimum_is_obeyed():
    broker = DiskBroker().with_topic("t")
    client = broker.client()
    assert client.alter_configs(4, "", {"headrace.disk.free.min.bytes": 1 << 40}) == 0
    broker.settle(full=True)
    assert client.produce_error("t") == E.KAFKA_STORAGE_ERROR
    assert client.alter_configs(4, "", {"headrace.disk.free.min.bytes": 0}) == 0
    broker.settle(full=False)
    assert client.produce_error("t") == 0


def test_a_device_without_a_byte_left_gives_up_its_reserve_for_metadata():
    broker = DiskBroker(settings={"headrace.disk.free.min.bytes": "0"}).with_topic("t").with_topic("old")
    client = broker.client()
    broker.run_until(broker.has_reserve)
    broker.leave_free(100)
    assert client.produce_error("t", 0, client.batch(bytes(200))) == E.KAFKA_STORAGE_ERROR
    assert broker.space().full, "told by the write, not by the next look"
    broker.run_until(lambda: not broker.has_reserve())
    broker.settle(full=True)
    for number in range(5):
        assert client.alter_configs(2, "t", {"retention.ms": 1_000_000 + number}) == 0
    assert client.delete_topic("old") == 0
    broker.restart()
    client = broker.client()
    assert client.metadata("old").topics[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert client.metadata("t").topics[0].error_code == 0
    broker.leave_free(ROOM_AGAIN_BYTES)
    broker.run_until(broker.has_reserve)
    assert client.produce_error("t", 0, client.batch(bytes(200))) == 0


def test_a_start_on_a_full_device_uses_what_is_left_of_the_reserve():
    broker = DiskBroker().with_topic("t")
    client = broker.client()
    assert client.produce_error("t", 0, client.batch(b"a")) == 0
    broker.run_until(broker.has_reserve)
    broker.machine.kill()
    broker.leave_free(0)
    broker.boot()
    assert not broker.has_reserve()
    broker.settle(full=True)
    client = broker.client()
    assert client.values("t") == [b"a"]
    assert client.produce_error("t") == E.KAFKA_STORAGE_ERROR
    broker.empty_out()
    broker.settle(full=False)
    assert broker.has_reserve()
    assert client.produce_error("t") == 0


def test_space_that_cannot_be_used_does_not_count():
    """Inodes and quotas run out while bytes are free: what tells is whether the reserve can be made."""
    broker = DiskBroker().with_topic("t")
    client = broker.client()
    broker.run_until(broker.has_reserve)
    broker.disk.faults.fail("write_vector", code=errno.EDQUOT, path_contains="t-0")
    broker.disk.faults.fail("allocate", code=errno.EDQUOT, path_contains="reserve", times=3)
    assert client.produce_error("t") == E.KAFKA_STORAGE_ERROR
    for _ in range(3):
        broker.pass_time(1_000)
        assert broker.space().full
    broker.pass_time(1_000)
    broker.settle(full=False)
    assert client.produce_error("t") == 0


def test_the_reserve_is_written_where_nothing_can_be_allocated():
    broker = DiskBroker(boot=False)
    broker.disk.allocate = lambda file, position, length: None
    broker.boot()
    broker.run_until(broker.has_reserve)
    assert broker.disk.file_size("data/.headrace-reserve") == RESERVE_BYTES


def test_fifty_times_full_and_nothing_is_lost_or_doubled():
    broker = DiskBroker().with_topic("t", segment_bytes=4096, flush_messages=1).with_topic("u", flush_messages=1)
    producers = [Sequenced(broker, "t", producer_id=7), Sequenced(broker, "u", producer_id=8)]
    for cycle in range(CYCLES):
        for producer in producers:
            assert producer.send(attempts=10)
        if cycle % 3 == 0:
            broker.leave_free(cycle * 13 % 200)
        else:
            operation = ("write_vector", "open", "rename", "allocate")[cycle % 4]
            broker.disk.faults.fail(operation, code=errno.ENOSPC, times=1 + cycle % 2)
        for producer in producers:
            producer.send()
        broker.pass_time(1_100)
        broker.disk.faults.heal()
        broker.empty_out()
        broker.settle(full=False)
        if cycle % 10 == 9:
            broker.machine.cut_power() if cycle % 20 == 9 else broker.machine.kill()
            broker.boot()
            for producer in producers:
                producer._client = broker.client()
    client = broker.client()
    assert client.read_all("t") == producers[0].acked
    assert client.read_all("u") == producers[1].acked
    assert min(producer.refused for producer in producers) > 5


def test_one_full_directory_of_two_leaves_the_other_alone():
    broker = DiskBroker(settings={"log.dirs": "meta,extra"}).with_topic("a", partitions=2)
    client = broker.client()
    place = next(index for index in (0, 1) if broker.partition("a", index).log.path.startswith("extra"))
    broker.disk.faults.fail("write_vector", code=errno.ENOSPC, path_contains=f"a-{place}")
    assert client.produce_error("a", place) == E.KAFKA_STORAGE_ERROR
    assert client.produce_error("a", place) == E.KAFKA_STORAGE_ERROR
    assert client.produce_error("a", 1 - place) == 0
    assert client.create_topic("b", partitions=3).error_code == 0
    assert {broker.partition("b", index).log.path.split("/")[0] for index in range(3)} == {"meta"}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE])
def test_a_partition_that_finds_no_room_at_its_creation_is_opened_later(code):
    broker = DiskBroker()
    client = broker.client()
    broker.run_until(broker.has_reserve)
    broker.disk.faults.fail("open", code=code, path_contains="late-1", times=2)
    assert client.create_topic("late", partitions=3).error_code == 0
    assert client.produce_error("late", 1) == E.KAFKA_STORAGE_ERROR
    assert client.metadata("late").topics[0].partitions[1].leader_id == -1
    for _ in range(4):
        broker.pass_time(1_100)
    broker.run_until(lambda: broker.partition("late", 1) is not None)
    assert client.produce_error("late", 1) == 0
    assert broker.node.broker.partitions.opener.closed_count == 0
    assert len(broker.events("stays closed")) == 1


def test_a_topic_is_deleted_while_a_partition_of_it_waits_for_room():
    broker = DiskBroker()
    client = broker.client()
    broker.disk.faults.fail("open", code=errno.ENOSPC, path_contains="gone-0", times=1000)
    assert client.create_topic("gone").error_code == 0
    assert client.delete_topic("gone") == 0
    broker.disk.faults.heal()
    for _ in range(4):
        broker.pass_time(1_100)
    assert not [name for name in broker.disk.list_directory("data") if name.startswith("gone")]
    assert client.create_topic("gone").error_code == 0
    assert client.produce_error("gone") == 0


@pytest.mark.parametrize("operation", ["write_vector", "truncate", "rename", "data_sync", "open", "sync_directory"])
def test_a_metadata_change_without_room_fails_or_waits_and_the_node_continues(operation):
    broker = DiskBroker(settings={"log.dirs": "meta,extra"}).with_topic("t")
    client = broker.client()
    broker.disk.faults.fail(operation, code=errno.ENOSPC, path_contains="__cluster_metadata-0", times=2)
    outcomes = [client.alter_configs(2, "t", {"retention.ms": 5_000_000 + number}) for number in range(3)]
    if operation == "data_sync":
        assert broker.node.failed, "what a sync has lost is unknown"
        return
    assert set(outcomes) <= {0, E.KAFKA_STORAGE_ERROR}
    broker.disk.faults.heal()
    for _ in range(3):
        broker.pass_time(1_100)
    broker.run_until(lambda: not broker.space().full)
    assert client.alter_configs(2, "t", {"retention.ms": 7_000_000}) == 0
    assert client.produce_error("t") == 0
    broker.machine.cut_power()
    broker.boot()
    assert broker.node.broker.image.topic_configs("t")["retention.ms"] == "7000000"


def test_retention_hurries_while_a_directory_is_full():
    broker = DiskBroker().with_topic("t", segment_bytes=2000, retention_bytes=4000)
    client = broker.client()
    for _ in range(10):
        assert client.produce_error("t", 0, client.batch(bytes(900))) == 0
    folder = broker.partition("t").log.path
    assert len([name for name in broker.disk.list_directory(folder) if name.endswith(".log")]) > 3
    broker.leave_free(MINIMUM_BYTES - 1)
    broker.settle(full=True)
    broker.run_until(
        lambda: (
            len([name for name in broker.disk.list_directory(folder) if ".log" in name]) <= 4
            and not [name for name in broker.disk.list_directory(folder) if name.endswith(".deleted")]
        )
    )
