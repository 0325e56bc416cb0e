"""Produce: which batches are taken, which are refused with which code, and when an answer may leave."""

import errno
import struct

import pytest

from headrace.model.errors import ErrorCode
from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec
from headrace.wire.records import header
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import CONTROL_BIT, CRC_AT, HEADER, TRANSACTIONAL_BIT, checksum
from headrace.wire.records.reader import batches, check_batch, records
from tests.broker.virtual import LONG_MS, VirtualBroker, produce_request

E = ErrorCode


@pytest.fixture(scope="module")
def broker():
    """For tests that leave nothing behind but records."""
    return VirtualBroker().with_topic("t", partitions=4).with_topic("other")


def forged(batch, *, sealed=True, **fields):
    """The batch with header fields of other values, and a checksum that covers them unless not `sealed`."""
    forgery = bytearray(batch)
    values = list(HEADER.unpack_from(forgery))
    for place, value in fields.items():
        values[getattr(header, place)] = value
    HEADER.pack_into(forgery, 0, *values)
    if sealed:
        struct.pack_into(">I", forgery, CRC_AT, checksum(forgery))
    return bytes(forgery)


# Acks


def test_acks_one_and_all_answer_the_base_offset(broker):
    client = broker.client()
    first = client.produce("t", 0, client.batch(b"a", b"b"), acks=1)
    second = client.produce("t", 0, client.batch(b"c"), acks=-1)
    assert (first.error_code, second.error_code) == (0, 0)
    assert second.base_offset == first.base_offset + 2
    assert client.values("t", 0, first.base_offset) == [b"a", b"b", b"c"]


def test_acks_zero_is_appended_and_not_answered(broker):
    client = broker.client()
    before = broker.partition("other").log.end_offset
    for value in (b"x", b"y"):
        client.send_bytes(frame_of(client, produce_request([("other", [(0, client.batch(value))])], acks=0)))
    last = client.produce("other", 0, client.batch(b"z"))
    assert last.base_offset == before + 2
    assert client.values("other", 0, before) == [b"x", b"y", b"z"]


def frame_of(client, request, version=9):
    """A request whose answer the client is not to look for."""
    body = codec(ApiKey.PRODUCE).encode_request(request, version)
    return frames.request_frame(ApiKey.PRODUCE, version, 77, "test", body)


def test_an_error_with_acks_zero_closes_the_connection_and_keeps_what_was_good(broker):
    client, watcher = broker.client(), broker.client()
    before = broker.partition("other").log.end_offset
    request = produce_request(
        [("other", [(0, client.batch(b"good"))]), ("nowhere", [(0, client.batch(b"bad"))])], acks=0
    )
    client.send_bytes(frame_of(client, request))
    client.wait_closed()
    assert watcher.values("other", 0, before) == [b"good"]


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_other_acks_are_refused(broker, acks):
    assert broker.client().produce_error("t", acks=acks) == E.INVALID_REQUIRED_ACKS


# Who is written to


def test_unknown_topics_and_partitions(broker):
    client = broker.client()
    assert client.produce_error("nowhere") == E.UNKNOWN_TOPIC_OR_PARTITION
    for partition in (4, -1, 2**31 - 1, -(2**31)):
        assert client.produce_error("t", partition) == E.UNKNOWN_TOPIC_OR_PARTITION


def test_topic_ids_from_version_13(broker):
    client = broker.client()
    topic_id = client.topic_id("other")
    response = client.wait(client.send_produce(topic_id, version=13))
    assert response.responses[0].topic_id == topic_id
    assert response.responses[0].partition_responses[0].error_code == 0
    assert client.produce_error(bytes(range(16)), version=13) == E.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", [0, 1, 2])
def test_versions_before_the_current_batch_format_are_answered_unsupported(broker, version):
    answer = broker.client().produce("t", version=version)
    assert (answer.error_code, answer.base_offset) == (E.UNSUPPORTED_VERSION, -1)


