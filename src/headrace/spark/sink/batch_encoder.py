"""From columns of keys, values and headers to whole record batches, without an object for any row.

The numbers of all records (their lengths, places and sizes) are made into varints together, by numpy. Arrow then joins
number, key, number, value and headers of each row. What it gives is one buffer with the records one behind the other,
of which every batch is a slice.
"""

from collections.abc import Iterator
from itertools import pairwise
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headrace.spark.sink.columns import Column, as_binary, binary_column, binary_parts, joined, lengths_of
from headrace.wire.records.compression import Compression, compress
from headrace.wire.records.header import CRC_AT, CURRENT_MAGIC, HEADER, HEADER_SIZE, LOG_OVERHEAD, checksum

RECORD_OVERHEAD_BYTES_MAX = 36
"""The lengths, deltas and counts of one record at their largest."""

ENCODED_BYTES_MAX = 2**31 - 1
"""Arrow counts the bytes of a column with 31 bits."""

_CRC = Struct(">I")
_NO_HEADERS = pa.scalar(b"\x00", pa.binary())


class RowTooLarge(ValueError):
    """A row that does not fit into a request."""

    def __init__(self, row: int, size: int) -> None:
        super().__init__(f"row {row} takes {size} bytes")
        self.row = row
        self.size = size


class RecordColumns(NamedTuple):
    """Columns of one length: keys and values are binary, headers as `encoded_headers` gives them."""

    keys: "Column | None"
    values: Column
    headers: "Column | None" = None

    def taken(self, rows: NDArray[Any]) -> "RecordColumns":
        keys, headers = (None if column is None else column.take(rows) for column in (self.keys, self.headers))
        return RecordColumns(keys, self.values.take(rows), headers)


class EncodedBatch(NamedTuple):
    group: int
    """Which of the groups it belongs to."""
    records: int
    batch: bytearray
    """With its header and checksum, but without a producer's identity."""


def encoded_headers(column: Any) -> Column:
    """A column of lists of (key, value) as the bytes that end each record."""
    names, contents = (as_binary(part) for part in column.flatten().flatten())
    if names.null_count:
        raise ValueError("a header has no key: filter the headers, or give them a key each")
    together = joined(_varint_column(lengths_of(names)), names, _varint_column(lengths_of(contents)), contents)
    counts = np.nan_to_num(pc.list_value_length(column).to_numpy(zero_copy_only=False)).astype(np.int64)
    places = np.zeros(len(column) + 1, dtype=np.int64)
    np.cumsum(counts, out=places[1:])
    offsets, _ = binary_parts(together)
    ends = offsets[places] if len(together) else np.zeros(len(places), dtype=np.int32)
    rows = binary_column(ends.astype(np.int32), together.buffers()[2] or b"")
    return joined(_varint_column(counts), rows)


def row_sizes_bound(columns: RecordColumns) -> NDArray[np.int64]:
    """At most how many bytes each row takes in a batch."""
    sizes = np.full(len(columns.values), RECORD_OVERHEAD_BYTES_MAX, dtype=np.int64)
    for column in columns:
        if column is not None:
            sizes += np.maximum(lengths_of(column), 0)
    return sizes


