"""From the bytes of a fetch to plain records: batches checked, filtered and inflated, in groups of a bounded size.

A group is one buffer and a table with a row per batch. Batches that are not compressed stay where they are, so that
most groups are a view of the fetched bytes.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from headrace.wire.errors import CorruptBatch, InflationLimit
from headrace.wire.records.compression import INFLATED_BYTES_MAX, decompress
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LOG_APPEND_TIME_BIT,
    MAX_TIMESTAMP,
    RECORD_COUNT,
    HeaderFields,
)
from headrace.wire.records.reader import batches, check_batch

GROUP_BYTES = 4 * 1024 * 1024
"""A group is closed when its plain records reach this size; only a single larger batch makes a larger one."""

_OFFSET_MAX = (1 << 63) - 1
_RECORD_BYTES_MIN = 7

Hides = Callable[[memoryview, HeaderFields], bool]
"""Whether a batch is left out, asked for every batch in order."""


class BatchRow(NamedTuple):
    """Where the plain records of a batch are in the buffer of its group, and what their numbers are relative to."""

    begin: int
    end: int
    record_count: int
    base_offset: int
    last_delta: int
    base_timestamp: int
    is_log_time: int
    """1 if the log stamped the batch: then `base_timestamp` is the time of every record."""


class Group(NamedTuple):
    plain: bytes | memoryview
    rows: list[BatchRow]


def hides_control(_batch: memoryview, fields: HeaderFields) -> bool:
    """Leaves out markers only, as a reader of uncommitted records does."""
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
    """The batches that have offsets in the range; whatever contradicts itself raises `CorruptBatch`."""
    view = memoryview(data).cast("B")
    place, group = 0, _Collecting(view, inflated_bytes_max)
    for batch in batches(view):
        fields = check_batch(batch)
        position, place = place, place + len(batch)
        is_hidden = hides(batch, fields)
        base_offset, last_offset = fields[BASE_OFFSET], fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA]
        if not 0 <= base_offset <= last_offset < _OFFSET_MAX:
            raise CorruptBatch(f"a batch has the offsets {base_offset} to {last_offset}")
        if is_hidden or last_offset < begin or base_offset >= end:
            continue
        if group.size and group.size + len(batch) > group_bytes:
            yield group.closed()
            group = _Collecting(view, inflated_bytes_max)
        group.add(position, batch, fields)
    if group.size:
        yield group.closed()


class _Collecting:
    """A group that is being put together."""

    def __init__(self, data: memoryview, inflated_bytes_max: int) -> None:
        self._data = data
        self._inflated_bytes_max = inflated_bytes_max
        self._parts: list[tuple[int, memoryview | bytes, HeaderFields]] = []
        self._is_compressed = False
        self.size = 0

    def add(self, position: int, batch: memoryview, fields: HeaderFields) -> None:
        codec = fields[ATTRIBUTES] & COMPRESSION_MASK
        plain: memoryview | bytes = batch[HEADER_SIZE:]
        if codec:
            plain = decompress(codec, plain, self._inflated_bytes_max)
            self._is_compressed = True
        elif len(plain) > self._inflated_bytes_max:
            raise InflationLimit(f"a batch of {len(plain)} bytes is above the limit of {self._inflated_bytes_max}")
        if fields[RECORD_COUNT] > len(plain) // _RECORD_BYTES_MIN:
            raise CorruptBatch(
                f"the batch at offset {fields[BASE_OFFSET]} declares {fields[RECORD_COUNT]} records "
                f"in {len(plain)} bytes"
            )
        self._parts.append((position + HEADER_SIZE, plain, fields))
        self.size += HEADER_SIZE + len(plain)

    def closed(self) -> Group:
        if not self._is_compressed:
            first = self._parts[0][0]
            last_position, last_plain, _fields = self._parts[-1]
            plain = self._data[first : last_position + len(last_plain)]
            return Group(plain, [_row(at - first, part, fields) for at, part, fields in self._parts])
        rows, position = [], 0
        for _, part, fields in self._parts:
            rows.append(_row(position, part, fields))
            position += len(part)
        return Group(b"".join(part for _, part, _ in self._parts), rows)


def _row(position: int, plain: memoryview | bytes, fields: HeaderFields) -> BatchRow:
    is_log_time = fields[ATTRIBUTES] & LOG_APPEND_TIME_BIT != 0
    return BatchRow(
        position,
        position + len(plain),
        fields[RECORD_COUNT],
        fields[BASE_OFFSET],
        fields[LAST_OFFSET_DELTA],
        fields[MAX_TIMESTAMP] if is_log_time else fields[BASE_TIMESTAMP],
        int(is_log_time),
    )
