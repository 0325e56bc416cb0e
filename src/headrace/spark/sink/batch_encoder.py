"""Encoder of whole record batches from columns of keys, values and headers, without an object per row.

Numpy encodes the numbers of all records (lengths, offset deltas and sizes) as varints at once. Arrow then joins number,
key, number, value and headers of each row. The result is one buffer of consecutive records, of which every batch is a
slice.
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
"""The largest size of the lengths, deltas and counts of one record."""

ENCODED_BYTES_MAX = 2**31 - 1
"""The limit of Arrow's binary columns, whose offsets have 31 bits."""

_CRC = Struct(">I")
_NO_HEADERS = pa.scalar(b"\x00", pa.binary())


class RowTooLarge(ValueError):
    """A row that is larger than a request may be."""

    def __init__(self, row: int, size: int) -> None:
        super().__init__(f"row {row} takes {size} bytes")
        self.row = row
        self.size = size


class RecordColumns(NamedTuple):
    """Columns of equal length: keys and values are binary, headers are as `encoded_headers` returns them."""

    keys: "Column | None"
    values: Column
    headers: "Column | None" = None

    def taken(self, rows: NDArray[Any]) -> "RecordColumns":
        keys, headers = (None if column is None else column.take(rows) for column in (self.keys, self.headers))
        return RecordColumns(keys, self.values.take(rows), headers)


class EncodedBatch(NamedTuple):
    group: int
    """The group, that is the partition, of all its rows."""
    records: int
    batch: bytearray
    """The batch with its header and checksum, but without the identity of a producer."""


def encoded_headers(column: Any) -> Column:
    """Encode a column of lists of (key, value) as the last bytes of each record."""
    names, contents = (as_binary(part) for part in column.flatten().flatten())
    if names.null_count:
        raise ValueError("a header has no key: remove such headers, or give each of them a key")
    together = joined(_varint_column(lengths_of(names)), names, _varint_column(lengths_of(contents)), contents)
    counts = np.nan_to_num(pc.list_value_length(column).to_numpy(zero_copy_only=False)).astype(np.int64)
    ends_of_rows = np.zeros(len(column) + 1, dtype=np.int64)
    np.cumsum(counts, out=ends_of_rows[1:])
    offsets, _ = binary_parts(together)
    ends = offsets[ends_of_rows] if len(together) else np.zeros(len(ends_of_rows), dtype=np.int32)
    rows = binary_column(ends.astype(np.int32), together.buffers()[2] or b"")
    return joined(_varint_column(counts), rows)


def row_sizes_bound(columns: RecordColumns) -> NDArray[np.int64]:
    """Return an upper limit of the size of each row in a batch."""
    sizes = np.full(len(columns.values), RECORD_OVERHEAD_BYTES_MAX, dtype=np.int64)
    for column in columns:
        if column is not None:
            sizes += np.maximum(lengths_of(column), 0)
    return sizes


def batch_starts(groups: NDArray[Any], sizes: NDArray[np.int64], *, batch_bytes_max: int) -> NDArray[np.int64]:
    """Return the first row of each batch: where the group changes, and where the next row does not fit."""
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
    """Encode consecutive rows of the same group as batches, in the order of the rows."""
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
    """Encode every record, with its offset delta from the start of its batch."""
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
    """Encoded numbers, one line of bytes each."""

    lines: NDArray[np.uint8]
    counted: NDArray[np.bool_] | None
    """The bytes of the lines that are used; None means all of them."""
    sizes: NDArray[np.int64]
    """The number of used bytes of each line."""


def _varints(numbers: NDArray[np.int64]) -> Varints:
    """Encode numbers as zigzag varints. Equal numbers, such as the lengths in many columns, are encoded once."""
    is_one = len(numbers) > 1 and numbers.min() == numbers.max()
    folded = (numbers[:1] if is_one else numbers).astype(np.int64)
    folded = ((folded << 1) ^ (folded >> 63)).view(np.uint64)
    largest = int(folded.max()) if len(folded) else 0
    width = max(1, -(-largest.bit_length() // 7))
    lines = np.empty((len(folded), width), dtype=np.uint8)
    counted = np.ones((len(folded), width), dtype=np.bool_)
    sizes = np.ones(len(folded), dtype=np.int64)
    for position in range(width):
        low = folded.astype(np.uint8) & np.uint8(0x7F)
        folded = folded >> np.uint64(7)
        more = folded != 0
        lines[:, position] = low | (more.view(np.uint8) << np.uint8(7))
        if position + 1 < width:
            counted[:, position + 1] = more
            sizes += more
    if is_one:
        return Varints(np.repeat(lines, len(numbers), axis=0), None, np.full(len(numbers), width, dtype=np.int64))
    return Varints(lines, counted if width > 1 else None, sizes)


def _zeros(count: int, width: int) -> Varints:
    return Varints(np.zeros((count, width), dtype=np.uint8), None, np.full(count, width, dtype=np.int64))


def _packed(*numbers: Varints) -> Column:
    """Join the used bytes of each line to one row of a binary column."""
    lines = np.concatenate([each.lines for each in numbers], axis=1)
    sizes = numbers[0].sizes if len(numbers) == 1 else np.sum([each.sizes for each in numbers], axis=0)
    offsets = np.zeros(len(lines) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] == lines.size:
        return binary_column(offsets, lines.reshape(-1))
    every = np.ones_like(lines, dtype=np.bool_)
    position = 0
    for each in numbers:
        width = each.lines.shape[1]
        if each.counted is not None:
            every[:, position : position + width] = each.counted
        position += width
    return binary_column(offsets, lines[every])


def _varint_column(numbers: NDArray[np.int64]) -> Column:
    return _packed(_varints(numbers))
