"""Extract the columns of a batch's records without a Python step for each byte of their headers.

Records of equal layout (the same sizes and headers, and numbers of the same widths) follow each other at equal
distances. So a regular expression for the layout finds a whole run of them, `struct` cuts out their keys and values,
both in C, and their numbers are slices with a stride. For records of mixed layout the result is `None`, and the caller
decodes them one by one.
"""

import re
from collections.abc import Sequence
from itertools import repeat
from struct import Struct
from typing import NamedTuple

from headrace.wire.errors import CorruptBatch
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    LAST_OFFSET_DELTA,
    LOG_APPEND_TIME_BIT,
    MAX_TIMESTAMP,
    RECORD_COUNT,
    HeaderFields,
)
from headrace.wire.records.reader import ONE_BYTE_NUMBERS, Headers, read_headers, read_varint

RUN_RECORDS_MIN = 8
"""Least records left for which a run is searched; shorter runs are decoded one by one as quickly."""

CUT_RECORDS_MAX = 128
"""Most records cut by one call."""

LAYOUTS_MAX = 256
"""Shapes that are remembered; if there are more, all are forgotten, because they hardly repeat."""

Plain = bytes | memoryview
Run = tuple["RecordLayout", int, int]
"""The layout of the records, the position of the first one, and their number."""

_STEPS = bytes(range(0, 0x80, 2))
"""The encoding of 0, 1, 2 and so on, as far as one byte goes."""


class Columns(NamedTuple):
    """One entry per record in each column."""

    offsets: list[int]
    timestamps: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[Headers]


class _Head(NamedTuple):
    """Positions of the parts of one record; lengths of -1 are nulls."""

    begin: int
    time_at: int
    offset_at: int
    key_length_at: int
    key_at: int
    key_length: int
    value_length_at: int
    value_at: int
    value_length: int
    headers_at: int
    end: int


class _Cutter:
    """Cuts the same piece out of each record of a run: 2, 4, 8 ... records per call, so that there are few formats."""

    __slots__ = ("_one", "_stride", "_structs")

    def __init__(self, begin: int, length: int, stride: int) -> None:
        self._one = f"{begin}x{length}s{stride - begin - length}x"
        self._stride = stride
        self._structs: dict[int, Struct] = {}

    def cut(self, plain: Plain, begin: int, count: int) -> list[bytes]:
        whole = self._structs.get(count)
        if whole is not None:
            return list(whole.unpack_from(plain, begin))
        found: list[bytes] = []
        while count:
            some = min(1 << count.bit_length() - 1, CUT_RECORDS_MAX)
            struct = self._structs.get(some)
            if struct is None:
                struct = self._structs[some] = Struct(self._one * some)
            found += struct.unpack_from(plain, begin)
            begin += some * self._stride
            count -= some
        return found


class RecordLayout:
    """The layout of the records of a run."""

    __slots__ = ("follower", "headers", "keys", "offset", "run", "stride", "time", "values")

    def __init__(self, plain: Plain, head: _Head) -> None:
        headers = bytes(plain[head.headers_at : head.end])
        self.headers, end = read_headers(headers, 0, len(headers))
        if end != len(headers):
            raise CorruptBatch("the headers of a record do not match their declared sizes")
        self.stride = head.end - head.begin
        self.time = range(head.time_at - head.begin, head.offset_at - head.begin)
        self.offset = range(head.offset_at - head.begin, head.key_length_at - head.begin)
        """The bytes of a record that hold its timestamp delta and offset delta."""
        self.follower: RecordLayout | None = None
        """The layout that last followed this one."""
        before = re.escape(bytes(plain[head.begin : head.time_at]))
        numbers = _number(len(self.time)) + _number(len(self.offset))
        key_length = re.escape(bytes(plain[head.key_length_at : head.key_at]))
        key = _any(head.key_length)
        value_length = re.escape(bytes(plain[head.value_length_at : head.value_at]))
        value = _any(head.value_length)
        parts = before, numbers, key_length, key, value_length, value, re.escape(headers)
        self.run = re.compile(b"(?:%b%b%b%b%b%b%b)*+" % parts, re.DOTALL)
        """Takes any number of records."""
        self.keys = _cutter(head, head.key_at, head.key_length)
        self.values = _cutter(head, head.value_at, head.value_length)
        """None for nulls."""


