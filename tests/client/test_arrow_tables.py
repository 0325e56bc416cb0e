"""Arrow tables of batches: what is in them, whichever way they are made, and what is said without pyarrow."""

import sys

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client import arrow_tables
from headrace.client.core.partition_reader import FetchedBatch
from headrace.client.errors import ClientError
from headrace.client.record_batch import RecordBatch
from headrace.model.ids import TopicPartition
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import HEADER

PLACE = TopicPartition("orders", 3)
records = st.lists(
    st.builds(
        NewRecord,
        st.integers(0, 10_000),
        st.none() | st.binary(max_size=4),
        st.none() | st.binary(max_size=70),
        st.lists(st.tuples(st.text(max_size=2), st.none() | st.binary(max_size=2)), max_size=1).map(tuple),
    ),
    min_size=1,
    max_size=12,
)


def fetched(new: list[NewRecord], *, begin: int = 0, compression: Compression = Compression.NONE) -> FetchedBatch:
    data = memoryview(build_batch(new, compression=compression))
    return FetchedBatch(PLACE, data, begin, len(new), HEADER.unpack_from(data))


def as_rows(batch: FetchedBatch) -> list[dict]:
    return [
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": key, "value": value} for key, value in record.headers],
        }
        for record in RecordBatch([batch]).records()
    ]


def rows_of(batch: FetchedBatch) -> list[dict]:
    table = RecordBatch([batch]).to_arrow()
    assert table.schema == arrow_tables.SCHEMA
    times = table.column("timestamp").cast(pyarrow.int64()).to_pylist()
    return [{**row, "timestamp": time} for row, time in zip(table.to_pylist(), times, strict=True)]


@pytest.mark.slow
@settings(max_examples=60)
@given(records, st.integers(1, 30), st.integers(0, 5), st.sampled_from([Compression.NONE, Compression.LZ4]))
def test_tables_have_what_the_records_have(new, repeats, begin, compression) -> None:
    batch = fetched(new * repeats, begin=begin, compression=compression)
    expected = as_rows(batch)
    assert rows_of(batch) == expected
    few = arrow_tables.PLACES_RECORDS_MIN
    try:
        arrow_tables.PLACES_RECORDS_MIN = 1
        assert rows_of(batch) == expected
    finally:
        arrow_tables.PLACES_RECORDS_MIN = few


def test_a_large_batch_is_read_without_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy", reason="pip install numpy")
    monkeypatch.setattr(arrow_tables, "_by_lists", None)
    batch = fetched([NewRecord(number, None, b"%d" % number) for number in range(arrow_tables.PLACES_RECORDS_MIN)])
    assert rows_of(batch) == as_rows(batch)


def test_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "headrace.wire.columns.decoder", None)
    batch = fetched([NewRecord(number, None, b"%d" % number) for number in range(arrow_tables.PLACES_RECORDS_MIN)])
    assert rows_of(batch) == as_rows(batch)


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "headrace.client.arrow_tables", None)
    with pytest.raises(ClientError, match="install"):
        RecordBatch([fetched([NewRecord(1, None, b"v")])]).to_arrow()
