"""Batches whose checksum is right and whose contents are not."""

import struct

from headrace.wire.records import header
from headrace.wire.records.builder import NewRecord, build_batch


def with_header(batch: bytes | bytearray, **fields: int) -> bytearray:
    """The batch with some header fields changed and its checksum made right again."""
    changed = list(header.HEADER.unpack_from(batch))
    for name, value in fields.items():
        changed[getattr(header, name)] = value
    forged = bytearray(batch)
    header.HEADER.pack_into(forged, 0, *changed)
    struct.pack_into(">I", forged, header.CRC_AT, header.checksum(forged))
    return forged


def with_body(body: bytes, count: int) -> bytearray:
    """A batch whose header is right and whose records are these bytes."""
    batch = build_batch([NewRecord(0, None, None)])[: header.HEADER_SIZE] + body
    size = len(batch) - header.LOG_OVERHEAD
    return with_header(batch, LENGTH=size, RECORD_COUNT=count, LAST_OFFSET_DELTA=max(count - 1, 0))
