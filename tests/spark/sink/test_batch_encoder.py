"""Columns become the same bytes that the plain builder writes record by record."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.sink.batch_encoder import EncodedBatch, RecordColumns, RowTooLarge, encode, encoded_headers
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import HEADER_SIZE
from headrace.wire.records.reader import check_batch
from headrace.wire.records.reader import records as read_records

TIME_MS = 1_700_000_000_123
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
LARGE = 1 << 30

binaries = st.none() | st.binary(max_size=12) | st.integers(60, 200).map(bytes) | st.integers(8180, 8200).map(bytes)
header_lists = st.none() | st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=70)), max_size=3)
rows = st.lists(st.tuples(binaries, binaries, header_lists, st.integers(0, 2)), max_size=40)


def columns_of(records: list[tuple[Any, Any, Any, int]], *, with_headers: bool) -> RecordColumns:
    headers = [
        None if each[2] is None else [{"key": name, "value": content} for name, content in each[2]] for each in records
    ]
    return RecordColumns(
        pa.array([each[0] for each in records], pa.binary()),
        pa.array([each[1] for each in records], pa.binary()),
        encoded_headers(pa.array(headers, HEADERS)) if with_headers else None,
    )


def encoded(columns: RecordColumns, groups: list[int], **limits: Any) -> list[EncodedBatch]:
    settings = {"batch_bytes_max": LARGE, "request_bytes_max": LARGE, **limits}
    return list(encode(columns, np.array(groups, dtype=np.int32), timestamp_ms=TIME_MS, **settings))


def plain(records: list[tuple[Any, Any, Any, int]], compression: int = 0, *, with_headers: bool = True) -> bytearray:
    return build_batch(
        (NewRecord(TIME_MS, key, value, (headers or ()) if with_headers else ()) for key, value, headers, _ in records),
        compression=compression,
    )


@given(rows, st.booleans(), st.sampled_from(list(Compression)))
def test_the_bytes_are_those_of_the_plain_builder(records: Any, with_headers: bool, compression: Compression) -> None:
    records.sort(key=lambda each: each[3])
    columns = columns_of(records, with_headers=with_headers)
    batches = encoded(columns, [each[3] for each in records], compression=compression)
    expected = {
        group: plain([each for each in records if each[3] == group], compression, with_headers=with_headers)
        for group in sorted({each[3] for each in records})
    }
    assert {each.group: each.batch for each in batches} == expected
    assert len(batches) == len(expected)


@given(rows.filter(bool), st.integers(200, 20_000))
def test_batches_respect_their_limit_and_hold_every_row_in_order(records: Any, limit: int) -> None:
    records.sort(key=lambda each: each[3])
    batches = encoded(columns_of(records, with_headers=False), [each[3] for each in records], batch_bytes_max=limit)
    given_back: list[tuple[Any, Any, int]] = []
    for each in batches:
        check_batch(memoryview(each.batch))
        assert len(each.batch) <= limit or each.records == 1
        given_back += [(found.key, found.value, each.group) for found in read_records(each.batch)]
    assert given_back == [(key, value, group) for key, value, _, group in records]


def test_slices_of_columns_are_encoded_from_where_they_begin() -> None:
    values = pa.array([b"no", b"a", None, b"bb", b"no"], pa.binary()).slice(1, 3)
    keys = pa.array([b"no", None, b"k", b"l", b"no"], pa.binary()).slice(1, 3)
    headers = pa.array([[{"key": "no", "value": b""}], [], None, [{"key": "h", "value": None}], []], HEADERS).slice(
        1, 3
    )
    (only,) = encoded(RecordColumns(keys, values, encoded_headers(headers)), [0, 0, 0])
    expected = [(None, b"a", (), 0), (b"k", None, (), 0), (b"l", b"bb", (("h", None),), 0)]
    assert only.batch == plain(expected)


def test_without_a_key_column_every_key_is_null() -> None:
    (only,) = encoded(RecordColumns(None, pa.array([b"a", b"b"], pa.binary())), [0, 0])
    assert only.batch == plain([(None, b"a", (), 0), (None, b"b", (), 0)])


def test_nothing_gives_no_batch() -> None:
    assert encoded(RecordColumns(None, pa.array([], pa.binary())), []) == []


def test_a_row_above_the_request_size_is_named() -> None:
    values = pa.array([b"small", bytes(5000), bytes(4000)], pa.binary())
    with pytest.raises(RowTooLarge) as refused:
        encoded(RecordColumns(None, values), [0, 0, 0], request_bytes_max=4100)
    assert (refused.value.row, refused.value.size) == (1, 5036)
    assert encoded(RecordColumns(None, values), [0, 0, 0], request_bytes_max=5036 + HEADER_SIZE)


def test_a_header_without_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="no key"):
        encoded_headers(pa.array([[{"key": None, "value": b"x"}]], HEADERS))
