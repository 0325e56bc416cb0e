"""Locate each field of each record of a group with numpy.

Only the lengths of the records are walked one by one, and not even those for consecutive records of equal size;
everything else is done for all records together: a number of several bytes takes one masked pass per byte. Nothing is
trusted: no position after the end of a record is read.
"""

from typing import NamedTuple, NoReturn

import numpy
from numpy.typing import NDArray

from headrace.wire.columns.opened import BatchRow, Group, Int64s
from headrace.wire.errors import CorruptBatch
from headrace.wire.records.reader import read_varint

RUN_RECORDS_MIN = 64
"""Records of equal size are searched this many at a time at first, then four times as many, and so on."""

_RECORD_SIZE_MIN = 6
_VARINT_BITS_MAX = 63
_CONTINUED = 0x80


class Places(NamedTuple):
    """One number per record in each array. A negative size stands for null; positions are in the group's buffer."""

    offset: Int64s
    timestamp_ms: Int64s
    is_log_time: Int64s
    key_at: Int64s
    key_size: Int64s
    value_at: Int64s
    value_size: Int64s
    headers_at: Int64s
    """The position after the number of headers."""
    header_count: Int64s
    end: Int64s

    def chosen(self, mask: NDArray[numpy.bool_]) -> "Places":
        return Places(*(column[mask] for column in self))


