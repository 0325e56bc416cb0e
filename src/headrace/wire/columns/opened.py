"""Turn the bytes of a fetch into plain records: check, filter and decompress batches, in groups of a bounded size.

A group is one buffer and a table with a row per batch. Uncompressed batches stay in place: their groups are views of
the fetched bytes, and their headers are checked together. A batch costs a checksum and no permanent object.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from headrace.wire.checksum import crc32c
from headrace.wire.errors import CorruptBatch, InflationLimit
from headrace.wire.records.compression import INFLATED_BYTES_MAX, decompress
from headrace.wire.records.header import (
    ATTRIBUTES,
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_COVERS_FROM,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    HeaderFields,
)
from headrace.wire.records.reader import batches, check_batch

GROUP_BYTES = 4 * 1024 * 1024
"""A group is complete when its plain records reach this size; only a single larger batch exceeds it."""

_OFFSET_MAX = (1 << 63) - 1
_RECORD_BYTES_MIN = 7
_FIELDS = (
    *("base_offset", "length", "leader_epoch", "magic", "crc", "attributes", "last_delta"),
    *("base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "record_count"),
)
_HEAD = numpy.dtype([(name, f">{code}") for name, code in zip(_FIELDS, HEADER.format[1:], strict=True)])
"""A header, as in `HEADER`."""

Int64s = NDArray[numpy.int64]
Heads = NDArray[Any]
Hides = Callable[[memoryview, HeaderFields], bool]
"""Returns whether to skip a batch; called in order for every transactional batch and marker."""


class BatchRow(NamedTuple):
    """The position of a batch's plain records in the buffer of its group, and the bases of their deltas."""

    begin: int
    end: int
    record_count: int
    base_offset: int
    last_delta: int
    base_timestamp: int
    is_log_time: int
    """1 if the log set the timestamp: then `base_timestamp` is the time of every record."""


class Group(NamedTuple):
    plain: bytes | memoryview
    rows: Int64s
    """A row for each batch, with the columns of `BatchRow`."""


def hides_control(_batch: memoryview, fields: HeaderFields) -> bool:
    """Skip only markers, as a reader of uncommitted records does."""
    return fields[ATTRIBUTES] & CONTROL_BIT != 0


def open_groups(
    data: bytes | bytearray | memoryview,
    *,
    begin: int = 0,
    end: int = _OFFSET_MAX,
    hides: Hides = hides_control,
    group_bytes: int = GROUP_BYTES,
    inflated_bytes_max: int = INFLATED_BYTES_MAX,
) -> Iterator[Group]:
    """Yield the batches that have offsets in the range; inconsistent bytes raise `CorruptBatch`."""
    view = memoryview(data).cast("B")
    bounds = [0]
    for batch in batches(view):
        bounds.append(bounds[-1] + len(batch))
    edges = numpy.array(bounds, numpy.int64)
    lines = numpy.frombuffer(view, numpy.uint8)[edges[:-1, None] + numpy.arange(HEADER_SIZE)]
    heads = lines.reshape(-1).view(_HEAD)
    _check(view, bounds, heads)
    base_offset, last_delta = heads["base_offset"], heads["last_delta"]
    wanted = (base_offset + last_delta >= begin) & (base_offset < end)
    for number in numpy.flatnonzero(heads["attributes"] & (CONTROL_BIT | TRANSACTIONAL_BIT)).tolist():
        batch = view[bounds[number] : bounds[number + 1]]
        wanted[number] &= not hides(batch, HEADER.unpack_from(batch))
    chosen = numpy.flatnonzero(wanted)
    heads, begins, ends = heads[chosen], edges[:-1][chosen] + HEADER_SIZE, edges[1:][chosen]
    if (heads["attributes"] & COMPRESSION_MASK).any():
        yield from _inflated(view, begins, ends, heads, group_bytes, inflated_bytes_max)
    else:
        yield from _in_place(view, begins, ends, heads, group_bytes, inflated_bytes_max)


