"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords: where a log begins, ends, and what was written when."""

from typing import Any

import pytest

from headrace.model.errors import ErrorCode
from headrace.sim.clock import WALL_START_MS
from headrace.wire.apis import ApiKey
from headrace.wire.messages import delete_records, list_offsets, offset_for_leader_epoch
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from tests.broker.virtual import LONG_MS, VirtualBroker

E = ErrorCode
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
T = WALL_START_MS


def list_request(*asked, isolation=0, leader_epoch=-1):
    """`asked` are (topic, partition, timestamp)."""
    topics: dict[Any, Any] = {}
    for topic, partition, timestamp in asked:
        part = list_offsets.ListOffsetsRequestPartition(
            partition_index=partition, timestamp=timestamp, current_leader_epoch=leader_epoch
        )
        topics.setdefault(topic, []).append(part)
    return list_offsets.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=tuple(
            list_offsets.ListOffsetsRequestTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items()
        ),
        timeout_ms=LONG_MS,
    )


def offset_at(client, timestamp, *, topic="t", partition=0, version=11, **options):
    request = list_request((topic, partition, timestamp), **options)
    return client.ask(ApiKey.LIST_OFFSETS, version, request).topics[0].partitions[0]


def delete_below(client, *asked, topic="t"):
    """`asked` are (partition, offset); {partition: (error, low watermark)}."""
    request = delete_records.DeleteRecordsRequest(
        topics=(
            delete_records.DeleteRecordsRequestTopic(
                name=topic,
                partitions=tuple(
                    delete_records.DeleteRecordsRequestPartition(partition_index=partition, offset=offset)
                    for partition, offset in asked
                ),
            ),
        ),
        timeout_ms=LONG_MS,
    )
    response = client.ask(ApiKey.DELETE_RECORDS, 2, request)
    return {
        answer.partition_index: (answer.error_code, answer.low_watermark) for answer in response.topics[0].partitions
    }


def timed(client, *timestamps, **options):
    records = [NewRecord(timestamp, None, b"%d" % timestamp) for timestamp in timestamps]
    return bytes(build_batch(records, **options))


@pytest.fixture(scope="module")
def broker():
    """Partition 0: offsets 0 to 8 at T+0, 10, 20 | 30, 25, 40 | 40, 50, 45; partition 1 is empty."""
    broker = VirtualBroker().with_topic("t", partitions=2)
    client = broker.client()
    for times in ((0, 10, 20), (30, 25, 40), (40, 50, 45)):
        client.produce("t", 0, timed(client, *[T + time for time in times]))
    return broker


# ListOffsets


@pytest.mark.parametrize("version", range(1, 12))
def test_first_and_last(broker, version):
    client = broker.client()
    first, last = offset_at(client, EARLIEST, version=version), offset_at(client, LATEST, version=version)
    assert (first.error_code, first.offset, last.error_code, last.offset) == (0, 0, 0, 9)
    assert first.leader_epoch == last.leader_epoch == (0 if version >= 4 else -1)
    assert (first.timestamp, last.timestamp) == (-1, -1)


def test_version_0_lists_offsets(broker):
    client = broker.client()
    assert offset_at(client, LATEST, version=0).old_style_offsets == (9,)
    assert offset_at(client, EARLIEST, version=0).old_style_offsets == (0,)


@pytest.mark.parametrize(
    ("time", "offset", "found"),
    [(-5, 0, 0), (0, 0, 0), (1, 1, 10), (15, 2, 20), (20, 2, 20), (21, 3, 30), (26, 3, 30), (31, 5, 40), (40, 5, 40),
     (41, 7, 50), (50, 7, 50)],
)  # fmt: skip
def test_the_first_record_at_or_after_a_time_not_its_batch(broker, time, offset, found):
    answer = offset_at(broker.client(), T + time)
    assert (answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch) == (0, offset, T + found, 0)


def test_a_time_behind_all_records_is_not_found(broker):
    answer = offset_at(broker.client(), T + 51)
    assert (answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch) == (0, -1, -1, -1)


def test_the_newest_record(broker):
    answer = offset_at(broker.client(), MAX_TIMESTAMP)
    assert (answer.offset, answer.timestamp) == (7, T + 50)
    nothing = offset_at(broker.client(), MAX_TIMESTAMP, partition=1)
    assert (nothing.error_code, nothing.offset, nothing.timestamp) == (0, -1, -1)


def test_an_empty_partition(broker):
    client = broker.client()
    assert offset_at(client, EARLIEST, partition=1).offset == 0
    assert offset_at(client, LATEST, partition=1).offset == 0
    assert offset_at(client, T, partition=1).offset == -1


def test_nothing_is_tiered(broker):
    client = broker.client()
    assert offset_at(client, EARLIEST_LOCAL).offset == 0
    for spec in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        answer = offset_at(client, spec)
        assert (answer.error_code, answer.offset) == (0, -1)


