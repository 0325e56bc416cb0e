"""Produce: which batches are taken, and which are refused with which code."""

import struct

import pytest

from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.records import header
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import CONTROL_BIT, CRC_AT, HEADER, TRANSACTIONAL_BIT, checksum
from headrace.wire.records.reader import batches, check_batch, records
from tests.broker.virtual import PRODUCE_VERSION, VirtualBroker, produce_frame, produce_request

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
        client.send_bytes(produce_frame(produce_request([("other", [(0, client.batch(value))])], acks=0)))
    last = client.produce("other", 0, client.batch(b"z"))
    assert last.base_offset == before + 2
    assert client.values("other", 0, before) == [b"x", b"y", b"z"]


def test_an_error_with_acks_zero_closes_the_connection_and_keeps_what_was_good(broker):
    client, watcher = broker.client(), broker.client()
    before = broker.partition("other").log.end_offset
    request = produce_request(
        [("other", [(0, client.batch(b"good"))]), ("nowhere", [(0, client.batch(b"bad"))])], acks=0
    )
    client.send_bytes(produce_frame(request))
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


def test_a_transactional_id_matters_only_to_batches_of_a_transaction(broker):
    request = produce_request([("t", [(0, broker.client().batch())])], transactional_id="bank")
    response = broker.client().ask(ApiKey.PRODUCE, 9, request)
    assert response.responses[0].partition_responses[0].error_code == E.NONE


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
def test_a_bad_batch_is_refused_and_the_connection_continues(broker, name, acks):
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
    return client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request).responses[0].partition_responses[0]


def test_null_records_far_into_a_read_are_refused_too(broker):
    client = broker.client()
    good = produce_request([("t", [(0, client.batch(bytes(1000)))])])
    null = produce_request([("t", [(0, None)])])
    sent = [client.send(ApiKey.PRODUCE, PRODUCE_VERSION, request) for request in (good, null)]
    answers = [client.wait(correlation).responses[0].partition_responses[0] for correlation in sent]
    assert [answer.error_code for answer in answers] == [E.NONE, E.INVALID_RECORD]
    assert answers[1].base_offset == -1
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


@pytest.mark.parametrize("version", [8, 9, 11])
def test_records_without_keys_are_named(version):
    """KIP-467: so that a client knows which of the batch it can send again (librdkafka's test 0011)."""
    broker = VirtualBroker().with_topic("t", cleanup_policy="compact")
    client = broker.client()
    with_key, without = NewRecord(client.now(), b"k", b"v"), NewRecord(client.now(), None, b"v")
    answer = client.produce("t", 0, bytes(build_batch([with_key, without, with_key, without])), version=version)
    assert answer.error_code == E.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1, 3]
    assert "key" in answer.error_message
    later = client.produce("t", 0, bytes(build_batch([with_key])), version=version)
    assert (later.error_code, later.record_errors, later.error_message) == (0, (), None)


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
