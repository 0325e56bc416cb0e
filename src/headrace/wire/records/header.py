"""The 61-byte header of a record batch: all that the broker reads on the produce and fetch paths.

The header is the tuple that `HEADER.unpack_from` returns; the constants below name its positions. No object is built
for it, because produce and fetch read one per batch.
"""

from struct import Struct

from headrace.wire.checksum import crc32c

HEADER = Struct(">qiibIhiqqqhii")
HEADER_SIZE = 61
assert HEADER.size == HEADER_SIZE

(
    BASE_OFFSET,
    LENGTH,
    LEADER_EPOCH,
    MAGIC,
    CRC,
    ATTRIBUTES,
    LAST_OFFSET_DELTA,
    BASE_TIMESTAMP,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    PRODUCER_EPOCH,
    BASE_SEQUENCE,
    RECORD_COUNT,
) = range(13)

HeaderFields = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]

LENGTH_AT = 8
LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
CRC_COVERS_FROM = 21
"""The checksum covers the bytes from the attributes to the end, so base offset and leader epoch can be changed."""

BASE_TIMESTAMP_AT = 27
"""The maximum timestamp follows it."""

LOG_OVERHEAD = 12
"""Bytes before the part that `length` counts: the base offset and the length itself."""

CURRENT_MAGIC = 2
COMPRESSION_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

_OFFSET = Struct(">q")
_EPOCH = Struct(">i")
_CRC = Struct(">I")
_TIMESTAMP = Struct(">q")
_ATTRIBUTES = Struct(">h")
_MAX_TIMESTAMP_AT = 35
_ATTRIBUTES_AT = 21
_PRODUCER = Struct(">qhi")
_PRODUCER_AT = 43


def stamp(batch: memoryview | bytearray, *, base_offset: int, leader_epoch: int) -> None:
    """Write the two fields that the leader sets, in place; the checksum does not cover them."""
    _OFFSET.pack_into(batch, 0, base_offset)
    _EPOCH.pack_into(batch, LEADER_EPOCH_AT, leader_epoch)


def stamp_producer(
    batch: bytearray, *, producer_id: int, producer_epoch: int, base_sequence: int, transactional: bool
) -> None:
    """Set the producer of a finished batch and recompute its checksum, in place."""
    stamp(batch, base_offset=0, leader_epoch=-1)
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    bit = TRANSACTIONAL_BIT if transactional else 0
    _ATTRIBUTES.pack_into(batch, _ATTRIBUTES_AT, attributes & ~TRANSACTIONAL_BIT | bit)
    _PRODUCER.pack_into(batch, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    _CRC.pack_into(batch, CRC_AT, checksum(batch))


def compression_of(batch: bytes | bytearray | memoryview) -> int:
    attributes: int = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)[0]
    return attributes & COMPRESSION_MASK


def stamp_append_time(batch: memoryview | bytearray, timestamp_ms: int) -> None:
    """Set the append time and recompute the checksum, in place (message.timestamp.type)."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(batch, _ATTRIBUTES_AT, attributes | LOG_APPEND_TIME_BIT)
    _TIMESTAMP.pack_into(batch, _MAX_TIMESTAMP_AT, timestamp_ms)
    _CRC.pack_into(batch, CRC_AT, checksum(batch))


def checksum(batch: memoryview | bytearray | bytes) -> int:
    """Return the CRC-32C of one whole batch, which its header should contain."""
    crc: int = crc32c(memoryview(batch)[CRC_COVERS_FROM:])
    return crc