def test_a_transactional_id_is_not_known_yet(broker):
    request = produce_request([("t", [(0, broker.client().batch())])], transactional_id="bank")
    response = broker.client().ask(ApiKey.PRODUCE, 9, request)
    assert response.responses[0].partition_responses[0].error_code == E.INVALID_PRODUCER_ID_MAPPING


def test_a_transactional_batch_of_a_request_without_a_transaction_is_refused(broker):
    client = broker.client()
    batch = client.batch(producer_id=4, producer_epoch=0, base_sequence=0, transactional=True)
    assert client.produce_error("t", 0, batch) == E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_each_partition_of_a_request_has_its_own_error(broker):
    client = broker.client()
    broken = forged(client.batch(), MAGIC=1)
    topics = [
        ("t", [(1, client.batch(b"one")), (2, broken), (9, client.batch()), (3, client.batch(b"three"))]),
        ("nowhere", [(0, client.batch())]),
        ("other", [(0, client.batch(b"o"))]),
    ]
    response = client.ask(ApiKey.PRODUCE, 9, produce_request(topics))
    answers = {
        (topic.name, answer.index): answer for topic in response.responses for answer in topic.partition_responses
    }
    errors = {place: answer.error_code for place, answer in answers.items()}
    assert errors == {
        ("t", 1): 0,
        ("t", 2): E.INVALID_RECORD,
        ("t", 9): E.UNKNOWN_TOPIC_OR_PARTITION,
        ("t", 3): 0,
        ("nowhere", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
        ("other", 0): 0,
    }
    for (topic, partition), value in ((("t", 1), b"one"), (("t", 3), b"three"), (("other", 0), b"o")):
        assert client.values(topic, partition, answers[topic, partition].base_offset) == [value]
    assert client.values("t", 2) == []


def test_two_record_sets_for_one_partition_are_appended_in_their_order(broker):
    client = broker.client()
    request = produce_request([("t", [(3, client.batch(b"1")), (3, client.batch(b"2"))])])
    answers = client.ask(ApiKey.PRODUCE, 9, request).responses[0].partition_responses
    assert answers[1].base_offset == answers[0].base_offset + 1
    assert client.values("t", 3, answers[0].base_offset) == [b"1", b"2"]


# What a batch must look like


def two_batches(client):
    return client.batch(b"a") + client.batch(b"b")


BAD_BATCHES = {
    "nothing": (lambda c: b"", E.INVALID_RECORD),
    "null": (lambda c: None, E.INVALID_RECORD),
    "shorter than a header": (lambda c: c.batch()[:60], E.CORRUPT_MESSAGE),
    "one byte": (lambda c: b"\0", E.CORRUPT_MESSAGE),
    "checksum": (lambda c: forged(c.batch(), sealed=False, LAST_OFFSET_DELTA=1), E.CORRUPT_MESSAGE),
    "last byte": (lambda c: c.batch()[:-1] + b"\xff", E.CORRUPT_MESSAGE),
    "length too short": (lambda c: forged(c.batch(), LENGTH=len(c.batch()) - 13), E.CORRUPT_MESSAGE),
    "length too long": (lambda c: forged(c.batch(), LENGTH=len(c.batch())), E.CORRUPT_MESSAGE),
    "length negative": (lambda c: forged(c.batch(), LENGTH=-1), E.CORRUPT_MESSAGE),
    "length huge": (lambda c: forged(c.batch(), LENGTH=2**31 - 1), E.CORRUPT_MESSAGE),
    "two batches": (two_batches, E.INVALID_RECORD),
    "old magic": (lambda c: forged(c.batch(), MAGIC=1), E.INVALID_RECORD),
    "future magic": (lambda c: forged(c.batch(), MAGIC=3), E.INVALID_RECORD),
    "no records": (lambda c: forged(c.batch(), RECORD_COUNT=0), E.INVALID_RECORD),
    "no records at all": (lambda c: forged(c.batch(), RECORD_COUNT=0, LAST_OFFSET_DELTA=-1), E.INVALID_RECORD),
    "count negative": (lambda c: forged(c.batch(), RECORD_COUNT=-5, LAST_OFFSET_DELTA=-6), E.INVALID_RECORD),
    "count too large": (lambda c: forged(c.batch(b"a", b"b"), RECORD_COUNT=3), E.INVALID_RECORD),
    "last offset delta": (lambda c: forged(c.batch(b"a", b"b"), LAST_OFFSET_DELTA=0), E.INVALID_RECORD),
    "control bit": (lambda c: forged(c.batch(), ATTRIBUTES=CONTROL_BIT), E.INVALID_RECORD),
    "transactional without producer": (lambda c: forged(c.batch(), ATTRIBUTES=TRANSACTIONAL_BIT), E.INVALID_RECORD),
    "producer without sequence": (lambda c: c.batch(producer_id=7, producer_epoch=0), E.INVALID_RECORD),
    "producer without epoch": (lambda c: c.batch(producer_id=7, base_sequence=0), E.INVALID_RECORD),
    "unknown codec": (lambda c: forged(c.batch(), ATTRIBUTES=5), E.UNSUPPORTED_COMPRESSION_TYPE),
}


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("name", BAD_BATCHES)
def test_a_bad_batch_is_refused_and_the_connection_goes_on(broker, name, acks):
    make, error = BAD_BATCHES[name]
    client = broker.client()
    for _ in range(2):
        before = broker.partition("t").log.end_offset
        answer = client.produce("t", 0, make(client), acks=acks) if make(client) is not None else null_records(client)
        assert (answer.error_code, answer.base_offset) == (error, -1)
        assert client.produce("t").base_offset == before, "nothing of it was appended"
    assert broker.metrics.handler_failures == 0


def null_records(client):
    request = produce_request([("t", [(0, None)])])
    return client.ask(ApiKey.PRODUCE, 9, request).responses[0].partition_responses[0]


def test_null_records_far_into_a_read_are_refused_too(broker):
    client = broker.client()
    frame = frame_of(client, produce_request([("t", [(0, client.batch(bytes(1000)))])]))
    null = frame_of(client, produce_request([("t", [(0, None)])]))
    client.send_bytes(frame + null)
    broker.steps()
    assert client.connection.receive().count(struct.pack(">ihq", 0, E.INVALID_RECORD, -1)) == 1
    assert broker.metrics.handler_failures == 0


def test_refused_batches_are_counted(broker):
    before = broker.metrics.produce_errors[E.CORRUPT_MESSAGE]
    client = broker.client()
    client.produce("t", 0, client.batch()[:-1] + b"\xff")
    assert broker.metrics.produce_errors[E.CORRUPT_MESSAGE] == before + 1


@pytest.mark.parametrize("compression", list(Compression))
def test_every_compression_is_stored_as_it_came(broker, compression):
    client = broker.client()
    batch = client.batch(b"x" * 500, b"y" * 500, compression=compression)
    offset = client.produce("t", 1, batch).base_offset
    stored = client.fetch("t", 1, offset).records
    assert bytes(stored[21:]) == batch[21:]
    assert client.values("t", 1, offset) == [b"x" * 500, b"y" * 500]


def test_zstd_needs_produce_version_7(broker):
    client = broker.client()
    batch = client.batch(b"x" * 100, compression=Compression.ZSTD)
    for version in (3, 6):
        assert client.produce_error("t", 0, batch, version=version) == E.UNSUPPORTED_COMPRESSION_TYPE
    assert client.produce_error("t", 0, batch, version=7) == 0
    lz4 = client.batch(b"x" * 100, compression=Compression.LZ4)
    assert client.produce_error("t", 0, lz4, version=3) == 0


def test_max_message_bytes_is_the_size_of_the_batch():
    broker = VirtualBroker().with_topic("t", max_message_bytes=500)
    client = broker.client()
    fitting = 500 - len(client.batch(b""))
    batches = [client.batch(bytes(fitting - less)) for less in range(4)]
    exact = next(batch for batch in batches if len(batch) <= 500)
    assert len(exact) >= 499
    assert client.produce_error("t", 0, exact) == 0
    assert client.produce_error("t", 0, client.batch(bytes(fitting + 1))) == E.MESSAGE_TOO_LARGE
    assert client.alter_configs(2, "t", {"max.message.bytes": 5000}) == 0
    assert client.produce_error("t", 0, client.batch(bytes(fitting + 1))) == 0


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_compacted_topics_need_keys(compression):
    broker = VirtualBroker().with_topic("t", cleanup_policy="compact")
    client = broker.client()
    assert client.produce_error("t", 0, client.batch(b"v", compression=compression)) == E.INVALID_RECORD
    assert client.produce_error("t", 0, client.batch(b"v", key=b"", compression=compression)) == 0
    half = build_batch(
        [NewRecord(client.now(), b"k", b"v"), NewRecord(client.now(), None, b"v")], compression=compression
    )
    assert client.produce_error("t", 0, bytes(half)) == E.INVALID_RECORD
    assert client.values("t") == [b"v"]


def test_a_compacted_topic_refuses_records_it_cannot_open():
    broker = VirtualBroker().with_topic("t", cleanup_policy="compact")
    client = broker.client()
    for compression in (Compression.GZIP, Compression.LZ4, Compression.SNAPPY, Compression.ZSTD):
        batch = forged(client.batch(b"not compressed", key=b"k"), ATTRIBUTES=int(compression))
        assert client.produce_error("t", 0, batch) == E.INVALID_RECORD
    assert broker.metrics.handler_failures == 0


# Timestamps


def test_log_append_time_is_the_brokers_and_the_checksum_is_right():
    broker = VirtualBroker().with_topic("t", message_timestamp_type="LogAppendTime")
    client = broker.client()
    answer = client.produce("t", 0, client.batch(b"v", timestamp=5))
    assert abs(answer.log_append_time_ms - client.now()) < 1000
    [batch] = batches(client.fetch("t").records)
    check_batch(batch)
    assert [record.timestamp for record in records(batch)] == [answer.log_append_time_ms]


def test_create_time_is_answered_with_no_append_time(broker):
    assert broker.client().produce("t").log_append_time_ms == -1


def test_timestamps_too_far_from_now_are_refused():
    bounds = {"message_timestamp_before_max_ms": 10_000, "message_timestamp_after_max_ms": 5_000}
    broker = VirtualBroker().with_topic("t", **bounds)
    client = broker.client()
    for delta, error in ((-9_000, 0), (-11_000, E.INVALID_TIMESTAMP), (4_000, 0), (6_000, E.INVALID_TIMESTAMP)):
        assert client.produce_error("t", 0, client.batch(timestamp=client.now() + delta)) == error
    assert client.produce_error("t", 0, client.batch(timestamp=-1)) == 0, "a record without a time is not too old"
    mixed = [NewRecord(client.now(), None, b"a"), NewRecord(client.now() + 60_000, None, b"b")]
    assert client.produce_error("t", 0, bytes(build_batch(mixed))) == E.INVALID_TIMESTAMP


def test_log_append_time_takes_any_timestamp():
    bounds = {"message_timestamp_before_max_ms": 10_000, "message_timestamp_after_max_ms": 5_000}
    broker = VirtualBroker().with_topic("t", message_timestamp_type="LogAppendTime", **bounds)
    client = broker.client()
    assert client.produce_error("t", 0, client.batch(timestamp=0)) == 0


# Idempotent producers


def sequenced(client, sequence, *values, epoch=0, producer=9):
    return client.batch(
        *(values or (b"s%d" % sequence,)), producer_id=producer, producer_epoch=epoch, base_sequence=sequence
    )


@pytest.fixture
def fresh():
    return VirtualBroker().with_topic("t")


def test_a_retried_batch_answers_its_original_offset_and_is_stored_once(fresh):
    client = fresh.client()
    batches = [sequenced(client, place) for place in range(7)]
    assert [client.produce("t", 0, batch).base_offset for batch in batches] == list(range(7))
    for place in (6, 5, 4, 3, 2):
        answer = client.produce("t", 0, batches[place])
        assert (answer.error_code, answer.base_offset) == (0, place), "the last five are remembered"
    assert client.produce_error("t", 0, batches[1]) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.read_all("t") == [b"s%d" % place for place in range(7)]


def test_a_retry_in_the_same_turn_is_recognised(fresh):
    client = fresh.client()
    batch = sequenced(client, 0)
    request = produce_request([("t", [(0, batch), (0, batch)])])
    answers = client.ask(ApiKey.PRODUCE, 9, request).responses[0].partition_responses
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0), (0, 0)]
    assert client.read_all("t") == [b"s0"]