def find_places(group: Group) -> Places:
    """Locate the fields of all records; `CorruptBatch` if a record contradicts its declared sizes."""
    plain = bytes(group.plain)
    buffer = numpy.frombuffer(plain, numpy.uint8)
    walk = _Walk(plain, buffer)
    for row in group.rows.tolist():
        walk.take(BatchRow(*row))
    bodies, ends = walk.found()
    counts = group.rows[:, BatchRow._fields.index("record_count")]
    base_offset, last_delta, base_timestamp, is_log_time = (each.repeat(counts) for each in group.rows.T[3:])
    later, at = _numbers(buffer, bodies + 1, ends)
    delta, at = _numbers(buffer, at, ends)
    if ((delta < 0) | (delta > last_delta)).any():
        _refuse("has an offset outside of its batch")
    key_size, key_at = _numbers(buffer, at, ends)
    value_size, value_at = _numbers(buffer, _behind(key_at, key_size, ends), ends)
    header_count, headers_at = _numbers(buffer, _behind(value_at, value_size, ends), ends)
    left = ends - headers_at
    if ((header_count < 0) | (header_count > left // 2) | ((header_count == 0) & (left != 0))).any():
        _refuse("does not match its declared size")
    timestamp = numpy.where(is_log_time, base_timestamp, base_timestamp + later)
    if (((timestamp < base_timestamp) != (later < 0)) & (is_log_time == 0)).any():
        _refuse("has a time beyond 64 bits")
    return Places(
        base_offset + delta,
        timestamp,
        is_log_time,
        key_at,
        key_size,
        value_at,
        value_size,
        headers_at,
        header_count,
        ends,
    )


def find_headers(plain: bytes, places: Places) -> Int64s:
    """Return a row for each header of all records: position and size of its key, position and size of its value."""
    found: list[tuple[int, int, int, int]] = []
    chosen = numpy.flatnonzero(places.header_count)
    try:
        for at, count, end in zip(
            places.headers_at[chosen].tolist(),
            places.header_count[chosen].tolist(),
            places.end[chosen].tolist(),
            strict=True,
        ):
            for _ in range(count):
                key_size, key_at = read_varint(plain, at)
                if not 0 <= key_size <= end - key_at:
                    _refuse("has a header that exceeds the record")
                value_size, value_at = read_varint(plain, key_at + key_size)
                at = value_at + max(value_size, 0)
                if at > end:
                    _refuse("has a header that exceeds the record")
                found.append((key_at, key_size, value_at, max(value_size, -1)))
            if at != end:
                _refuse("does not match its declared size")
    except IndexError:
        _refuse("has truncated headers")
    return numpy.array(found, numpy.int64).reshape(-1, 4)


class _Walk:
    """The positions of records, after their lengths, and their ends: walked one by one, or a run at once."""

    def __init__(self, plain: bytes, buffer: NDArray[numpy.uint8]) -> None:
        self._plain = plain
        self._buffer = buffer
        self._bodies: list[int] = []
        self._ends: list[int] = []
        """Positions walked one by one since the last run."""
        self._parts: list[tuple[Int64s, Int64s]] = []

    def take(self, row: BatchRow) -> None:
        """Walk all records of a batch."""
        at, left = row.begin, row.record_count
        while left:
            before = len(self._ends)
            at, stride = self._take_uneven(at, row.end, left)
            left -= len(self._ends) - before
            if stride:
                run = self._take_run(at, row.end, left, stride)
                left -= run
                at += run * stride
        if at != row.end:
            raise CorruptBatch(f"{row.end - at} bytes follow the last record of the batch at offset {row.base_offset}")

    def found(self) -> tuple[Int64s, Int64s]:
        self._close_part()
        return numpy.concatenate([part[0] for part in self._parts]), numpy.concatenate(
            [part[1] for part in self._parts]
        )

    def _take_uneven(self, at: int, end: int, left: int) -> tuple[int, int]:
        """Walk record by record; return their distance where two of equal size may begin a run, else zero."""
        plain, bodies, ends, before, runs_until = self._plain, self._bodies, self._ends, -1, left - RUN_RECORDS_MIN
        try:
            for count in range(left):
                byte = plain[at]
                if byte < _CONTINUED:
                    size, body = byte >> 1, at + 1
                    if byte & 1:
                        _refuse("has a size below zero")
                elif (high := plain[at + 1]) < _CONTINUED and not byte & 1:
                    size, body = (byte & 0x7F | high << 7) >> 1, at + 2
                else:
                    size, body = read_varint(plain, at)
                begin, at = at, body + size
                if size < _RECORD_SIZE_MIN or at > end:
                    _refuse(f"declares {size} bytes where {end - body} remain")
                bodies.append(body)
                ends.append(at)
                if size == before and count < runs_until:
                    return at, at - begin
                before = size
        except IndexError:
            _refuse("is truncated")
        return at, 0

    def _take_run(self, at: int, end: int, left: int, stride: int) -> int:
        """Walk the following records that are as long as the one before."""
        body = self._bodies[-1]
        run = _run_length(self._buffer, at, end, left, stride, body - (at - stride))
        if run:
            self._close_part()
            steps = numpy.arange(1, run + 1, dtype=numpy.int64) * stride
            self._parts.append((steps + body, steps + at))
        return run

    def _close_part(self) -> None:
        self._parts.append((numpy.array(self._bodies, numpy.int64), numpy.array(self._ends, numpy.int64)))
        self._bodies, self._ends = [], []


def _run_length(buffer: NDArray[numpy.uint8], at: int, end: int, left: int, stride: int, prefix: int) -> int:
    """Count the following records with the same length bytes as the one before, and so the same size."""
    pattern = buffer[at - stride : at - stride + prefix]
    possible = min(left, (end - at) // stride)
    run, window = 0, RUN_RECORDS_MIN
    while run < possible:
        window = min(window, possible - run)
        begin = at + run * stride
        rows = buffer[begin : begin + window * stride].reshape(window, stride)[:, :prefix]
        same = (rows == pattern).all(axis=1)
        if not same.all():
            return run + int(same.argmin())
        run += window
        window *= 4
    return run


def _numbers(buffer: NDArray[numpy.uint8], at: Int64s, ends: Int64s) -> tuple[Int64s, Int64s]:
    """Decode the zigzag numbers at these positions; return them and the positions after them."""
    if (at >= ends).any():
        _refuse("is truncated")
    byte = buffer[at]
    value = (byte & 0x7F).astype(numpy.uint64)
    after = at + 1
    more = numpy.flatnonzero(byte & _CONTINUED)
    shift = 7
    while more.size:
        if shift > _VARINT_BITS_MAX:
            _refuse("has a number longer than ten bytes")
        place = after[more]
        if (place >= ends[more]).any():
            _refuse("is truncated")
        byte = buffer[place]
        if shift == _VARINT_BITS_MAX and (byte > 1).any():
            _refuse("has a number beyond 64 bits")
        value[more] |= (byte & 0x7F).astype(numpy.uint64) << numpy.uint64(shift)
        after[more] = place + 1
        more = more[byte >= _CONTINUED]
        shift += 7
    half = (value >> numpy.uint64(1)).view(numpy.int64)
    return half ^ -(value & numpy.uint64(1)).view(numpy.int64), after


def _behind(at: Int64s, size: Int64s, ends: Int64s) -> Int64s:
    """Return the positions after these bytes; negative sizes stand for null and take none."""
    if (size > ends - at).any():
        _refuse("does not match its declared size")
    return at + numpy.maximum(size, 0)


def _refuse(what: str) -> NoReturn:
    raise CorruptBatch(f"a record {what}")