def _cutter(head: _Head, at: int, length: int) -> _Cutter | None:
    return _Cutter(at - head.begin, length, head.end - head.begin) if length >= 0 else None


def _any(length: int) -> bytes:
    """Match any bytes of this length; null has none."""
    return b".{%d}" % length if length > 0 else b""


def _number(width: int) -> bytes:
    """Match a varint of this length: all bytes but the last have the highest bit."""
    return b"[\x80-\xff]" * (width - 1) + b"[\x00-\x7f]"


class _RecordLayouts:
    """The layouts seen so far."""

    __slots__ = ("_known", "first")

    def __init__(self) -> None:
        self.first: RecordLayout | None = None
        """The first layout of the last batch."""
        self._known: dict[tuple[bytes | int, ...], RecordLayout | None] = {}
        """None for a layout that was seen once. Its expression is compiled when it appears again: compiling costs
        more than decoding a batch record by record.
        """

    def of(self, plain: Plain, head: _Head) -> RecordLayout | None:
        same = (
            bytes(plain[head.begin : head.time_at]),
            head.offset_at - head.time_at,
            bytes(plain[head.key_length_at : head.key_at]),
            bytes(plain[head.value_length_at : head.value_at]),
            bytes(plain[head.headers_at : head.end]),
        )
        layout = self._known.get(same)
        if layout is None:
            if same in self._known:
                layout = self._known[same] = RecordLayout(plain, head)
            else:
                if len(self._known) >= LAYOUTS_MAX:
                    self._known.clear()
                self._known[same] = None
        return layout


_LAYOUTS = _RecordLayouts()


def values_of(plain: Plain, count: int) -> list[bytes | None] | None:
    """Return the values of a batch's records after decompression; None if they do not form known runs."""
    runs = _runs(plain, count)
    return None if runs is None else _values(plain, runs)


def keys_of(plain: Plain, count: int) -> list[bytes | None] | None:
    """Return the keys, as `values_of` does."""
    runs = _runs(plain, count)
    return None if runs is None else _keys(plain, runs)


def columns_of(fields: HeaderFields, plain: bytes) -> Columns | None:
    """Return all columns of a batch's records after decompression; None as in `values_of`."""
    runs = _runs(plain, fields[RECORD_COUNT])
    if runs is None:
        return None
    offsets: list[int] = []
    timestamps: list[int] = []
    headers: list[Headers] = []
    base, time = fields[BASE_OFFSET], fields[BASE_TIMESTAMP]
    is_log_time = fields[ATTRIBUTES] & LOG_APPEND_TIME_BIT
    for layout, begin, run in runs:
        part = plain[begin : begin + run * layout.stride]
        offsets += _added(base, part, layout.offset, layout.stride)
        if is_log_time:
            timestamps += [fields[MAX_TIMESTAMP]] * run
        else:
            timestamps += _added(time, part, layout.time, layout.stride)
        headers += [layout.headers] * run
    if offsets and (min(offsets) < base or max(offsets) > base + fields[LAST_OFFSET_DELTA]):
        raise CorruptBatch(f"a record of the batch at offset {base} does not match its declared size")
    return Columns(offsets, timestamps, _keys(plain, runs), _values(plain, runs), headers)


def _values(plain: Plain, runs: list[Run]) -> list[bytes | None]:
    values: list[bytes | None] = []
    for layout, begin, run in runs:
        values += layout.values.cut(plain, begin, run) if layout.values is not None else repeat(None, run)
    return values