def test_a_gap_in_the_sequence_is_refused_and_filled_later(fresh):
    client = fresh.client()
    assert client.produce_error("t", 0, sequenced(client, 0, b"a", b"b")) == 0
    assert client.produce_error("t", 0, sequenced(client, 3)) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.produce_error("t", 0, sequenced(client, 2)) == 0
    assert client.produce_error("t", 0, sequenced(client, 3)) == 0
    assert client.read_all("t") == [b"a", b"b", b"s2", b"s3"]


def test_a_part_of_a_batch_is_no_retry_of_it(fresh):
    client = fresh.client()
    assert client.produce_error("t", 0, sequenced(client, 0, b"a", b"b", b"c")) == 0
    assert client.produce_error("t", 0, sequenced(client, 0, b"a")) == E.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one(fresh):
    client = fresh.client()
    assert client.produce_error("t", 0, sequenced(client, 0)) == 0
    assert client.produce_error("t", 0, sequenced(client, 1, epoch=1)) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.produce_error("t", 0, sequenced(client, 0, b"new", epoch=1)) == 0
    assert client.produce_error("t", 0, sequenced(client, 1)) == E.INVALID_PRODUCER_EPOCH
    assert client.produce_error("t", 0, sequenced(client, 1, epoch=1)) == 0
    assert client.read_all("t") == [b"s0", b"new", b"s1"]


