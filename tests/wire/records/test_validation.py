import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.errors import ErrorCode
from headrace.wire.errors import CorruptBatch, InflationLimit
from headrace.wire.records import header
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression, compress
from headrace.wire.records.validation import (
    EXPANSION_MAX,
    KEYLESS_RECORDS_MAX,
    check_produced,
    find_error,
    keyless_records,
)

from .forged import with_header

TWO = [NewRecord(1, b"k", b"v"), NewRecord(2, b"k", b"w")]


def check(batch: bytes | bytearray, *, api_version: int = 9, max_message_bytes: int = 1_000_000) -> ErrorCode:
    view = memoryview(batch)
    return check_produced(
        view, header.HEADER.unpack_from(view), api_version=api_version, max_message_bytes=max_message_bytes
    )


@given(
    fields=st.dictionaries(
        st.sampled_from(
            [
                "BASE_OFFSET",
                "MAGIC",
                "ATTRIBUTES",
                "LAST_OFFSET_DELTA",
                "PRODUCER_ID",
                "PRODUCER_EPOCH",
                "BASE_SEQUENCE",
                "RECORD_COUNT",
            ]
        ),
        st.integers(-3, 70),
    ),
    wrong_checksum=st.booleans(),
    max_message_bytes=st.sampled_from([60, 83, 84, 85, 1_000_000]),
    api_version=st.sampled_from([6, 9]),
)
def test_the_quick_look_agrees_with_the_rules(
    fields: dict[str, int], wrong_checksum: bool, max_message_bytes: int, api_version: int
) -> None:
    batch = bytearray(with_header(build_batch(TWO), **fields))
    batch[-1] ^= wrong_checksum
    view = memoryview(batch)
    limits = {"api_version": api_version, "max_message_bytes": max_message_bytes}
    unpacked = header.HEADER.unpack_from(view)
    assert check_produced(view, unpacked, **limits) == find_error(view, unpacked, **limits)


@pytest.mark.parametrize("codec", Compression)
def test_good_batches(codec: Compression) -> None:
    assert check(build_batch(TWO, compression=codec)) == ErrorCode.NONE
    idempotent = build_batch(TWO, compression=codec, producer_id=5, producer_epoch=0, base_sequence=0)
    assert check(idempotent) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"MAGIC": 1}, ErrorCode.INVALID_RECORD),
        ({"MAGIC": 3}, ErrorCode.INVALID_RECORD),
        ({"RECORD_COUNT": 0}, ErrorCode.INVALID_RECORD),
        ({"RECORD_COUNT": -1, "LAST_OFFSET_DELTA": -2}, ErrorCode.INVALID_RECORD),
        ({"RECORD_COUNT": 3}, ErrorCode.INVALID_RECORD),
        ({"LAST_OFFSET_DELTA": 7}, ErrorCode.INVALID_RECORD),
        ({"ATTRIBUTES": header.CONTROL_BIT}, ErrorCode.INVALID_RECORD),
        ({"ATTRIBUTES": header.TRANSACTIONAL_BIT}, ErrorCode.INVALID_RECORD),
        ({"PRODUCER_ID": 5, "PRODUCER_EPOCH": 0}, ErrorCode.INVALID_RECORD),
        ({"PRODUCER_ID": 5, "BASE_SEQUENCE": 0}, ErrorCode.INVALID_RECORD),
        ({"ATTRIBUTES": header.LOG_APPEND_TIME_BIT}, ErrorCode.INVALID_TIMESTAMP),
        ({"ATTRIBUTES": header.DELETE_HORIZON_BIT}, ErrorCode.INVALID_RECORD),
        *(({"ATTRIBUTES": 1 << bit}, ErrorCode.INVALID_RECORD) for bit in range(7, 15)),
        ({"ATTRIBUTES": -(1 << 15)}, ErrorCode.INVALID_RECORD),
        ({"RECORD_COUNT": 4, "LAST_OFFSET_DELTA": 3}, ErrorCode.INVALID_RECORD),
        ({"RECORD_COUNT": 2**31 - 1, "LAST_OFFSET_DELTA": 2**31 - 2}, ErrorCode.INVALID_RECORD),
        ({"ATTRIBUTES": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"ATTRIBUTES": 7}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ],
)
def test_header_rules(fields: dict[str, int], error: ErrorCode) -> None:
    assert check(with_header(build_batch(TWO), **fields)) == error


@pytest.mark.parametrize("codec", Compression)
@given(size=st.integers(0, 300_000), byte=st.integers(0, 255))
def test_no_codec_stands_for_more_than_its_format_allows(codec: Compression, size: int, byte: int) -> None:
    packed = compress(codec, bytes([byte]) * size)
    assert size <= len(packed) * EXPANSION_MAX[codec]


@pytest.mark.parametrize("codec", Compression)
def test_many_small_records_fit_under_every_codec(codec: Compression) -> None:
    batch = build_batch([NewRecord(1, None, None)] * 50_000, compression=codec)
    assert check(batch) == ErrorCode.NONE


def test_zstd_needs_produce_7() -> None:
    batch = build_batch(TWO, compression=Compression.ZSTD)
    assert check(batch, api_version=6) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert check(batch, api_version=7) == ErrorCode.NONE


def test_size() -> None:
    batch = build_batch(TWO)
    assert check(batch, max_message_bytes=len(batch)) == ErrorCode.NONE
    assert check(batch, max_message_bytes=len(batch) - 1) == ErrorCode.MESSAGE_TOO_LARGE


def test_every_flipped_byte_under_the_checksum_is_found() -> None:
    batch = build_batch(TWO)
    for position in range(header.CRC_COVERS_FROM + 2, len(batch)):
        batch[position] ^= 0x40
        assert check(batch) == ErrorCode.CORRUPT_MESSAGE
        batch[position] ^= 0x40


@pytest.mark.parametrize("length", [-12, -1, 0, 48, 60, 10_000, 2**31 - 1])
def test_a_wrong_length(length: int) -> None:
    assert check(with_header(build_batch(TWO), LENGTH=length)) == ErrorCode.CORRUPT_MESSAGE


def test_truncated_after_the_header() -> None:
    batch = build_batch(TWO)
    for size in range(header.HEADER_SIZE, len(batch)):
        assert check(batch[:size]) == ErrorCode.CORRUPT_MESSAGE


def test_exactly_one_batch() -> None:
    batch = build_batch(TWO)
    assert check(batch + batch) == ErrorCode.INVALID_RECORD
    assert check(batch + bytes(100)) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", Compression)
def test_keys(codec: Compression) -> None:
    assert keyless_records(build_batch(TWO, compression=codec)) == []
    assert keyless_records(build_batch([NewRecord(1, b"", None)], compression=codec)) == []
    without = NewRecord(1, None, b"v")
    assert keyless_records(build_batch([without, *TWO, without], compression=codec)) == [0, 3]


def test_the_keyless_records_of_a_large_batch_are_not_all_named() -> None:
    batch = build_batch([NewRecord(1, None, b"")] * (KEYLESS_RECORDS_MAX + 1))
    assert keyless_records(batch) == list(range(KEYLESS_RECORDS_MAX))


def test_keys_of_bad_records() -> None:
    packed = build_batch([NewRecord(1, b"k", bytes(100_000))], compression=Compression.GZIP)
    with pytest.raises(InflationLimit):
        keyless_records(packed, inflated_bytes_max=1000)
    with pytest.raises(CorruptBatch):
        keyless_records(packed[:-9])
