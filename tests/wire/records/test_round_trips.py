"""Our batches read by kafka-python and aiokafka, and theirs read by us."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from headrace.wire.records.builder import BatchBuilder, NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import HEADER, HEADER_SIZE, PRODUCER_ID
from headrace.wire.records.reader import Record, batches, check_batch, records

EVERY_CODEC = list(Compression)
WITHOUT_LIBRARIES = [Compression.NONE, Compression.GZIP]
"""kafka-python reads the others only with packages that Headrace does not need."""

byte_strings = st.none() | st.binary(max_size=30) | st.integers(64, 9000).map(bytes)
header_lists = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=3)
new_records = st.lists(
    st.builds(
        NewRecord,
        timestamp=st.integers(0, 2**40),
        key=byte_strings,
        value=byte_strings,
        headers=header_lists.map(tuple),
    ),
    min_size=1,
    max_size=20,
)


def as_tuples(read: Iterable[Any]) -> list[tuple[Any, ...]]:
    return [(r.offset, r.timestamp, r.key, r.value, tuple((k, v) for k, v in r.headers)) for r in read]


def expected(new: Sequence[NewRecord], base_offset: int = 0) -> list[Record]:
    return [Record(base_offset + n, r.timestamp, r.key, r.value, tuple(r.headers)) for n, r in enumerate(new)]


@pytest.mark.parametrize("codec", EVERY_CODEC)
@given(new=new_records, base_offset=st.integers(0, 2**60))
def test_what_is_built_is_read(codec: Compression, new: list[NewRecord], base_offset: int) -> None:
    batch = build_batch(new, base_offset=base_offset, compression=codec)
    check_batch(batch)
    assert list(records(batch)) == expected(new, base_offset)


@given(
    timestamp=st.integers(0, 2**40),
    values=st.lists(st.binary(max_size=30) | st.integers(64, 9000).map(bytes), min_size=1, max_size=20),
    times=st.sampled_from([1, 100]),
)
def test_values_alone_are_encoded_as_records_one_by_one(timestamp: int, values: list[bytes], times: int) -> None:
    builder = BatchBuilder()
    builder.append_values(timestamp, values)
    builder.append_values(timestamp, values * times)
    one_by_one = build_batch(NewRecord(timestamp, None, value) for value in [*values, *values * times])
    assert builder.build() == one_by_one
    assert builder.plain_bytes == len(one_by_one)


@pytest.mark.parametrize("codec", EVERY_CODEC)
@given(new=new_records)
def test_aiokafka_reads_ours(codec: Compression, new: list[NewRecord]) -> None:
    batch = AiokafkaBatch(bytes(build_batch(new, compression=codec, base_offset=5)))
    assert batch.validate_crc()
    assert as_tuples(batch) == expected(new, 5)


@pytest.mark.slow
@pytest.mark.parametrize("codec", WITHOUT_LIBRARIES)
@given(new=new_records)
def test_kafka_python_reads_ours(codec: Compression, new: list[NewRecord]) -> None:
    batch = KafkaPythonBatch(bytes(build_batch(new, compression=codec, base_offset=5)))
    assert batch.validate_crc()
    assert as_tuples(batch) == expected(new, 5)


@pytest.mark.parametrize("codec", EVERY_CODEC)
@given(new=new_records)
def test_aiokafkas_are_read(codec: Compression, new: list[NewRecord]) -> None:
    builder = AiokafkaBuilder(2, int(codec), 0, -1, -1, -1, 1 << 30)
    for number, record in enumerate(new):
        builder.append(number, record.timestamp, record.key, record.value, list(record.headers))
    theirs = bytes(builder.build())
    check_batch(theirs)
    assert list(records(theirs)) == expected(new)
    if codec == Compression.NONE:
        # It writes leader epoch 0 where nothing is known, and no base offset.
        assert build_batch(new, leader_epoch=HEADER.unpack_from(theirs)[2]) == theirs


@pytest.mark.parametrize("codec", WITHOUT_LIBRARIES)
@given(new=new_records)
def test_kafka_pythons_are_read(codec: Compression, new: list[NewRecord]) -> None:
    builder = KafkaPythonBuilder(2, int(codec), False, 9000, 3, 17, 1 << 30)
    for number, record in enumerate(new):
        builder.append(number, record.timestamp, record.key, record.value, list(record.headers))
    theirs = bytes(builder.build())
    assert check_batch(theirs)[PRODUCER_ID] == 9000
    assert list(records(theirs)) == expected(new)
    if codec == Compression.NONE:
        ours = build_batch(
            new, leader_epoch=HEADER.unpack_from(theirs)[2], producer_id=9000, producer_epoch=3, base_sequence=17
        )
        assert ours == theirs


@given(counts=st.lists(st.integers(1, 4), min_size=1, max_size=5), cut=st.integers(0, 200))
def test_a_buffer_of_batches_is_walked(counts: list[int], cut: int) -> None:
    parts = [bytes(build_batch([NewRecord(1, None, b"v")] * count)) for count in counts]
    buffer = b"".join(parts)
    assert [bytes(batch) for batch in batches(buffer)] == parts
    cut = min(cut, len(buffer))
    kept = buffer[: len(buffer) - cut]
    whole = [bytes(batch) for batch in batches(kept, allow_truncated_end=True)]
    assert whole == parts[: len(whole)]
    assert len(kept) - len(b"".join(whole)) < HEADER_SIZE + 40
