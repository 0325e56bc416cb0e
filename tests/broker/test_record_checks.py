"""Bytes that only look like records are refused before they are stored: by header always, by their records as asked."""

import gzip

import pytest

from headrace.broker.partitions import soundness
from headrace.model.configs import ConfigLayer
from headrace.model.errors import ErrorCode
from headrace.wire import compiled
from headrace.wire.apis import ApiKey
from headrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsRequestResource
from headrace.wire.records import header, walk
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression, compress
from tests.broker.virtual import BROKER_RESOURCE, TOPIC_RESOURCE, VirtualBroker, produce_request
from tests.wire.records.forged import with_body, with_header

GOOD = bytes(build_batch([NewRecord(1, b"k%d" % number, b"value") for number in range(3)]))
CODECS = [codec for codec in Compression if codec is not Compression.NONE]
RECORDS = GOOD[header.HEADER_SIZE :]
INT32_MAX = 2**31 - 1


def lying(position: int, byte: int) -> bytes:
    """The good records with one byte changed and the checksum made right."""
    body = bytearray(RECORDS)
    body[position] = byte
    return bytes(with_body(bytes(body), 3))


def packed(codec: int, body: bytes, count: int) -> bytes:
    return bytes(with_header(with_body(compress(codec, body), count), ATTRIBUTES=codec))


