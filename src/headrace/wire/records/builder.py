"""Build the bytes of one batch from records, as a producer sends it and the metadata log stores it."""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

from headrace.wire.records.compression import Compression, compress
from headrace.wire.records.header import (
    CONTROL_BIT,
    CRC_AT,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TRANSACTIONAL_BIT,
    checksum,
)

_CRC = Struct(">I")
_SMALL_NUMBERS = 1024


class NewRecord(NamedTuple):
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


def encode_varint(number: int) -> bytes:
    """Encode a number in zigzag form, as records encode every number."""
    value = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_VARINTS = tuple(encode_varint(number) for number in range(_SMALL_NUMBERS))
"""The encodings of small numbers, which nearly all lengths and deltas are."""

_NULL = encode_varint(-1)
_BARE_RECORD_BYTES = 4
"""Attributes, a timestamp delta of zero, a null key and no headers."""
_ROOM_FOR_HEADER = bytes(HEADER_SIZE)


class BatchBuilder:
    """Collects records into one batch; the first record's time is the base of the others."""

    __slots__ = ("_base_timestamp", "_max_timestamp", "_parts", "count", "plain_bytes")

    def __init__(self) -> None:
        self.count = 0
        self.plain_bytes = HEADER_SIZE
        """The size of the batch so far, before compression."""
        self._parts: list[bytes] = [_ROOM_FOR_HEADER]
        self._base_timestamp = 0
        self._max_timestamp = 0

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        if self.count == 0:
            self._base_timestamp = self._max_timestamp = timestamp
        elif timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        delta = timestamp - self._base_timestamp
        time = _VARINTS[delta] if 0 <= delta < _SMALL_NUMBERS else encode_varint(delta)
        offset = _VARINTS[self.count] if self.count < _SMALL_NUMBERS else encode_varint(self.count)
        if key is None:
            key_size, key = _NULL, b""
        else:
            key_size = _VARINTS[len(key)] if len(key) < _SMALL_NUMBERS else encode_varint(len(key))
        if value is None:
            value_size, value = _NULL, b""
        else:
            value_size = _VARINTS[len(value)] if len(value) < _SMALL_NUMBERS else encode_varint(len(value))
        tail = _encode_headers(headers) if headers else b"\x00"
        size = 1 + len(time) + len(offset) + len(key_size) + len(key) + len(value_size) + len(value) + len(tail)
        length = _VARINTS[size] if size < _SMALL_NUMBERS else encode_varint(size)
        self._parts += (length, b"\x00", time, offset, key_size, key, value_size, value, tail)
        self.count += 1
        self.plain_bytes += len(length) + size

    def append_values(self, timestamp: int, values: Iterable[bytes]) -> None:
        """Append records of one time that have only a value, in a third of the time that `append` takes."""
        if self.count == 0:
            self._base_timestamp = self._max_timestamp = timestamp
        assert timestamp == self._base_timestamp == self._max_timestamp, "these records must all have one timestamp"
        parts, varints, count = self._parts, _VARINTS, self.count
        for count, value in enumerate(values, count):  # noqa: B020
            length = len(value)
            offset = varints[count] if count < _SMALL_NUMBERS else encode_varint(count)
            value_size = varints[length] if length < _SMALL_NUMBERS else encode_varint(length)
            size = length + len(value_size) + len(offset) + _BARE_RECORD_BYTES
            record = varints[size] if size < _SMALL_NUMBERS else encode_varint(size)
            parts += (record, b"\x00\x00", offset, _NULL, value_size, value, b"\x00")
            self.plain_bytes += len(record) + size
            self.count += 1

    def build(
        self,
        *,
        base_offset: int = 0,
        compression: int = Compression.NONE,
        leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
        control: bool = False,
    ) -> bytearray:
        """Return the whole batch, with its checksum."""
        assert self.count > 0, "a batch holds at least one record"
        parts = self._parts
        if compression:
            parts = [_ROOM_FOR_HEADER, compress(compression, b"".join(parts[1:]))]
        batch = bytearray().join(parts)
        HEADER.pack_into(
            batch,
            0,
            base_offset,
            len(batch) - LOG_OVERHEAD,
            leader_epoch,
            CURRENT_MAGIC,
            0,
            compression | (TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0),
            self.count - 1,
            self._base_timestamp,
            self._max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            self.count,
        )
        _CRC.pack_into(batch, CRC_AT, checksum(batch))
        return batch


def build_batch(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    compression: int = Compression.NONE,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """Return one batch of these records, at least one."""
    builder = BatchBuilder()
    for record in records:
        builder.append(*record)
    return builder.build(
        base_offset=base_offset,
        compression=compression,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        control=control,
    )


def _encode_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    parts = [encode_varint(len(headers))]
    for key, value in headers:
        name = key.encode()
        parts += (encode_varint(len(name)), name)
        parts += (_NULL,) if value is None else (encode_varint(len(value)), value)
    return b"".join(parts)
