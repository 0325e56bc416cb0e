"""Entries of the metadata log as record batches: one batch per entry, with one record.

Batches of earlier releases hold several records, which are entries too.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Annotated

import msgspec

from headrace.core.controller.records import Record, RecordError, decode_record
from headrace.core.raft.entries import EntryKind, LogEntry
from headrace.core.raft.ids import DirectoryId, Index, ReplicaKey, Term, Voters, voter_set
from headrace.core.raft.settings import VOTERS_MAX
from headrace.model.ids import NodeId
from headrace.wire.errors import CorruptBatch
from headrace.wire.records.builder import BatchBuilder
from headrace.wire.records.header import BASE_OFFSET, LAST_OFFSET_DELTA, LEADER_EPOCH, RECORD_COUNT
from headrace.wire.records.reader import Record as BatchRecord
from headrace.wire.records.reader import batches, check_batch, is_control, records

VOTERS_CONTROL_TYPE = 6
"""Kafka's type of the control record with the voter set (KIP-853)."""

_CONTROL_KEY = Struct(">hh")
_CONTROL_KEY_VERSION = 0
_VOTERS_KEY = _CONTROL_KEY.pack(_CONTROL_KEY_VERSION, VOTERS_CONTROL_TYPE)

StoredVoters = Annotated[
    tuple[tuple[Annotated[int, msgspec.Meta(ge=0)], Annotated[str, msgspec.Meta(min_length=1)]], ...],
    msgspec.Meta(max_length=VOTERS_MAX),
]
_VOTERS_DECODER = msgspec.msgpack.Decoder(StoredVoters)


def entry_batch(entry: LogEntry, wall_ms: int) -> bytearray:
    builder = BatchBuilder()
    is_voter_set = entry.kind is EntryKind.VOTERS
    if is_voter_set:
        builder.append(wall_ms, _VOTERS_KEY, msgspec.msgpack.encode(entry.voters))
    else:
        builder.append(wall_ms, None, entry.payload)
    return builder.build(base_offset=entry.index - 1, leader_epoch=entry.term, control=is_voter_set)


def read_entries(content: bytes | memoryview, *, first_offset: int) -> Iterator[LogEntry]:
    """Yield every entry of the batches; raise CorruptBatch if anything is wrong.

    Checksums are checked first. They do not cover the offset of a batch, so offsets are checked as well: none is
    missing and none occurs twice.
    """
    for batch, term in _checked_batches(content, first_offset=first_offset):
        is_voter_set = is_control(batch)
        for record in records(batch):
            index = Index(record.offset + 1)
            value = _value(record)
            if is_voter_set:
                voters = _decoded_voters(record.key, value, index)
                yield LogEntry(term=term, index=index, kind=EntryKind.VOTERS, voters=voters)
            else:
                yield LogEntry(term=term, index=index, payload=value)


def read_snapshot_records(content: bytes | memoryview, *, first_offset: int) -> Iterator[Record]:
    """Yield every record of the batches of a snapshot, which are numbered from 0 on."""
    for batch, _term in _checked_batches(content, first_offset=first_offset):
        for record in records(batch):
            try:
                yield decode_record(_value(record))
            except RecordError as wrong:
                raise RecordError(f"the metadata record at offset {record.offset}: {wrong}") from None


def _checked_batches(content: bytes | memoryview, *, first_offset: int) -> Iterator[tuple[memoryview, Term]]:
    due = first_offset
    for batch in batches(content):
        fields = check_batch(batch)
        if fields[BASE_OFFSET] != due or not fields[RECORD_COUNT] == fields[LAST_OFFSET_DELTA] + 1 > 0:
            raise CorruptBatch(f"a metadata batch at offset {fields[BASE_OFFSET]} does not follow offset {due}")
        due += fields[RECORD_COUNT]
        yield batch, Term(fields[LEADER_EPOCH])


def _value(record: BatchRecord) -> bytes:
    if record.value is None:
        raise CorruptBatch(f"the metadata record at offset {record.offset} has no value")
    return bytes(record.value)


def _decoded_voters(key: bytes | None, value: bytes, index: Index) -> Voters:
    if key != _VOTERS_KEY:
        raise CorruptBatch(f"the control record at offset {index - 1} is of an unknown type")
    try:
        return as_voters(_VOTERS_DECODER.decode(value))
    except (msgspec.MsgspecError, ValueError, RecursionError) as wrong:
        raise CorruptBatch(f"the voter set at offset {index - 1} cannot be decoded: {wrong}") from None


def as_voters(stored: tuple[tuple[int, str], ...]) -> Voters:
    return voter_set(*(ReplicaKey(NodeId(node_id), DirectoryId(directory_id)) for node_id, directory_id in stored))