def test_sequences_wrap_around(fresh):
    client = fresh.client()
    assert client.produce_error("t", 0, sequenced(client, 2**31 - 2, b"a", b"b")) == 0
    assert client.produce_error("t", 0, sequenced(client, 0, b"c")) == 0
    assert client.produce("t", 0, sequenced(client, 2**31 - 2, b"a", b"b")).base_offset == 0
    assert client.read_all("t") == [b"a", b"b", b"c"]


def test_producers_do_not_disturb_one_another(fresh):
    client = fresh.client()
    for sequence in range(3):
        for producer in (1, 2, 3):
            assert client.produce_error("t", 0, sequenced(client, sequence, producer=producer)) == 0


def test_a_retry_answers_the_append_time_of_the_original():
    broker = VirtualBroker().with_topic("t", message_timestamp_type="LogAppendTime")
    client = broker.client()
    first = client.produce("t", 0, sequenced(client, 0))
    broker.pass_time(5_000)
    again = client.produce("t", 0, sequenced(client, 0))
    assert (again.base_offset, again.log_append_time_ms) == (0, first.log_append_time_ms)


def test_a_producer_that_was_silent_too_long_is_forgotten():
    settings = {"producer.id.expiration.ms": "60000", "log.retention.check.interval.ms": "10000"}
    broker = VirtualBroker(settings=settings).with_topic("t")
    client = broker.client()
    assert client.produce_error("t", 0, sequenced(client, 0)) == 0
    assert client.produce_error("t", 0, sequenced(client, 5)) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    broker.pass_time(61_000)
    broker.pass_time(11_000)
    assert client.produce_error("t", 0, sequenced(client, 5)) == 0