BITS = {
    "log append time": (header.LOG_APPEND_TIME_BIT, ErrorCode.INVALID_TIMESTAMP),
    "delete horizon": (header.DELETE_HORIZON_BIT, ErrorCode.INVALID_RECORD),
    "control": (header.CONTROL_BIT, ErrorCode.INVALID_RECORD),
    **{f"bit {bit}": (1 << bit, ErrorCode.INVALID_RECORD) for bit in range(7, 15)},
    "bit 15": (-(1 << 15), ErrorCode.INVALID_RECORD),
}
BAD_RECORDS = {
    "a record longer than it is": lying(0, RECORDS[0] + 2),
    "a record shorter than it is": lying(0, RECORDS[0] - 2),
    "a key longer than it is": lying(4, RECORDS[4] + 2),
    "an offset twice": lying(len(RECORDS) // 3 + 3, 0),
    "more bytes than records": bytes(with_body(RECORDS + RECORDS, 3)),
    "fewer records than declared": bytes(with_body(RECORDS, 4)),
    "garbage": bytes(with_body(bytes(range(200)), 2)),
}


@pytest.fixture(scope="module")
def broker():
    made = VirtualBroker()
    for level in ("header", "uncompressed", "all"):
        made.with_topic(level, headrace_validate_records=level)
    made.with_topic("default")
    made.with_topic("compact", cleanup_policy="compact", headrace_validate_records="all")
    made.with_topic("stored", compression_type="zstd", headrace_validate_records="all")
    return made


def refused(broker: VirtualBroker, topic: str, batch: bytes, error: ErrorCode) -> None:
    """It may come first on its connection or behind requests like it."""
    client = broker.client()
    end = broker.partition(topic, 0).log.end_offset
    assert client.produce_error(topic, 0, batch) == error
    assert client.produce_error(topic, 0, GOOD) == 0
    assert client.produce_error(topic, 0, batch) == error
    assert broker.partition(topic, 0).log.end_offset == end + 3
    client.close()


@pytest.mark.parametrize("bit", BITS)
@pytest.mark.parametrize("topic", ["header", "default"])
def test_attribute_bits_that_clients_may_not_set(broker: VirtualBroker, topic: str, bit: str) -> None:
    attributes, error = BITS[bit]
    refused(broker, topic, bytes(with_header(GOOD, ATTRIBUTES=attributes)), error)


@pytest.mark.parametrize("topic", ["header", "default"])
@pytest.mark.parametrize("count", [100, 2**20, INT32_MAX])
def test_more_records_than_fit(broker: VirtualBroker, topic: str, count: int) -> None:
    refused(broker, topic, bytes(with_body(RECORDS, count)), ErrorCode.INVALID_RECORD)


@pytest.mark.parametrize("codec", CODECS)
def test_more_records_than_any_compression_holds(broker: VirtualBroker, codec: Compression) -> None:
    refused(broker, "header", packed(codec, RECORDS, INT32_MAX), ErrorCode.INVALID_RECORD)


@pytest.mark.parametrize("bad", BAD_RECORDS)
@pytest.mark.parametrize("topic", ["uncompressed", "all", "compact", "stored"])
def test_bad_records_of_an_uncompressed_batch(broker: VirtualBroker, topic: str, bad: str) -> None:
    refused(broker, topic, BAD_RECORDS[bad], ErrorCode.INVALID_RECORD)


def test_a_topic_that_asks_for_headers_alone_stores_what_has_a_good_one(broker: VirtualBroker) -> None:
    client = broker.client()
    for _ in range(2):
        assert client.produce_error("header", 0, BAD_RECORDS["garbage"]) == 0


@pytest.mark.skipif(not compiled.has_request_helper(), reason="the default without the compiled helper is header")
@pytest.mark.parametrize("bad", BAD_RECORDS)
def test_the_default_walks_uncompressed_batches(broker: VirtualBroker, bad: str) -> None:
    refused(broker, "default", BAD_RECORDS[bad], ErrorCode.INVALID_RECORD)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("topic", ["all", "compact", "stored"])
def test_bad_records_of_a_compressed_batch(broker: VirtualBroker, topic: str, codec: Compression) -> None:
    records = bytearray(RECORDS)
    records[0] += 2
    refused(broker, topic, packed(codec, bytes(records), 3), ErrorCode.INVALID_RECORD)
    refused(broker, topic, packed(codec, compress(codec, RECORDS), 3), ErrorCode.INVALID_RECORD)  # nested


@pytest.mark.parametrize("topic", ["all", "compact", "stored"])
def test_bytes_that_are_not_gzip_under_gzip(broker: VirtualBroker, topic: str) -> None:
    garbage = with_header(with_body(bytes(range(100)), 3), ATTRIBUTES=Compression.GZIP)
    refused(broker, topic, bytes(garbage), ErrorCode.INVALID_RECORD)
    cut = with_header(with_body(gzip.compress(RECORDS)[:-9], 3), ATTRIBUTES=Compression.GZIP)
    refused(broker, topic, bytes(cut), ErrorCode.INVALID_RECORD)


@pytest.mark.parametrize("topic", ["header", "uncompressed", "all", "default"])
@pytest.mark.parametrize("codec", list(Compression))
def test_good_batches_are_stored(broker: VirtualBroker, topic: str, codec: Compression) -> None:
    client = broker.client()
    first = broker.partition(topic, 0).log.end_offset
    few = build_batch([NewRecord(1, None, b"v", (("h", None), ("i", b"1")))] * 3, compression=codec)
    many = build_batch([NewRecord(1, b"k", bytes(100))] * 3_000, compression=codec)
    for place, batch in enumerate((few, many, few, many)):
        expected = first + (place + 1) // 2 * 3 + place // 2 * 3_000
        assert client.produce(topic, 0, bytes(batch)).base_offset == expected
    client.close()


@pytest.mark.parametrize("codec", list(Compression))
def test_large_batches_are_walked_beside_the_loop(
    broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch, codec: Compression
) -> None:
    monkeypatch.setattr(soundness, "WALKED_ON_LOOP_RECORDS_MAX", 10)
    client = broker.client()
    good = build_batch([NewRecord(1, b"k", bytes(100))] * 5_000, compression=codec)
    broken = build_batch([NewRecord(1, b"k", bytes(100))] * 5_000, compression=Compression.NONE)
    broken[header.HEADER_SIZE + 5] += 2  # the length of the first key
    bad = packed(codec, bytes(broken[header.HEADER_SIZE :]), 5_000)
    walked = []
    by_helper = soundness.records_error_by_helper

    def count(*given):
        walked.append(1)
        return by_helper(*given)

    monkeypatch.setattr(soundness, "records_error_by_helper", count)
    assert client.produce_error("all", 0, bytes(good)) == 0
    assert client.produce_error("all", 0, bad) == ErrorCode.INVALID_RECORD
    assert client.produce_error("all", 0, bytes(good)) == 0
    assert len(walked) == 3
    client.close()


def test_without_the_helper_python_walks(broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soundness, "are_sound", walk.are_sound_plainly)
    monkeypatch.setattr(soundness, "WALKED_ON_LOOP_RECORDS_MAX", soundness.PLAINLY_WALKED_RECORDS_MAX)
    refused(broker, "all", BAD_RECORDS["an offset twice"], ErrorCode.INVALID_RECORD)
    large = build_batch([NewRecord(1, b"k", bytes(10))] * 2_000)
    assert broker.client().produce_error("all", 0, bytes(large)) == 0


@pytest.mark.parametrize(("has_helper", "level"), [(True, "uncompressed"), (False, "header")])
def test_the_level_in_force_is_described(
    broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch, has_helper: bool, level: str
) -> None:
    monkeypatch.setattr(soundness, "has_request_helper", lambda: has_helper)
    client = broker.client()
    for kind, name, expected in (
        (TOPIC_RESOURCE, "default", level),
        (TOPIC_RESOURCE, "all", "all"),
        (BROKER_RESOURCE, str(broker.node.config.node_id), level),
    ):
        resource = DescribeConfigsRequestResource(
            resource_type=kind, resource_name=name, configuration_keys=("headrace.validate.records",)
        )
        answer = client.ask(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=(resource,)))
        [described] = answer.results[0].configs
        assert (described.name, described.value) == ("headrace.validate.records", expected)
        assert (described.config_source == ConfigLayer.DEFAULT) is (expected != "all")
    client.close()