def batch_starts(groups: NDArray[Any], sizes: NDArray[np.int64], *, batch_bytes_max: int) -> NDArray[np.int64]:
    """At which rows batches begin: where the group changes, and where no further row has room."""
    if len(sizes) == 0:
        return np.zeros(0, dtype=np.int64)
    ends = np.cumsum(sizes)
    changes = [*(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
    starts: list[int] = []
    row, room = 0, batch_bytes_max - HEADER_SIZE
    for change in changes:
        while row < change:
            starts.append(row)
            before = int(ends[row] - sizes[row])
            row = min(change, max(row + 1, int(np.searchsorted(ends, before + room, side="right"))))
    return np.asarray(starts, dtype=np.int64)


def encode(
    columns: RecordColumns,
    groups: NDArray[Any],
    *,
    timestamp_ms: int,
    batch_bytes_max: int,
    request_bytes_max: int,
    compression: Compression = Compression.NONE,
) -> Iterator[EncodedBatch]:
    """Batches of rows that follow each other and have one group; their order is that of the rows."""
    sizes = row_sizes_bound(columns)
    largest = int(sizes.argmax()) if len(sizes) else 0
    if len(sizes) and sizes[largest] + HEADER_SIZE > request_bytes_max:
        raise RowTooLarge(largest, int(sizes[largest]))
    if int(sizes.sum()) > ENCODED_BYTES_MAX:
        raise ValueError(f"{len(sizes)} rows of {int(sizes.sum())} bytes are too many at once")
    starts = batch_starts(groups, sizes, batch_bytes_max=min(batch_bytes_max, request_bytes_max))
    if len(starts) == 0:
        return
    records = _records(columns, starts)
    offsets, content = binary_parts(records)
    bounds = [*starts.tolist(), len(sizes)]
    for first, end in pairwise(bounds):
        body = content[offsets[first] : offsets[end]].data
        batch = _with_header(body, end - first, timestamp_ms=timestamp_ms, compression=compression)
        yield EncodedBatch(int(groups[first]), end - first, batch)


def _records(columns: RecordColumns, starts: NDArray[np.int64]) -> Column:
    """Every record whole, its place in the batch counted from the start before it."""
    count = len(columns.values)
    deltas = np.arange(count, dtype=np.int64)
    deltas -= np.repeat(starts, np.diff(np.append(starts, count)))
    key_lengths = np.full(count, -1, dtype=np.int64) if columns.keys is None else lengths_of(columns.keys)
    value_lengths = lengths_of(columns.values)
    delta, key_length, value_length = _varints(deltas), _varints(key_lengths), _varints(value_lengths)
    lengths = 2 + delta.sizes + key_length.sizes + value_length.sizes  # one byte of attributes, one of the time: zero
    lengths += np.maximum(key_lengths, 0) + np.maximum(value_lengths, 0)
    lengths += 1 if columns.headers is None else lengths_of(columns.headers)
    parts: list[Any] = [_packed(_varints(lengths), _zeros(count, 2), delta, key_length)]
    if columns.keys is not None:
        parts.append(columns.keys)
    parts += (_packed(value_length), columns.values)
    parts.append(_NO_HEADERS if columns.headers is None else columns.headers)
    return joined(*parts)


def _with_header(body: memoryview, count: int, *, timestamp_ms: int, compression: Compression) -> bytearray:
    batch = bytearray(HEADER_SIZE)
    batch += compress(compression, bytes(body)) if compression else body
    HEADER.pack_into(
        batch,
        0,
        0,
        len(batch) - LOG_OVERHEAD,
        -1,
        CURRENT_MAGIC,
        0,
        compression,
        count - 1,
        timestamp_ms,
        timestamp_ms,
        -1,
        -1,
        -1,
        count,
    )
    _CRC.pack_into(batch, CRC_AT, checksum(batch))
    return batch


class Varints(NamedTuple):
    """Numbers as bytes, a line each."""

    lines: NDArray[np.uint8]
    counted: NDArray[np.bool_] | None
    """Which bytes of the lines count; None: all of them."""
    sizes: NDArray[np.int64]
    """How many bytes of each line count."""


def _varints(numbers: NDArray[np.int64]) -> Varints:
    """The zigzag encodings. Where all are equal, as the lengths of many columns, it is made once."""
    is_one = len(numbers) > 1 and numbers.min() == numbers.max()
    folded = (numbers[:1] if is_one else numbers).astype(np.int64)
    folded = ((folded << 1) ^ (folded >> 63)).view(np.uint64)
    largest = int(folded.max()) if len(folded) else 0
    width = max(1, -(-largest.bit_length() // 7))
    lines = np.empty((len(folded), width), dtype=np.uint8)
    counted = np.ones((len(folded), width), dtype=np.bool_)
    sizes = np.ones(len(folded), dtype=np.int64)
    for place in range(width):
        low = folded.astype(np.uint8) & np.uint8(0x7F)
        folded = folded >> np.uint64(7)
        more = folded != 0
        lines[:, place] = low | (more.view(np.uint8) << np.uint8(7))
        if place + 1 < width:
            counted[:, place + 1] = more
            sizes += more
    if is_one:
        return Varints(np.repeat(lines, len(numbers), axis=0), None, np.full(len(numbers), width, dtype=np.int64))
    return Varints(lines, counted if width > 1 else None, sizes)


def _zeros(count: int, width: int) -> Varints:
    return Varints(np.zeros((count, width), dtype=np.uint8), None, np.full(count, width, dtype=np.int64))


def _packed(*numbers: Varints) -> Column:
    """The bytes that count of each line, side by side, as a binary column."""
    lines = np.concatenate([each.lines for each in numbers], axis=1)
    sizes = numbers[0].sizes if len(numbers) == 1 else np.sum([each.sizes for each in numbers], axis=0)
    offsets = np.zeros(len(lines) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] == lines.size:
        return binary_column(offsets, lines.reshape(-1))
    every = np.ones_like(lines, dtype=np.bool_)
    place = 0
    for each in numbers:
        width = each.lines.shape[1]
        if each.counted is not None:
            every[:, place : place + width] = each.counted
        place += width
    return binary_column(offsets, lines[every])


def _varint_column(numbers: NDArray[np.int64]) -> Column:
    return _packed(_varints(numbers))