def _check(data: memoryview, bounds: list[int], heads: Heads) -> None:
    """Check what `check_batch` checks, and that all offsets fit 64 bits."""
    for crc, (first, behind) in zip(heads["crc"].tolist(), pairwise(bounds), strict=True):
        if crc32c(data[first + CRC_COVERS_FROM : behind]) != crc:
            check_batch(data[first:behind])
    base_offset, last_delta = heads["base_offset"], heads["last_delta"]
    bad = (last_delta < 0) | (heads["record_count"] < 0)
    bad |= (base_offset < 0) | (base_offset >= _OFFSET_MAX - last_delta.astype(numpy.int64))
    for number in numpy.flatnonzero(bad).tolist():
        check_batch(data[bounds[number] : bounds[number + 1]])
        raise CorruptBatch(f"a batch has the offsets {base_offset[number]} and {last_delta[number]} more")


def _in_place(
    data: memoryview, begins: Int64s, ends: Int64s, heads: Heads, group_bytes: int, inflated_bytes_max: int
) -> Iterator[Group]:
    """Yield groups in place; nothing is compressed."""
    sizes = ends - begins
    _check_sizes(sizes, heads, inflated_bytes_max)
    filled = numpy.cumsum(sizes + HEADER_SIZE)
    first = 0
    while first < len(heads):
        before = filled[first - 1] if first else 0
        behind = max(int(numpy.searchsorted(filled, before + group_bytes, side="right")), first + 1)
        at, part = int(begins[first]), slice(first, behind)
        yield Group(data[at : int(ends[behind - 1])], _rows(begins[part] - at, ends[part] - at, heads[part]))
        first = behind


def _inflated(
    data: memoryview, begins: Int64s, ends: Int64s, heads: Heads, group_bytes: int, inflated_bytes_max: int
) -> Iterator[Group]:
    codecs = (heads["attributes"] & COMPRESSION_MASK).tolist()
    parts: list[memoryview | bytes] = []
    first = size = 0
    for number, (codec, at, behind) in enumerate(zip(codecs, begins.tolist(), ends.tolist(), strict=True)):
        if size and size + HEADER_SIZE + behind - at > group_bytes:
            yield _joined(parts, heads[first:number], inflated_bytes_max)
            parts, first, size = [], number, 0
        plain = data[at:behind]
        parts.append(decompress(codec, plain, inflated_bytes_max) if codec else plain)
        size += HEADER_SIZE + len(parts[-1])
    if parts:
        yield _joined(parts, heads[first:], inflated_bytes_max)


def _joined(parts: list[memoryview | bytes], heads: Heads, inflated_bytes_max: int) -> Group:
    sizes = numpy.array([len(part) for part in parts], numpy.int64)
    _check_sizes(sizes, heads, inflated_bytes_max)
    ends = numpy.cumsum(sizes)
    return Group(b"".join(parts), _rows(ends - sizes, ends, heads))


def _check_sizes(sizes: Int64s, heads: Heads, inflated_bytes_max: int) -> None:
    """Check the sizes of plain records: within the limit, and large enough for the declared count."""
    if (sizes > inflated_bytes_max).any():
        raise InflationLimit(f"a batch of {sizes.max()} bytes is above the limit of {inflated_bytes_max}")
    for number in numpy.flatnonzero(heads["record_count"] > sizes // _RECORD_BYTES_MIN).tolist():
        head = heads[number]
        raise CorruptBatch(
            f"the batch at offset {head['base_offset']} declares {head['record_count']} records "
            f"in {sizes[number]} bytes"
        )


def _rows(begins: Int64s, ends: Int64s, heads: Heads) -> Int64s:
    is_log_time = heads["attributes"] & LOG_APPEND_TIME_BIT != 0
    columns = (
        begins,
        ends,
        heads["record_count"],
        heads["base_offset"],
        heads["last_delta"],
        numpy.where(is_log_time, heads["max_timestamp"], heads["base_timestamp"]),
        is_log_time,
    )
    return numpy.stack(columns, axis=1, dtype=numpy.int64)
