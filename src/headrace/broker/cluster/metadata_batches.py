"""Metadata records as record batches, in the log and in snapshots alike."""

from collections.abc import Iterable, Iterator

from headrace.core.controller.records import Record, RecordError, decode_record, encode_record
from headrace.wire.errors import CorruptBatch
from headrace.wire.records.builder import BatchBuilder
from headrace.wire.records.reader import batches, check_batch, records


def build_metadata_batch(
    changes: Iterable[Record], *, metadata_version: int, base_offset: int, term: int, wall_ms: int
) -> bytearray:
    """One batch; it is the unit of atomicity, because a torn batch is cut off as a whole."""
    builder = BatchBuilder()
    for change in changes:
        builder.append(wall_ms, None, encode_record(change, metadata_version))
    return builder.build(base_offset=base_offset, leader_epoch=term)


def read_metadata_batches(content: bytes) -> Iterator[Record]:
    """Every record of these batches, whose checksums are checked first; CorruptBatch if anything is wrong."""
    for batch in batches(content):
        check_batch(batch)
        for record in records(batch):
            if record.value is None:
                raise CorruptBatch(f"the metadata record at offset {record.offset} has no value")
            try:
                yield decode_record(record.value)
            except RecordError as wrong:
                raise RecordError(f"the metadata record at offset {record.offset}: {wrong}") from None