def test_unknown_specs_topics_and_partitions(broker):
    client = broker.client()
    assert offset_at(client, -7).error_code == E.INVALID_REQUEST
    assert offset_at(client, LATEST, partition=7).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert offset_at(client, LATEST, topic="nowhere").error_code == E.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("spec", "first_version"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11)],
)
def test_a_spec_is_refused_in_versions_before_it(broker, spec, first_version):
    for version, error in ((first_version - 1, E.UNSUPPORTED_VERSION), (first_version, E.NONE)):
        response = broker.client().ask(ApiKey.LIST_OFFSETS, version, list_request(("t", 0, spec)))
        assert response.topics[0].partitions[0].error_code == error


def test_many_partitions_and_topics_keep_their_places(broker):
    request = list_request(("t", 0, T + 21), ("t", 1, LATEST), ("nowhere", 3, LATEST), ("t", 9, EARLIEST))
    response = broker.client().ask(ApiKey.LIST_OFFSETS, 7, request)
    told = [
        (topic.name, part.partition_index, part.error_code, part.offset)
        for topic in response.topics
        for part in topic.partitions
    ]
    assert told == [("t", 0, 0, 3), ("t", 1, 0, 0), ("t", 9, 3, -1), ("nowhere", 3, 3, -1)]


def test_a_partition_named_twice_is_an_invalid_request(broker):
    answers = broker.client().ask(ApiKey.LIST_OFFSETS, 7, list_request(("t", 0, LATEST), ("t", 0, EARLIEST)))
    assert [part.error_code for part in answers.topics[0].partitions].count(E.INVALID_REQUEST) >= 1


def test_the_leader_epoch_is_checked(broker):
    client = broker.client()
    assert offset_at(client, LATEST, leader_epoch=0).error_code == 0
    assert offset_at(client, LATEST, leader_epoch=1).error_code == E.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.ZSTD])
def test_times_inside_compressed_batches(compression):
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    client.produce("t", 0, timed(client, *[T + 10 * place for place in range(50)], compression=compression))
    assert offset_at(client, T + 333).offset == 34


def test_times_with_log_append_time():
    broker = VirtualBroker().with_topic("t", message_timestamp_type="LogAppendTime")
    client = broker.client()
    first = client.produce("t", 0, timed(client, 1, 2, 3)).log_append_time_ms
    broker.pass_time(1000)
    second = client.produce("t", 0, timed(client, 1, 2, 3)).log_append_time_ms
    assert second > first
    answer = offset_at(client, first + 1)
    assert (answer.offset, answer.timestamp) == (3, second)
    assert offset_at(client, first).offset == 0


def test_latest_is_the_high_watermark_and_times_stop_there():
    broker = VirtualBroker().with_topic("t", flush_messages=1)
    client, writer = broker.client(), broker.client()
    writer.produce("t", 0, timed(writer, T))
    broker.hold_syncs()
    writer.send_produce("t", 0, timed(writer, T + 100))
    broker.steps()
    assert broker.partition("t").log.end_offset == 2
    assert offset_at(client, LATEST).offset == 1
    assert offset_at(client, LATEST, isolation=1).offset == 1
    assert offset_at(client, T + 50).offset == -1
    broker.release_syncs()
    broker.steps()
    assert offset_at(client, LATEST).offset == 2
    assert offset_at(client, T + 50).offset == 1


def test_a_disk_that_cannot_be_read_is_a_storage_error_of_that_partition():
    broker = VirtualBroker().with_topic("t", partitions=2)
    client = broker.client()
    for partition in (0, 1):
        client.produce("t", partition, timed(client, T))
    broker.machine.disk.faults.fail("read", path_contains="t-0", times=50)
    response = client.ask(ApiKey.LIST_OFFSETS, 7, list_request(("t", 0, T), ("t", 1, T)))
    assert [part.error_code for part in response.topics[0].partitions] == [E.KAFKA_STORAGE_ERROR, 0]


# OffsetForLeaderEpoch


def end_of_epoch(client, epoch, *, partition=0, topic="t", current=-1, version=4):
    part = offset_for_leader_epoch.OffsetForLeaderEpochRequestPartition(
        partition=partition, current_leader_epoch=current, leader_epoch=epoch
    )
    request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=(offset_for_leader_epoch.OffsetForLeaderEpochRequestTopic(topic=topic, partitions=(part,)),),
    )
    answer = client.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, request).topics[0].partitions[0]
    return answer.error_code, answer.leader_epoch, answer.end_offset


