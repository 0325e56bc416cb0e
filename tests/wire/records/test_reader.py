import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.wire.errors import CorruptBatch, InflationLimit, ProtocolError
from headrace.wire.records import header
from headrace.wire.records.builder import BatchBuilder, NewRecord, build_batch, encode_varint
from headrace.wire.records.compression import Compression
from headrace.wire.records.reader import (
    ControlType,
    OffsetAndTime,
    Record,
    batches,
    check_batch,
    control_type,
    first_at_or_after,
    is_control,
    max_timestamp_record,
    read_varint,
    records,
)

from .forged import with_body, with_header

THREE = [
    NewRecord(1000, b"k1", b"v1", (("h", b"x"), ("n", None))),
    NewRecord(1005, None, b"v2"),
    NewRecord(990, b"k3", None),
]


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints(number: int) -> None:
    encoded = encode_varint(number)
    assert read_varint(encoded, 0) == (number, len(encoded))


def test_a_varint_that_never_ends() -> None:
    with pytest.raises(CorruptBatch):
        read_varint(b"\xff" * 100, 0)


@given(new=st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=1, max_size=30), at=st.integers(0, 52))
def test_search_by_time_is_that_of_a_plain_list(new: list[tuple[int, bool]], at: int) -> None:
    batch = build_batch([NewRecord(time, b"k" if keyed else None, b"v") for time, keyed in new], base_offset=100)
    times = [time for time, _keyed in new]
    found = next((OffsetAndTime(100 + n, time) for n, time in enumerate(times) if time >= at), None)
    assert first_at_or_after(batch, at) == found
    assert max_timestamp_record(batch) == OffsetAndTime(100 + times.index(max(times)), max(times))


@pytest.mark.parametrize("codec", Compression)
def test_search_by_time_opens_every_compression(codec: Compression) -> None:
    batch = build_batch(THREE, compression=codec, base_offset=7)
    assert first_at_or_after(batch, 1001) == (8, 1005)
    assert first_at_or_after(batch, 1006) is None
    assert max_timestamp_record(batch) == (8, 1005)


def test_log_append_time_is_the_time_of_every_record() -> None:
    batch = build_batch(THREE, base_offset=7)
    header.stamp_append_time(batch, 5000)
    check_batch(batch)
    assert [record.timestamp for record in records(batch)] == [5000, 5000, 5000]
    assert first_at_or_after(batch, 5000) == (7, 5000)
    assert first_at_or_after(batch, 5001) is None
    assert max_timestamp_record(batch) == (7, 5000)


def test_a_stamped_batch_gives_absolute_offsets() -> None:
    batch = build_batch(THREE)
    header.stamp(batch, base_offset=2**40, leader_epoch=9)
    check_batch(batch)
    assert [record.offset for record in records(batch)] == [2**40, 2**40 + 1, 2**40 + 2]


def test_control_batches_are_recognised() -> None:
    marker = [NewRecord(1, struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 3))]
    batch = build_batch(marker, control=True, transactional=True, producer_id=4, producer_epoch=0)
    assert is_control(batch)
    assert not is_control(build_batch(THREE))
    assert [control_type(record) for record in records(batch)] == [ControlType.COMMIT]
    with pytest.raises(CorruptBatch):
        control_type(Record(0, 0, b"\x00", None, ()))
    with pytest.raises(CorruptBatch):
        control_type(Record(0, 0, struct.pack(">hh", 0, 7), None, ()))


def test_a_builder_says_the_size_before_compression() -> None:
    builder = BatchBuilder()
    for record in THREE:
        builder.append(*record)
    assert builder.plain_bytes == len(builder.build())
    assert builder.build(compression=Compression.GZIP) == builder.build(compression=Compression.GZIP)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"MAGIC": 1}, "format"),
        ({"LENGTH": 10}, "declares"),
        ({"LENGTH": -5}, "declares"),
        ({"LAST_OFFSET_DELTA": -1}, "negative"),
        ({"RECORD_COUNT": -1}, "negative"),
    ],
)
def test_check_batch_refuses(fields: dict[str, int], words: str) -> None:
    with pytest.raises(CorruptBatch, match=words):
        check_batch(with_header(build_batch(THREE), **fields))