# When the answer leaves


def synced_topic(**settings):
    return VirtualBroker(settings=settings).with_topic("t", partitions=2, flush_messages=1)


def test_flush_messages_one_answers_only_after_the_sync():
    broker = synced_topic()
    broker.hold_syncs()
    client, reader = broker.client(), broker.client()
    asked = client.send_produce("t")
    waiting = reader.send_fetch(("t", 0, 0), wait_ms=LONG_MS)
    broker.steps()
    assert broker.partition("t").log.end_offset == 1, "it is written"
    assert not client.has_answer(asked)
    assert not reader.has_answer(waiting), "and nobody reads above the high watermark"
    broker.release_syncs()
    assert client.wait(asked).responses[0].partition_responses[0].error_code == 0
    assert reader.wait(waiting).responses[0].partitions[0].high_watermark == 1


def test_acks_one_waits_for_the_sync_that_a_topic_asks_for():
    broker = synced_topic()
    broker.hold_syncs()
    client = broker.client()
    asked = client.send_produce("t", acks=1)
    broker.steps()
    assert not client.has_answer(asked)
    broker.release_syncs()
    assert client.wait(asked).responses[0].partition_responses[0].error_code == 0


def test_acks_one_does_not_wait_where_no_sync_is_asked_for():
    broker = VirtualBroker().with_topic("t")
    broker.hold_syncs()
    assert broker.client().produce("t", acks=1).base_offset == 0
    assert broker.client().produce("t", acks=-1).base_offset == 1