def _keys(plain: Plain, runs: list[Run]) -> list[bytes | None]:
    keys: list[bytes | None] = []
    for layout, begin, run in runs:
        keys += layout.keys.cut(plain, begin, run) if layout.keys is not None else repeat(None, run)
    return keys


def _added(base: int, part: bytes, places: range, stride: int) -> Sequence[int]:
    """Add the deltas of a run's records, encoded at these positions, to the batch's base value."""
    first = part[places.start :: stride]
    count = len(first)
    begin = first[0] >> 1
    if len(places) == 1:
        if first == _STEPS[begin : begin + count]:
            return range(base + begin, base + begin + count)
        return [base + ONE_BYTE_NUMBERS[byte] for byte in first]
    numbers = [byte & 0x7F for byte in first]
    for shift, place in enumerate(places[1:], 1):
        column = part[place::stride]
        numbers = [number | (byte & 0x7F) << 7 * shift for number, byte in zip(numbers, column, strict=True)]
    return [base + ((number >> 1) ^ -(number & 1)) for number in numbers]


def _runs(plain: Plain, count: int) -> list[Run] | None:
    """Split the records into runs of equal layout; None if they do not form runs, or only of unknown layouts."""
    first = _LAYOUTS.first
    if count and first is not None and len(plain) == count * first.stride and _run_end(first, plain, 0) == len(plain):
        return [(first, 0, count)]  # Usually all records have the layout of the batch before.
    runs: list[Run] = []
    position, left = 0, count
    before: RecordLayout | None = None
    while left > 0:
        layout = _LAYOUTS.first if before is None else before.follower
        end = _run_end(layout, plain, position) if layout is not None else position
        if end == position:
            if (layout := _next_layout(plain, position, left)) is None:
                return None
            end = _run_end(layout, plain, position)
            if before is None:
                _LAYOUTS.first = layout
            else:
                before.follower = layout
        assert layout is not None
        run = min((end - position) // layout.stride, left)
        if run < RUN_RECORDS_MIN <= left:
            return None
        runs.append((layout, position, run))
        position += run * layout.stride
        left -= run
        before = layout
    if position != len(plain):
        raise CorruptBatch(f"{len(plain) - position} bytes follow the last record of a batch")
    return runs


def _run_end(layout: RecordLayout, plain: Plain, position: int) -> int:
    match = layout.run.match(plain, position)
    assert match is not None, "no records at all are a run too"
    return match.end()


def _next_layout(plain: Plain, position: int, left: int) -> RecordLayout | None:
    """Return the layout of the record at this position, if others of the same layout are likely to follow."""
    try:
        head = _read_head(plain, position)
        if left >= RUN_RECORDS_MIN and not _is_repeated(plain, head):
            return None
        return _LAYOUTS.of(plain, head)
    except IndexError:
        raise CorruptBatch("the records of a batch are truncated") from None


def _is_repeated(plain: Plain, head: _Head) -> bool:
    """Return whether enough records of the same size follow to form a run."""
    stride, size = head.end - head.begin, bytes(plain[head.begin : head.time_at])
    places = range(head.begin + stride, head.begin + RUN_RECORDS_MIN * stride, stride)
    return all(plain[at : at + len(size)] == size for at in places)


def _read_head(plain: Plain, begin: int) -> _Head:
    size, after = read_varint(plain, begin)
    end = after + size
    time_at = after + 1  # after the attributes
    _later, offset_at = read_varint(plain, time_at)
    _delta, key_length_at = read_varint(plain, offset_at)
    key_length, key_at = read_varint(plain, key_length_at)
    value_length_at = key_at + max(key_length, 0)
    value_length, value_at = read_varint(plain, value_length_at)
    headers_at = value_at + max(value_length, 0)
    if size < 0 or key_length < -1 or value_length < -1 or not headers_at < end <= len(plain):
        raise CorruptBatch("a record does not match its declared size")
    return _Head(
        begin,
        time_at,
        offset_at,
        key_length_at,
        key_at,
        key_length,
        value_length_at,
        value_at,
        value_length,
        headers_at,
        end,
    )