def test_ends_of_leader_epochs_over_restarts():
    broker = VirtualBroker(seed=3).with_topic("t", partitions=2)
    for records in (2, 0, 3):
        client = broker.client()
        for _ in range(records):
            client.produce("t")
        broker.restart()
    client = broker.client()
    client.produce("t")
    # A restart takes two epochs: one without a leader, and one under the new process.
    assert client.metadata("t").topics[0].partitions[0].leader_epoch == 6
    assert end_of_epoch(client, 0) == (0, 0, 2)
    assert end_of_epoch(client, 2) == (0, 0, 2), "epoch 2 wrote nothing"
    assert end_of_epoch(client, 4) == (0, 4, 5)
    assert end_of_epoch(client, 6) == (0, 6, 6)
    assert end_of_epoch(client, 7) == (0, -1, -1)
    assert end_of_epoch(client, 4, current=6) == (0, 4, 5)
    assert end_of_epoch(client, 4, current=5)[0] == E.FENCED_LEADER_EPOCH
    assert end_of_epoch(client, 4, current=7)[0] == E.UNKNOWN_LEADER_EPOCH
    assert end_of_epoch(client, 0, partition=5)[0] == E.UNKNOWN_TOPIC_OR_PARTITION
    assert end_of_epoch(client, 0, topic="nowhere")[0] == E.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_epoch_ends(broker, version):
    error, epoch, end = end_of_epoch(broker.client(), 0, version=version)
    assert (error, end) == (0, 9)
    assert epoch == (0 if version >= 1 else -1)


# DeleteRecords


def test_records_are_deleted_up_to_an_offset():
    broker = VirtualBroker().with_topic("t", partitions=2)
    client = broker.client()
    for value in (b"a", b"b", b"c", b"d"):
        client.produce("t", 0, client.batch(value))
    assert delete_below(client, (0, 2), (1, 0)) == {0: (0, 2), 1: (0, 0)}
    assert offset_at(client, EARLIEST).offset == 2
    assert client.fetch("t", offset=1).error_code == E.OFFSET_OUT_OF_RANGE
    assert client.read_all("t", 0, 2) == [b"c", b"d"]
    assert delete_below(client, (0, 1)) == {0: (0, 2)}, "below the start there is nothing to delete"
    assert delete_below(client, (0, -1)) == {0: (0, 4)}, "-1 is the high watermark"
    assert client.produce("t", 0, client.batch(b"e")).base_offset == 4
    assert client.read_all("t", 0, 4) == [b"e"]


@pytest.mark.parametrize("offset", [5, -2, 2**63 - 1, -(2**63)])
def test_only_what_is_committed_can_be_deleted(offset):
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    client.produce("t")
    assert delete_below(client, (0, offset)) == {0: (E.OFFSET_OUT_OF_RANGE, -1)}
    assert delete_below(client, (3, 0)) == {3: (E.UNKNOWN_TOPIC_OR_PARTITION, -1)}
    assert delete_below(client, (0, 0), topic="nowhere") == {0: (E.UNKNOWN_TOPIC_OR_PARTITION, -1)}
    assert client.read_all("t") == [b"v"]


def test_records_of_a_compacted_topic_are_not_deleted():
    broker = (
        VirtualBroker().with_topic("t", cleanup_policy="compact").with_topic("both", cleanup_policy="compact,delete")
    )
    client = broker.client()
    for topic in ("t", "both"):
        client.produce(topic, 0, client.batch(b"v", key=b"k"))
    assert delete_below(client, (0, 1)) == {0: (E.POLICY_VIOLATION, -1)}
    assert delete_below(client, (0, 1), topic="both") == {0: (0, 1)}


@pytest.mark.parametrize("end", ["restart", "kill"])
def test_deleted_records_stay_deleted(end):
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    for _ in range(5):
        client.produce("t")
    delete_below(client, (0, 3))
    broker.steps()
    if end == "restart":
        broker.restart()
    else:
        broker.machine.kill()
        broker.boot()
    client = broker.client()
    assert offset_at(client, EARLIEST).offset == 3
    assert client.produce("t").base_offset == 5


def test_times_are_searched_behind_the_new_start():
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    client.produce("t", 0, timed(client, T, T + 10, T + 20, T + 30))
    delete_below(client, (0, 2))
    answer = offset_at(client, T)
    assert (answer.offset, answer.timestamp) == (2, T + 20)


def test_a_deletion_from_many_partitions_writes_the_checkpoint_once(monkeypatch):
    broker = VirtualBroker().with_topic("t", partitions=5)
    client = broker.client()
    for partition in range(5):
        assert client.produce_error("t", partition, client.batch(b"a", b"b")) == E.NONE
    partitions = broker.node.broker.partitions
    checkpoint, calls = partitions.checkpoint, []
    monkeypatch.setattr(partitions, "checkpoint", lambda: calls.append(checkpoint()))
    assert set(delete_below(client, *((partition, 1) for partition in range(5))).values()) == {(E.NONE, 1)}
    assert len(calls) == 1
    assert set(delete_below(client, *((partition, 1) for partition in range(5))).values()) == {(E.NONE, 1)}
    assert len(calls) == 1, "nothing was deleted"
