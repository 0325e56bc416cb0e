"""Record batches that lie: checksums, counts, lengths, and a few bytes that stand for gigabytes."""

import pytest

from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import DELETE_HORIZON_BIT, LENGTH_AT, LOG_APPEND_TIME_BIT
from tests.hostile import frames
from tests.hostile.ground import ROUNDS_OF_MANY_CASES, Ground

pytestmark = pytest.mark.process

REQUESTS = 20
BOMB_BYTES = 200 << 20
PACKED_BYTES_MAX = 1 << 20
RESIDENT_GROWTH_MAX = 64 << 20
LIES = {
    "checksum": (frames.with_wrong_checksum(), {ErrorCode.CORRUPT_MESSAGE}),
    "more records": (frames.with_number(frames.RECORD_COUNT_AT, 2**31 - 1, mend=True), {ErrorCode.INVALID_RECORD}),
    "no records": (frames.with_number(frames.RECORD_COUNT_AT, 0, mend=True), {ErrorCode.INVALID_RECORD}),
    "negative records": (frames.with_number(frames.RECORD_COUNT_AT, -5, mend=True), {ErrorCode.INVALID_RECORD}),
    "offsets": (frames.with_number(frames.LAST_OFFSET_DELTA_AT, 2**31 - 1, mend=True), {ErrorCode.INVALID_RECORD}),
    "longer": (frames.with_number(LENGTH_AT, 2**31 - 1, mend=False), {ErrorCode.CORRUPT_MESSAGE}),
    "shorter": (frames.with_number(LENGTH_AT, 10, mend=False), {ErrorCode.CORRUPT_MESSAGE}),
    "negative": (frames.with_number(LENGTH_AT, -1, mend=False), {ErrorCode.CORRUPT_MESSAGE}),
    "the largest count": (frames.with_count(2**31 - 1), {ErrorCode.INVALID_RECORD}),
    "log append time": (frames.with_attributes(LOG_APPEND_TIME_BIT), {ErrorCode.INVALID_TIMESTAMP}),
    "delete horizon": (frames.with_attributes(DELETE_HORIZON_BIT), {ErrorCode.INVALID_RECORD}),
    "unknown bit": (frames.with_attributes(0x80), {ErrorCode.INVALID_RECORD}),
    "no header": (bytes(frames.good_batch())[:40], {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD}),
}
LYING_RECORDS = {
    "length": frames.with_lying_length(),
    "nested gzip": frames.nested(Compression.GZIP),
    "garbage under gzip": frames.with_body(Compression.GZIP, bytes(range(256)) * 8),
    "much garbage under zstd": frames.with_body(Compression.ZSTD, bytes(range(256)) * 2_000),
}
"""Faults that only a walk over the records finds."""
CODECS = [codec for codec in Compression if codec is not Compression.NONE]


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("topic", ["target", "compacted"])
def test_a_lying_batch_is_refused_and_counted(ground: Ground, topic: str, lie: str) -> None:
    batch, errors = LIES[lie]
    request = frames.produce_request(topic, batch)
    refused = ground.metrics().get("headrace_produce_errors_total", 0)
    sent = 0
    with ground.attacked(rounds=ROUNDS_OF_MANY_CASES) as attack_lasts, ground.connect() as connection:
        while attack_lasts():
            for _ in range(REQUESTS):
                answer = connection.call(ApiKey.PRODUCE, frames.PRODUCE_VERSION, request)
                assert answer.responses[0].partition_responses[0].error_code in errors
            sent += REQUESTS
    assert ground.metrics()["headrace_produce_errors_total"] == refused + sent


@pytest.mark.parametrize("lie", LYING_RECORDS)
def test_lying_records_are_refused_where_they_are_walked(ground: Ground, lie: str) -> None:
    request = frames.produce_request("validated", LYING_RECORDS[lie])
    with ground.attacked(rounds=ROUNDS_OF_MANY_CASES) as attack_lasts, ground.connect() as connection:
        while attack_lasts():
            for _ in range(REQUESTS):
                answer = connection.call(ApiKey.PRODUCE, frames.PRODUCE_VERSION, request)
                assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_RECORD


def test_a_bomb_is_refused_where_records_are_walked(ground: Ground) -> None:
    _throw(ground, "validated", Compression.GZIP, {ErrorCode.MESSAGE_TOO_LARGE})


@pytest.mark.parametrize("codec", CODECS, ids=[codec.name.lower() for codec in CODECS])
def test_a_bomb_is_not_opened_on_a_topic_that_stores_batches_as_they_are(ground: Ground, codec: Compression) -> None:
    _throw(ground, "target", codec, {ErrorCode.NONE})


@pytest.mark.parametrize("codec", CODECS, ids=[codec.name.lower() for codec in CODECS])
def test_a_bomb_is_refused_where_records_are_opened(ground: Ground, codec: Compression) -> None:
    """A compacted topic looks for keys, so the broker has to inflate: no further than its limit, beside the loop."""
    _throw(ground, "compacted", codec, {ErrorCode.INVALID_RECORD})


def _throw(ground: Ground, topic: str, codec: Compression, errors: set[ErrorCode]) -> None:
    inflated = BOMB_BYTES
    while len(batch := frames.bomb(codec, inflated)) > PACKED_BYTES_MAX:
        inflated //= 2
    before = ground.resident_bytes()
    request = frames.produce_request(topic, batch)
    with ground.attacked(rounds=ROUNDS_OF_MANY_CASES) as attack_lasts, ground.connect() as connection:
        while attack_lasts():
            answer = connection.call(ApiKey.PRODUCE, frames.PRODUCE_VERSION, request)
            assert answer.responses[0].partition_responses[0].error_code in errors
    assert ground.resident_bytes() - before < RESIDENT_GROWTH_MAX