def test_the_level_of_a_topic_can_be_changed(broker: VirtualBroker) -> None:
    broker.with_topic("changed", headrace_validate_records="header")
    client, bad = broker.client(), packed(Compression.GZIP, b"no records", 1)
    assert client.produce_error("changed", 0, bad) == 0
    for level, error in (("all", ErrorCode.INVALID_RECORD), ("uncompressed", ErrorCode.NONE)):
        assert client.alter_configs(TOPIC_RESOURCE, "changed", {"headrace.validate.records": level}) == 0
        assert client.produce_error("changed", 0, bad) == error
    assert client.produce_error("changed", 0, BAD_RECORDS["garbage"]) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
@pytest.mark.parametrize("on_loop_max", [1, 1_000_000])
def test_an_idempotent_producer_keeps_its_order_where_helpers_walk(
    broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch, codec: Compression, on_loop_max: int
) -> None:
    monkeypatch.setattr(soundness, "WALKED_ON_LOOP_RECORDS_MAX", on_loop_max)
    client = broker.client()
    producer_id = 7_000 + codec + on_loop_max
    first = broker.partition("all", 0).log.end_offset
    asked = []
    for sequence in range(0, 5_000, 1_000):
        made = [NewRecord(1, b"k", b"%d" % (sequence + place)) for place in range(1_000)]
        batch = build_batch(made, compression=codec, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        asked.append(client.send_produce("all", 0, bytes(batch)))
    answers = [client.wait(each).responses[0].partition_responses[0] for each in asked]
    assert [(each.error_code, each.base_offset) for each in answers] == [
        (0, first + sequence) for sequence in range(0, 5_000, 1_000)
    ]
    client.close()


def test_many_small_record_sets_of_one_request_are_not_all_walked_on_the_loop(
    broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them would be within the limit of the loop, all of them together are not."""
    monkeypatch.setattr(soundness, "WALKED_ON_LOOP_RECORDS_MAX", 100)
    broker.with_topic("wide", partitions=8, headrace_validate_records="uncompressed")
    walked = []
    by_helper = soundness.records_error_by_helper

    def count(*given):
        walked.append(1)
        return by_helper(*given)

    monkeypatch.setattr(soundness, "records_error_by_helper", count)
    batch = bytes(build_batch([NewRecord(1, None, None)] * 60))
    client = broker.client()
    request = produce_request([("wide", [(index, batch) for index in range(8)])])
    answer = client.ask(ApiKey.PRODUCE, 9, request)
    assert [each.error_code for each in answer.responses[0].partition_responses] == [0] * 8
    assert len(walked) >= 6
    client.close()
