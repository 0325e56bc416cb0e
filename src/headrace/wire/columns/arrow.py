"""Build Arrow arrays from the fields of a group: Arrow itself gathers keys and values, without an object per record."""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy
import pyarrow

from headrace.wire.columns.opened import Int64s
from headrace.wire.columns.places import Places

if TYPE_CHECKING:
    Column: TypeAlias = pyarrow.Array[Any]
else:
    Column = pyarrow.Array  # Only its stubs support type parameters.

HEADER_TYPE = pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())])
HEADERS_TYPE = pyarrow.list_(HEADER_TYPE)

_arrow: Any = pyarrow  # Its stubs confuse numpy arrays with lists of booleans.
_MICROSECONDS = 1_000
_MILLISECONDS_MAX = (2**63 - 1) // _MICROSECONDS


def binary_column(plain: bytes | memoryview, at: Int64s, size: Int64s) -> Column:
    """Return the bytes at these positions, in ascending order; null where the size is negative."""
    count = len(at)
    if not count:
        return pyarrow.array([], pyarrow.binary())
    is_null = size < 0
    bounds = numpy.empty(2 * count, numpy.int32)
    bounds[0::2] = at
    bounds[1::2] = at + numpy.maximum(size, 0)
    over = _arrow.BinaryArray.from_buffers(
        pyarrow.binary(), 2 * count - 1, [None, _arrow.py_buffer(bounds), _arrow.py_buffer(plain)]
    )
    chosen = numpy.arange(0, 2 * count, 2, dtype=numpy.int32)
    column: Column = over.take(_arrow.array(chosen, mask=is_null if is_null.any() else None))
    return column


def timestamp_column(milliseconds: Int64s) -> Column:
    """Return microseconds, as Spark uses them; times out of range become the nearest valid time."""
    held = numpy.clip(milliseconds, -_MILLISECONDS_MAX, _MILLISECONDS_MAX)
    column: Column = _arrow.array(held * _MICROSECONDS, pyarrow.timestamp("us", "UTC"))
    return column


def headers_column(plain: bytes | memoryview, places: Places, headers: Int64s) -> Column:
    """Return a list per record; null where a record has no headers, as in Spark's Kafka connector."""
    key_at, key_size, value_at, value_size = headers.T
    keys = text_column(binary_column(plain, key_at, key_size))
    values = binary_column(plain, value_at, value_size)
    ends = numpy.concatenate(([0], numpy.cumsum(places.header_count))).astype(numpy.int32)
    is_null = numpy.append(places.header_count == 0, False)
    pairs = _arrow.StructArray.from_arrays([keys, values], fields=list(HEADER_TYPE))
    column: Column = _arrow.ListArray.from_arrays(_arrow.array(ends, mask=is_null), pairs, type=HEADERS_TYPE)
    return column


def text_column(binary: Column) -> Column:
    """Return text; bytes that are not UTF-8 become replacement characters."""
    try:
        return binary.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        texts = [None if each is None else each.decode(errors="replace") for each in binary.to_pylist()]
        column: Column = _arrow.array(texts, pyarrow.string())
        return column


def constant_column(value: object, kind: pyarrow.DataType, count: int) -> Column:
    column: Column = _arrow.repeat(_arrow.scalar(value, kind), count)
    return column


def within(places: Places, begin: int, end: int) -> Places:
    """Return the records with offsets from `begin` to below `end`; no cost if these are all."""
    offset = places.offset
    if not len(offset) or (offset.min() >= begin and offset.max() < end):
        return places
    return places.chosen((offset >= begin) & (offset < end))