def test_answers_keep_their_order_though_one_waits():
    broker = synced_topic()
    broker.with_topic("loose")
    broker.hold_syncs()
    client = broker.client()
    slow, quick = client.send_produce("t"), client.send_produce("loose")
    broker.steps()
    assert broker.partition("loose").log.end_offset == 1
    assert not client.has_answer(quick)
    broker.release_syncs()
    for correlation in (slow, quick):
        assert client.wait(correlation).responses[0].partition_responses[0].error_code == 0


def test_acks_all_gives_up_after_its_timeout_and_the_record_stays():
    broker = synced_topic()
    broker.hold_syncs()
    client = broker.client()
    asked = client.send_produce("t", timeout_ms=2_000)
    broker.pass_time(1_000)
    assert not client.has_answer(asked)
    broker.pass_time(2_000)
    answer = client.wait(asked).responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (E.REQUEST_TIMED_OUT, -1)
    broker.release_syncs()
    broker.steps()
    assert client.read_all("t") == [b"v"]
    assert client.produce("t").base_offset == 1


def test_a_request_waits_for_all_its_partitions_and_one_may_time_out():
    broker = synced_topic()
    broker.with_topic("loose")
    broker.hold_syncs()
    client = broker.client()
    batch = client.batch()
    request = produce_request([("t", [(0, batch), (1, batch)]), ("loose", [(0, batch)])], timeout_ms=2_000)
    asked = client.send(ApiKey.PRODUCE, 9, request)
    broker.pass_time(3_000)
    answers = [each for topic in client.wait(asked).responses for each in topic.partition_responses]
    assert [each.error_code for each in answers] == [E.REQUEST_TIMED_OUT, E.REQUEST_TIMED_OUT, 0]


