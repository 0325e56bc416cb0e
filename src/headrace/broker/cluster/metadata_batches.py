"""Metadata records as record batches, in the log and in snapshots alike."""

from collections.abc import Iterable, Iterator

from headrace.core.controller.records import Record, RecordError, decode_record, encode_record
from headrace.wire.errors import CorruptBatch
from headrace.wire.records.builder import BatchBuilder
from headrace.wire.records.header import BASE_OFFSET, LAST_OFFSET_DELTA, RECORD_COUNT
from headrace.wire.records.reader import batches, check_batch, records


def append_changes(builder: BatchBuilder, changes: Iterable[Record], *, metadata_version: int, wall_ms: int) -> None:
    for change in changes:
        builder.append(wall_ms, None, encode_record(change, metadata_version))


def read_metadata_batches(content: bytes | memoryview, *, first_offset: int) -> Iterator[Record]:
    """Yield every record of the batches; raise CorruptBatch if anything is wrong.

    Checksums are checked first. They do not cover the offset of a batch, so offsets are checked as well: none is
    missing and none occurs twice.
    """
    due = first_offset
    for batch in batches(content):
        fields = check_batch(batch)
        if fields[BASE_OFFSET] != due or not fields[RECORD_COUNT] == fields[LAST_OFFSET_DELTA] + 1 > 0:
            raise CorruptBatch(f"a metadata batch at offset {fields[BASE_OFFSET]} does not follow offset {due}")
        due += fields[RECORD_COUNT]
        for record in records(batch):
            if record.value is None:
                raise CorruptBatch(f"the metadata record at offset {record.offset} has no value")
            try:
                yield decode_record(record.value)
            except RecordError as wrong:
                raise RecordError(f"the metadata record at offset {record.offset}: {wrong}") from None