def test_check_batch_sees_every_flipped_bit_that_the_checksum_covers() -> None:
    batch = build_batch(THREE)
    for position in range(header.CRC_AT, len(batch)):
        batch[position] ^= 1
        with pytest.raises(CorruptBatch, match="checksum"):
            check_batch(batch)
        batch[position] ^= 1


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_truncation_at_every_byte(codec: Compression) -> None:
    batch = bytes(build_batch(THREE, compression=codec))
    for size in range(len(batch)):
        with pytest.raises(CorruptBatch):
            check_batch(batch[:size])
        if size:
            with pytest.raises(CorruptBatch):
                list(batches(batch[:size]))
        assert list(batches(batch[:size], allow_truncated_end=True)) == []


def test_records_cut_at_every_byte() -> None:
    body = bytes(build_batch(THREE))[header.HEADER_SIZE :]
    for size in range(len(body)):
        with pytest.raises(CorruptBatch):
            list(records(with_body(body[:size], 3)))
        with pytest.raises(CorruptBatch):
            list(records(with_body(body + bytes(size + 1), 3)))


@pytest.mark.parametrize(
    "body",
    [
        encode_varint(10**6) + bytes(20),
        encode_varint(-3) + bytes(20),
        encode_varint(12) + b"\x00\x00\x00" + encode_varint(10**6) + bytes(20),
        encode_varint(12) + b"\x00\x00\x00" + encode_varint(-9000) + bytes(20),
        encode_varint(12) + b"\x00\x00\x00\x01" + encode_varint(10**6) + bytes(20),
        encode_varint(12) + b"\x00\x00\x00\x01\x01" + encode_varint(10**6) + bytes(20),
        encode_varint(8) + b"\x00\x00" + encode_varint(5) + b"\x01\x01\x00\x00\x00",
        encode_varint(9) + b"\x00\x00\x00\x01\x01" + encode_varint(1) + encode_varint(-1) + b"\x00\x00",
        encode_varint(9) + b"\x00\x00\x00\x01\x01" + encode_varint(1) + b"\x00" + encode_varint(63) + b"\x00",
    ],
    ids=["long", "negative", "key", "negative-key", "value", "headers", "offset", "header-key", "header-value"],
)
def test_lengths_that_lie(body: bytes) -> None:
    with pytest.raises(CorruptBatch):
        list(records(with_body(body, 1)))


def test_a_count_that_lies_allocates_nothing() -> None:
    batch = with_header(build_batch(THREE), RECORD_COUNT=2**31 - 1, LAST_OFFSET_DELTA=2**31 - 2)
    with pytest.raises(CorruptBatch, match="declares"):
        list(records(batch))


def test_the_limit_of_inflation_is_the_callers() -> None:
    batch = build_batch([NewRecord(1, None, bytes(100_000))], compression=Compression.GZIP)
    for read in (records, max_timestamp_record):
        with pytest.raises(InflationLimit):
            read(batch, inflated_bytes_max=50_000)


@given(body=st.binary(max_size=120), count=st.integers(-2, 20), codec=st.sampled_from(list(Compression)))
def test_garbage_gives_only_protocol_errors(body: bytes, count: int, codec: Compression) -> None:
    batch = with_header(with_body(body, count), ATTRIBUTES=int(codec))
    for read in (lambda: list(records(batch)), lambda: max_timestamp_record(batch), lambda: check_batch(batch)):
        try:
            read()
        except ProtocolError:
            continue


@given(st.binary(max_size=200), st.booleans())
def test_garbage_buffers_give_only_protocol_errors(buffer: bytes, allow_truncated_end: bool) -> None:
    try:
        for batch in batches(buffer, allow_truncated_end=allow_truncated_end):
            assert len(batch) >= header.HEADER_SIZE
    except ProtocolError:
        pass