def test_a_failed_sync_takes_the_directory_offline():
    broker = VirtualBroker(settings={"log.dirs": "meta,data1,data2"})
    broker.with_topic("a", flush_messages=1).with_topic("b", flush_messages=1).with_topic("c").with_topic("d")
    home = {topic: broker.partition(topic).log.path.split("/")[0] for topic in "abcd"}
    topic = next(topic for topic in "ab" if home[topic] != "meta")
    broker.machine.disk.faults.fail("data_sync", path_contains=f"{topic}-0")
    client, reader = broker.client(), broker.client()
    waiting = reader.send_fetch((topic, 0, 0), wait_ms=LONG_MS)
    broker.steps()
    assert client.produce_error(topic) == E.KAFKA_STORAGE_ERROR
    assert reader.wait(waiting).responses[0].partitions[0].error_code == E.KAFKA_STORAGE_ERROR
    for name in "abcd":
        expected = E.KAFKA_STORAGE_ERROR if home[name] == home[topic] else 0
        assert client.produce_error(name) == expected
        assert client.fetch(name).error_code == expected
    partition = client.metadata(topic).topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id) == (E.LEADER_NOT_AVAILABLE, -1)
    assert not broker.node.failed


def test_a_failed_write_is_a_storage_error_and_closes_acks_zero():
    broker = VirtualBroker(settings={"log.dirs": "meta,data1"}).with_topic("a", partitions=2)
    place = next(index for index in (0, 1) if broker.partition("a", index).log.path.startswith("data1"))
    broker.machine.disk.faults.fail("write_vector", path_contains=f"a-{place}")
    client, silent, other = broker.client(), broker.client(), broker.client()
    silent.send_bytes(frame_of(silent, produce_request([("a", [(place, silent.batch())])], acks=0)))
    correlation = client.send_produce("a", place)
    silent.wait_closed()
    assert client.wait(correlation).responses[0].partition_responses[0].error_code == E.KAFKA_STORAGE_ERROR
    answer = client.produce("a", place)
    assert (answer.error_code, answer.base_offset) == (E.KAFKA_STORAGE_ERROR, -1)
    assert other.produce_error("a", 1 - place) == 0, "the other directory goes on"


def test_a_full_disk_refuses_the_turn_and_heals():
    broker = VirtualBroker().with_topic("t").with_topic("other")
    client, silent = broker.client(), broker.client()
    assert client.produce("t", 0, sequenced(client, 0)).base_offset == 0
    broker.machine.disk.faults.fail("write_vector", code=errno.ENOSPC, path_contains="t-0", times=2)
    answer = client.produce("t", 0, sequenced(client, 1))
    assert (answer.error_code, answer.base_offset) == (E.KAFKA_STORAGE_ERROR, -1)
    silent.send_bytes(frame_of(silent, produce_request([("t", [(0, silent.batch())])], acks=0)))
    silent.wait_closed()
    assert client.produce_error("other") == 0
    assert client.produce("t", 0, sequenced(client, 1)).base_offset == 1, "the sequence goes on where it was"
    assert client.read_all("t") == [b"s0", b"s1"]


def test_a_request_over_two_directories_fails_only_where_the_disk_does():
    broker = VirtualBroker(settings={"log.dirs": "meta,data1"}).with_topic("a", partitions=2)
    place = next(index for index in (0, 1) if broker.partition("a", index).log.path.startswith("data1"))
    broker.machine.disk.faults.fail("write_vector", path_contains=f"a-{place}")
    client = broker.client()
    response = client.ask(ApiKey.PRODUCE, 9, produce_request([("a", [(0, client.batch()), (1, client.batch())])]))
    errors = {each.index: each.error_code for each in response.responses[0].partition_responses}
    assert errors == {place: E.KAFKA_STORAGE_ERROR, 1 - place: 0}


def test_a_producer_that_left_harms_nobody_though_its_sync_ends_later():
    broker = synced_topic()
    broker.hold_syncs()
    gone, staying = broker.client(), broker.client()
    gone.send_produce("t")
    correlation = staying.send_produce("t", 0, staying.batch(b"w"))
    broker.steps()
    gone.connection.reset()
    broker.steps()
    broker.release_syncs()
    assert staying.wait(correlation).responses[0].partition_responses[0].error_code == 0
    assert sorted(staying.read_all("t")) == [b"v", b"w"]
