"""Topics that come, go, grow and change, and nodes that stop and start, under clients that use them."""

import errno

import pytest

from headrace.log.checkpoints import decode_offsets
from headrace.log.files import read_whole
from headrace.log.names import RECOVERY_POINTS
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.wire.apis import ApiKey
from headrace.wire.messages import create_partitions, create_topics, delete_topics, init_producer_id
from tests.broker.virtual import (
    BROKER_RESOURCE,
    LONG_MS,
    TOPIC_RESOURCE,
    VirtualBroker,
    new_topic,
    values_of,
)

E = ErrorCode
QUICK_RETENTION = {"log.retention.check.interval.ms": "1000"}


def add_partitions(client, topic, count):
    growth = create_partitions.CreatePartitionsRequestTopic(name=topic, count=count, assignments=None)
    request = create_partitions.CreatePartitionsRequest(topics=(growth,), timeout_ms=LONG_MS)
    return client.ask(ApiKey.CREATE_PARTITIONS, 3, request).results[0].error_code


# Deleting


def test_producers_and_consumers_of_a_deleted_topic_get_an_error():
    broker = VirtualBroker().with_topic("t").with_topic("kept")
    producer, consumer, parked, admin = (broker.client() for _ in range(4))
    topic_id = admin.topic_id("t")
    producer.produce("t")
    waiting = parked.send_fetch(("t", 0, 1), ("kept", 0, 0), wait_ms=LONG_MS)
    broker.steps()
    assert admin.delete_topic("t") == 0
    answer = parked.wait(waiting).responses[0].partitions[0]
    assert answer.error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.produce_error("t") == E.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.produce_error(topic_id, version=13) == E.UNKNOWN_TOPIC_ID
    assert consumer.fetch("t").error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert consumer.metadata("t").topics[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.produce_error("kept") == 0
    assert admin.delete_topic("t") == E.UNKNOWN_TOPIC_OR_PARTITION


def test_an_acknowledgement_that_waits_when_its_topic_goes():
    broker = VirtualBroker().with_topic("t", flush_messages=1)
    broker.hold_syncs()
    producer, admin = broker.client(), broker.client()
    asked = producer.send_produce("t")
    broker.steps()
    deletion = broker.node.broker.partitions
    deletion._delete_topic(broker.node.broker.image.topics["t"])
    broker.steps()
    answer = producer.wait(asked).responses[0].partition_responses[0]
    assert answer.error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    broker.release_syncs()
    broker.steps()
    assert admin.metadata().brokers


def test_a_recreated_topic_is_another_and_shows_nothing_of_the_old():
    broker = VirtualBroker().with_topic("t", partitions=2)
    client = broker.client()
    old_id = client.topic_id("t")
    for _ in range(5):
        client.produce("t", 1, client.batch(b"old", producer_id=3, producer_epoch=0, base_sequence=_))
    assert client.delete_topic("t") == 0
    assert client.create_topic("t", partitions=2).error_code == 0
    assert client.topic_id("t") != old_id
    assert client.fetch("t", 1).high_watermark == 0
    sequenced = client.batch(b"new", producer_id=3, producer_epoch=0, base_sequence=0)
    assert client.produce("t", 1, sequenced).base_offset == 0, "its producers are not known either"
    for _ in range(2):
        assert broker.client().read_all("t", 1) == [b"new"]
        broker.restart()


def test_create_delete_and_create_again_while_folders_are_made():
    broker = VirtualBroker().with_topic("other")
    first, admin, second = (broker.client() for _ in range(3))
    broker.machine.spawner.hold(name_contains="_open_later")
    request = create_topics.CreateTopicsRequest(topics=(new_topic("t", 2),), timeout_ms=LONG_MS)
    created = first.send(ApiKey.CREATE_TOPICS, 7, request)
    broker.steps()
    deletion = broker.client()
    topic = broker.node.broker.image.topics["t"]
    assert topic.partitions, "it is committed, and its folders are not there yet"
    deleted = deletion.send(
        ApiKey.DELETE_TOPICS,
        6,
        delete_topics.DeleteTopicsRequest(
            topics=(delete_topics.DeleteTopicsRequestTopic(name="t"),), timeout_ms=LONG_MS
        ),
    )
    broker.steps()
    again = second.send(ApiKey.CREATE_TOPICS, 7, request)
    broker.steps()
    broker.release_syncs()
    assert first.wait(created).topics[0].error_code == 0
    assert deletion.wait(deleted).responses[0].error_code == 0
    assert second.wait(again).topics[0].error_code == 0
    assert admin.produce("t", 1, admin.batch(b"kept")).base_offset == 0
    broker.pass_time(120_000)
    broker.restart()
    assert broker.client().read_all("t", 1) == [b"kept"]


def test_folders_of_deleted_topics_vanish_after_their_delay():
    broker = VirtualBroker().with_topic("t", partitions=3, file_delete_delay_ms=60_000)
    client = broker.client()
    client.produce("t")
    client.delete_topic("t")
    folders = [name for name in broker.machine.disk.list_directory("data") if name.endswith("-delete")]
    assert len(folders) == 3
    for _ in range(3):
        broker.pass_time(30_000)
    assert [name for name in broker.machine.disk.list_directory("data") if name.startswith("t-")] == []


def test_deleting_a_topic_of_a_failed_directory_does_not_end_the_node():
    broker = (
        VirtualBroker(settings={"log.dirs": "one,two"}).with_topic("t", partitions=2).with_topic("kept", partitions=2)
    )
    client = broker.client()
    place = next(index for index in (0, 1) if broker.partition("t", index).log.path.startswith("two"))
    broker.machine.disk.faults.fail("write_vector", path_contains=f"t-{place}")
    assert client.produce_error("t", place) == E.KAFKA_STORAGE_ERROR
    broker.machine.disk.faults.fail("rename", path_contains="two/", times=100)
    assert client.delete_topic("t") == 0
    broker.steps()
    healthy = next(index for index in (0, 1) if broker.partition("kept", index).log.path.startswith("one"))
    assert client.produce_error("kept", healthy) == 0


def test_a_folder_that_cannot_be_renamed_fails_its_directory_not_the_node():
    broker = (
        VirtualBroker(settings={"log.dirs": "one,two"}).with_topic("t", partitions=2).with_topic("kept", partitions=2)
    )
    client = broker.client()
    broker.machine.disk.faults.fail("rename", path_contains="two/", times=100)
    assert client.delete_topic("t") == 0
    healthy = next(index for index in (0, 1) if broker.partition("kept", index).log.path.startswith("one"))
    assert client.produce_error("kept", healthy) == 0
    assert client.metadata("t").topics[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION


# Creating and growing


def test_partitions_are_added_under_producers():
    broker = VirtualBroker().with_topic("t", partitions=2)
    client = broker.client()
    client.produce("t", 1, client.batch(b"before"))
    assert client.produce_error("t", 2) == E.UNKNOWN_TOPIC_OR_PARTITION
    assert add_partitions(client, "t", 5) == 0
    assert len(client.metadata("t").topics[0].partitions) == 5
    for partition in range(5):
        assert client.produce_error("t", partition) == 0
    assert add_partitions(client, "t", 3) == E.INVALID_PARTITIONS
    broker.restart()
    assert broker.client().read_all("t", 1) == [b"before", b"v"]
    assert broker.client().read_all("t", 4) == [b"v"]


def test_a_partition_whose_folder_cannot_be_made_has_no_leader_and_comes_with_the_next_start():
    broker = VirtualBroker(settings={"log.dirs": "one,two"}).with_topic("kept")
    broker.machine.disk.faults.fail("make_directory", path_contains="broken-", times=100)
    client = broker.client()
    client.create_topic("broken")
    partition = client.metadata("broken").topics[0].partitions[0]
    assert partition.error_code == E.LEADER_NOT_AVAILABLE
    assert client.produce_error("broken") in (
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.LEADER_NOT_AVAILABLE,
        E.KAFKA_STORAGE_ERROR,
    )
    assert client.fetch("broken").error_code != 0
    assert client.produce_error("kept") == 0
    broker.machine.disk.faults.heal()
    broker.restart()
    assert broker.client().produce_error("broken") == 0


def test_two_log_directories_are_filled_evenly_and_found_again():
    broker = VirtualBroker(settings={"log.dirs": "one,two,three"})
    broker.with_topic("a", partitions=5).with_topic("b", partitions=4)
    client = broker.client()
    for topic, count in (("a", 5), ("b", 4)):
        for partition in range(count):
            client.produce(topic, partition, client.batch(b"%s%d" % (topic.encode(), partition)))
    places = {(t, p): broker.partition(t, p).log.path for t, count in (("a", 5), ("b", 4)) for p in range(count)}
    per_directory = [sum(path.startswith(name + "/") for path in places.values()) for name in ("one", "two", "three")]
    assert per_directory == [3, 3, 3]
    broker.restart()
    client = broker.client()
    for (topic, partition), path in places.items():
        assert broker.partition(topic, partition).log.path == path
        assert client.read_all(topic, partition) == [b"%s%d" % (topic.encode(), partition)]


# Configs


def test_a_topic_config_takes_effect_at_once():
    broker = VirtualBroker().with_topic("t", flush_messages=1)
    broker.hold_syncs()
    producer, admin = broker.client(), broker.client()
    asked = producer.send_produce("t")
    broker.steps()
    assert not producer.has_answer(asked)
    assert (
        admin.alter_configs(TOPIC_RESOURCE, "t", {"flush.messages": 10**9, "message.timestamp.type": "LogAppendTime"})
        == 0
    )
    assert producer.wait(asked).responses[0].partition_responses[0].error_code == 0
    assert producer.produce("t").log_append_time_ms > 0


def test_a_broker_config_reaches_topics_that_do_not_override_it_and_survives_a_restart():
    broker = VirtualBroker().with_topic("follows").with_topic("own", max_message_bytes=100_000)
    client = broker.client()
    large = client.batch(bytes(5_000))
    node_id = str(broker.node.config.node_id)
    assert client.alter_configs(BROKER_RESOURCE, node_id, {"message.max.bytes": 1000}) == 0
    for _ in range(2):
        client = broker.client()
        assert client.produce_error("follows", 0, large) == E.MESSAGE_TOO_LARGE
        assert client.produce_error("own", 0, large) == 0
        broker.restart()
    client = broker.client()
    assert client.alter_configs(BROKER_RESOURCE, "", {"message.max.bytes": 50_000}) == 0
    assert client.produce_error("follows", 0, large) == E.MESSAGE_TOO_LARGE, "a broker's own value is nearer"


def test_dynamic_limits_on_connections():
    broker = VirtualBroker()
    client = broker.client()
    assert client.alter_configs(BROKER_RESOURCE, "", {"max.connections": 2}) == 0
    others = [broker.client() for _ in range(3)]
    broker.steps()
    assert [other.is_closed() for other in others].count(True) == 2
    assert client.alter_configs(BROKER_RESOURCE, "", {"max.connections": 100}) == 0
    late = broker.client()
    assert late.metadata().brokers


# Retention


def test_old_segments_are_deleted_and_readers_get_an_error():
    broker = VirtualBroker(settings=QUICK_RETENTION)
    broker.with_topic("t", segment_bytes=2_000, retention_ms=30_000, file_delete_delay_ms=1_000)
    client = broker.client()
    for place in range(10):
        client.produce("t", 0, client.batch(b"%d" % place + bytes(900)))
    broker.pass_time(20_000)
    client.produce("t", 0, client.batch(b"young"))
    for _ in range(4):
        broker.pass_time(5_000)
    log = broker.partition("t").log
    assert 0 < log.start_offset <= 10
    answer = client.fetch("t", offset=0)
    assert (answer.error_code, answer.log_start_offset) == (E.OFFSET_OUT_OF_RANGE, log.start_offset)
    assert client.read_all("t", 0, log.start_offset)[-1] == b"young"
    for _ in range(3):
        broker.pass_time(2_000)
    assert [name for name in broker.machine.disk.list_directory("data/t-0") if name.endswith(".deleted")] == []


def test_retention_by_size_follows_a_changed_config():
    broker = VirtualBroker(settings=QUICK_RETENTION).with_topic("t", segment_bytes=2_000)
    client = broker.client()
    for _ in range(20):
        client.produce("t", 0, client.batch(bytes(900)))
    broker.pass_time(5_000)
    assert broker.partition("t").log.start_offset == 0
    assert client.alter_configs(TOPIC_RESOURCE, "t", {"retention.bytes": 4_000}) == 0
    broker.pass_time(5_000)
    log = broker.partition("t").log
    assert 4_000 <= log.size_bytes < 7_000
    assert log.start_offset > 10
    assert client.produce_error("t") == 0


def test_cold_and_hot_parts_of_one_answer_stay_open_while_a_helper_reads(monkeypatch):
    broker = VirtualBroker(settings=QUICK_RETENTION)
    broker.with_topic("t", partitions=2, segment_bytes=2_000, retention_ms=30_000, file_delete_delay_ms=0)
    reader, writer = broker.client(), broker.client()
    for partition in (0, 1):
        for place in range(4):
            writer.produce("t", partition, writer.batch(b"%d" % place + bytes(900)))
    disk = broker.machine.disk
    cold = broker.partition("t", 0).log.path
    monkeypatch.setattr(disk, "is_hot", lambda file, position, length: not disk._open[file].path.startswith(cold))
    broker.machine.spawner.hold(name_contains="when_hot")
    asked = reader.send_fetch(("t", 0, 0), ("t", 1, 0))
    broker.steps()
    for _ in range(12):
        broker.pass_time(5_000)
    assert broker.partition("t", 1).log.start_offset > 0
    broker.release_syncs()
    answers = reader.wait(asked).responses[0].partitions
    assert [values_of(answer.records)[0] for answer in answers] == [b"0" + bytes(900)] * 2


# Stopping and starting


def test_a_clean_restart_keeps_everything():
    broker = VirtualBroker().with_topic("t", partitions=2, retention_ms=123_456_789)
    client = broker.client()
    topic_id = client.topic_id("t")
    for sequence in range(3):
        client.produce("t", 0, client.batch(b"%d" % sequence, producer_id=8, producer_epoch=1, base_sequence=sequence))
    for epoch in (2, 4, 6):  # one without a leader, and one under the new process
        broker.restart()
        client = broker.client()
        assert client.topic_id("t") == topic_id
        partition = client.metadata("t").topics[0].partitions[0]
        assert partition.leader_epoch == epoch
        answer = client.fetch("t")
        assert (answer.high_watermark, values_of(answer.records)) == (3, [b"0", b"1", b"2"])
        retry = client.batch(b"2", producer_id=8, producer_epoch=1, base_sequence=2)
        assert client.produce("t", 0, retry).base_offset == 2, "a retry is recognised across restarts"
        gap = client.batch(b"x", producer_id=8, producer_epoch=1, base_sequence=5)
        assert client.produce_error("t", 0, gap) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert broker.partition("t").config.retention_ms == 123_456_789
        assert broker.partition("t").log.recovered.batches_replayed == 0, "nothing needs to be replayed"


def test_a_killed_node_keeps_what_it_acknowledged_and_its_producers():
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    for sequence in range(4):
        client.produce("t", 0, client.batch(b"%d" % sequence, producer_id=8, producer_epoch=1, base_sequence=sequence))
    broker.machine.kill()
    broker.boot()
    client = broker.client()
    assert client.read_all("t") == [b"0", b"1", b"2", b"3"]
    retry = client.batch(b"3", producer_id=8, producer_epoch=1, base_sequence=3)
    assert client.produce("t", 0, retry).base_offset == 3
    assert client.metadata("t").topics[0].partitions[0].leader_epoch == 2


def test_what_one_start_recovered_is_not_scanned_by_the_next():
    """A broker that is killed again and again does not check the same tail each time."""
    broker = VirtualBroker().with_topic("t", partitions=2)
    for partition in range(2):
        broker.client().produce("t", partition)
    broker.machine.kill()
    broker.boot()
    broker.steps()
    broker.machine.kill()
    points = decode_offsets(read_whole(broker.machine.disk, f"data/{RECOVERY_POINTS}", 1_000))
    assert [points[TopicPartition("t", index)] for index in range(2)] == [1, 1]


def test_producer_ids_are_never_given_out_twice():
    broker = VirtualBroker()
    given = []
    for _ in range(3):
        client = broker.client()
        for _ in range(5):
            request = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            response = client.ask(ApiKey.INIT_PRODUCER_ID, 4, request)
            assert (response.error_code, response.producer_epoch) == (0, 0)
            given.append(response.producer_id)
        broker.restart()
    assert len(set(given)) == 15


@pytest.mark.parametrize("damage", ["stop", "kill"])
def test_a_folder_of_no_topic_is_put_aside(damage):
    broker = VirtualBroker().with_topic("t")
    broker.client().produce("t")
    if damage == "stop":
        broker.stop()
    else:
        broker.machine.kill()
    disk = broker.machine.disk
    disk.make_directory("data/stranger-0")
    broker.boot()
    names = disk.list_directory("data")
    assert "stranger-0" not in names
    assert any(name.startswith("stranger-0.") for name in names)
    assert broker.client().read_all("t") == [b"v"]


# Disks that fail where no client writes


def filled(**configs):
    broker = VirtualBroker(settings={**QUICK_RETENTION, "log.dirs": "one,two"})
    broker.with_topic("t", partitions=2, segment_bytes=2_000, **configs)
    client = broker.client()
    for partition in (0, 1):
        for place in range(6):
            client.produce("t", partition, client.batch(b"%d" % place + bytes(900)))
    broker.steps()
    sick = next(index for index in (0, 1) if broker.partition("t", index).log.path.startswith("two"))
    return broker, client, sick


@pytest.mark.parametrize("operation", ["open", "write_vector", "rename", "unlink", "truncate", "data_sync"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EMFILE])
def test_housekeeping_on_a_failing_disk_never_ends_the_node(operation, code):
    broker, client, sick = filled(retention_ms=20_000, file_delete_delay_ms=0, flush_ms=1_000)
    broker.machine.disk.faults.fail(operation, code=code, path_contains="two/t-", times=1_000)
    for turn in range(6):
        broker.pass_time(10_000)
        if turn > 3:  # before that everything grows old, and the active segment too
            client.produce("t", sick)
        assert client.produce_error("t", 1 - sick) == 0, "the other directory goes on"
    broker.machine.disk.faults.heal()
    broker.pass_time(10_000)
    assert broker.metrics.handler_failures == 0
    assert client.produce_error("t", 1 - sick) == 0
    if code != errno.EIO and operation not in ("truncate", "data_sync"):
        broker.pass_time(10_000)
        assert client.produce_error("t", sick) == 0, (
            "what passes is only waited out; a sync that failed is not tried again"
        )


def test_a_segment_that_cannot_be_read_is_a_storage_error_and_not_the_end_of_the_connection():
    broker, client, sick = filled()
    broker.machine.disk.faults.fail("read", path_contains=f"two/t-{sick}", times=1_000)
    answer = client.fetch("t", sick, offset=1)
    assert answer.error_code == E.KAFKA_STORAGE_ERROR
    assert client.fetch("t", 1 - sick, offset=1).error_code == 0
    broker.machine.disk.faults.heal()
    assert client.fetch("t", sick, offset=1).error_code == 0
