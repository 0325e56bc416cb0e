"""Convert the records of a batch to an Arrow table, column by column, without an object per record where that pays.

numpy finds the fields of a large batch at once, but has a higher fixed cost than lists, and may not be installed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow

from headrace.client.core.partition_reader import FetchedBatch, readable
from headrace.client.core.record_layouts import Columns, columns_of
from headrace.wire.records.compression import INFLATED_BYTES_MAX
from headrace.wire.records.header import RECORD_COUNT
from headrace.wire.records.reader import decode_records, open_records

if TYPE_CHECKING:
    from headrace.wire.columns.decoder import Decoded

PLACES_RECORDS_MIN = 1_000
"""Least records for which numpy is faster."""

_arrow: Any = pyarrow  # Its stubs are incomplete.

HEADER = pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())])
SCHEMA: pyarrow.Schema = _arrow.schema(
    [
        ("topic", pyarrow.string()),
        ("partition", pyarrow.int32()),
        ("offset", pyarrow.int64()),
        ("timestamp", pyarrow.timestamp("ms", "UTC")),
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("headers", pyarrow.list_(HEADER)),
    ]
)


def table_of(fetched: Sequence[FetchedBatch]) -> pyarrow.Table:
    """Return the records of all these batches, each from its first wanted record on."""
    table: pyarrow.Table = _arrow.concat_tables([readable(batch, _table) for batch in fetched])
    return table


def _table(batch: FetchedBatch) -> pyarrow.Table:
    columns: Sequence[Any] | None = None
    if batch.fields[RECORD_COUNT] >= PLACES_RECORDS_MIN:
        columns = _by_places(batch)
    if columns is None:
        columns = _by_lists(batch)
    count = len(columns[0])
    topic = _arrow.repeat(_arrow.scalar(batch.partition.topic, pyarrow.string()), count)
    partition = _arrow.repeat(_arrow.scalar(batch.partition.partition, pyarrow.int32()), count)
    table: pyarrow.Table = _arrow.table([topic, partition, *columns], schema=SCHEMA)
    return table


def _by_places(batch: FetchedBatch) -> Sequence[Any] | None:
    """Build columns with numpy; None without numpy, without wanted records, and for records with headers, which are
    rare.
    """
    try:
        from headrace.wire.columns.decoder import decode
        from headrace.wire.columns.native import load
    except ImportError:
        return None
    decoded = list(decode(batch.data, begin=batch.begin, end=batch.end, helper=load()))
    if not decoded or any(part.places.header_count.any() for part in decoded):
        return None
    parts = [_place_columns(part) for part in decoded]
    return parts[0] if len(parts) == 1 else [_arrow.concat_arrays(column) for column in zip(*parts, strict=True)]


def _place_columns(part: "Decoded") -> list[Any]:
    from headrace.wire.columns.arrow import binary_column

    places, kinds = part.places, {field.name: field.type for field in SCHEMA}
    return [
        _arrow.array(places.offset, pyarrow.int64()),
        _arrow.array(places.timestamp_ms, pyarrow.int64()).cast(kinds["timestamp"]),
        binary_column(part.plain, places.key_at, places.key_size),
        binary_column(part.plain, places.value_at, places.value_size),
        _arrow.repeat(_arrow.scalar([], kinds["headers"]), len(places.offset)),
    ]


def _by_lists(batch: FetchedBatch) -> Sequence[Any]:
    fields, plain = open_records(batch.data, INFLATED_BYTES_MAX)
    found = columns_of(fields, plain)
    if found is None or not batch.is_whole:
        rows = [record for record in decode_records(fields, plain) if record.offset >= batch.begin]
        found = Columns(
            [row.offset for row in rows],
            [row.timestamp for row in rows],
            [row.key for row in rows],
            [row.value for row in rows],
            [row.headers for row in rows],
        )
    headers = [[{"key": key, "value": value} for key, value in some] for some in found.headers]
    columns = (found.offsets, found.timestamps, found.keys, found.values, headers)
    return [_arrow.array(column, field.type) for column, field in zip(columns, list(SCHEMA)[2:], strict=True)]
