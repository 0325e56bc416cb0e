"""Rows go to the topic and partition they name, else where their key belongs; nothing is lost or reordered."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.core.partitioners import partition_for_key
from headrace.spark.sink import rows as rows_module
from headrace.spark.sink.rows import PartitionBatch, RowEncoder, RowError, chunks
from headrace.wire.records.compression import Compression
from headrace.wire.records.reader import records

COUNTS = {"a": 1, "b": 3, "c": 12}
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("more", pa.int64()),
    ]
)


def encoder(topic: str | None = None, *, batch_bytes_max: int = 4096, request_bytes_max: int = 1 << 20) -> RowEncoder:
    return RowEncoder(
        topic=topic,
        partition_count=COUNTS.__getitem__,
        batch_bytes_max=lambda _: batch_bytes_max,
        request_bytes_max=request_bytes_max,
        compression=Compression.NONE,
    )


def opened(batches: list[PartitionBatch]) -> dict[tuple[str, int], list[tuple[bytes | None, bytes | None]]]:
    found: dict[tuple[str, int], list[tuple[bytes | None, bytes | None]]] = {}
    for each in batches:
        given = [(record.key, record.value) for record in records(each.batch)]
        assert len(given) == each.records
        found.setdefault((each.topic, each.partition), []).extend(given)
    return found


def table(given: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns: list[Any] = list(zip(*given, strict=True)) if given else [[]] * 4
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, SCHEMA, strict=False)]
    return pa.record_batch([*arrays, pa.array(range(len(given)), pa.int64())], schema=SCHEMA)


topics = st.sampled_from(sorted(COUNTS))
given_rows = st.lists(
    st.tuples(st.none() | st.binary(max_size=5), st.none() | st.text(max_size=9), topics).flatmap(
        lambda row: st.tuples(*map(st.just, row), st.none() | st.integers(0, COUNTS[row[2]] - 1))
    ),
    max_size=60,
)


@given(given_rows)
def test_every_row_arrives_once_where_it_belongs(given: list[tuple[Any, ...]]) -> None:
    found = opened(list(encoder().encode(table(given), 1)))
    placed: dict[tuple[str, int], list[tuple[Any, Any]]] = {}
    free: dict[str, list[tuple[Any, Any]]] = {}
    for key, value, topic, partition in given:
        if partition is None and key is not None:
            partition = partition_for_key(key, COUNTS[topic])
        record = (key, None if value is None else value.encode())
        if partition is None:
            free.setdefault(topic, []).append(record)
        else:
            placed.setdefault((topic, partition), []).append(record)
    for place, expected in placed.items():
        assert [record for record in found[place] if record[0] is not None] == [
            record for record in expected if record[0] is not None
        ]
    wanted = Counter(record for line in placed.values() for record in line)
    wanted.update(record for line in free.values() for record in line)
    assert Counter(record for line in found.values() for record in line) == wanted


def test_the_option_wins_over_the_column() -> None:
    (only,) = encoder("a").encode(table([(b"k", "v", "b", None)]), 1)
    assert only[:3] == ("a", 0, 1)


def test_rows_without_a_key_continue_where_the_last_piece_ended() -> None:
    one_task = encoder("b")
    places = [next(iter(one_task.encode(table([(None, "v", "b", None)]), 1))).partition for _ in range(6)]
    assert sorted(places) == [0, 0, 1, 1, 2, 2]
    assert places[:3] == places[3:]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((None, "v", "b", 3), 'names partition 3 of topic "b", which has the partitions 0 to 2'),
        ((None, "v", "b", -1), "names partition -1"),
        ((None, "v", None, 0), "has no topic"),
        (
            (b"k", "v" * 5000, "b", 0),
            r"a row of about 5037 bytes \(with the key b'k'\) for topic \"b\" is larger than ",
        ),
    ],
)
def test_a_row_that_cannot_be_written_says_why(row: tuple[Any, ...], message: str) -> None:
    with pytest.raises(RowError, match=message):
        list(encoder(request_bytes_max=5000).encode(table([(b"k", "v", "b", None), row]), 1))


def test_pieces_hold_the_same_rows_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "CHUNK_BYTES", 1_000)
    batches = [table([(b"k", "v" * (size % 90), "b", None)] * (size % 7)) for size in range(100)]
    batches.append(table([(None, str(number), "c", None) for number in range(500)]))
    pieces = list(chunks(batches))
    assert pa.Table.from_batches(pieces, SCHEMA).equals(pa.Table.from_batches(batches, SCHEMA))
    assert len(pieces) > 10
    assert all(piece.num_rows for piece in pieces)
