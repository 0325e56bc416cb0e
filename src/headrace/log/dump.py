"""Print every file of a log in readable form: batches, records, index entries, producers, epochs and checkpoints."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct

from headrace.ports.disk import Disk
from headrace.wire.errors import ProtocolError
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    LENGTH,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAX_TIMESTAMP,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORD_COUNT,
    TRANSACTIONAL_BIT,
    HeaderFields,
)
from headrace.wire.records.reader import records

from . import checkpoints, names, producer_snapshot, transaction_index
from .errors import CorruptFile, LogError
from .files import read_whole
from .index import OFFSET_ENTRY, TIME_ENTRY
from .leader_epochs import EPOCHS_FILE_BYTES_MAX, LeaderEpochs
from .walk import BatchWalk

INDEX_BYTES_MAX = 1 << 30

Value = int | str | bytes | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpEntry:
    """One item of a file: its kind, its position and its contents."""

    path: str
    kind: str
    position: int
    values: Mapping[str, Value]


Reader = Callable[[Disk, str, bool], Iterator[DumpEntry]]


def dump(disk: Disk, path: str, *, deep: bool = False) -> Iterator[DumpEntry]:
    """Dump a file, a partition's folder or a whole log directory; `deep` also decodes the records of batches."""
    if disk.is_directory(path):
        for name in disk.list_directory(path):
            inner = f"{path}/{name}"
            if disk.is_directory(inner) or _reader_of(name) is not None:
                yield from dump(disk, inner, deep=deep)
        return
    reader = _reader_of(path.rpartition("/")[2])
    if reader is None:
        raise LogError(f"{path} is not a log file: expected a segment, an index, a snapshot or a checkpoint")
    try:
        yield from reader(disk, path, deep)
    except CorruptFile as error:
        yield DumpEntry(path=path, kind="damage", position=0, values={"damage": str(error)})


def _reader_of(name: str) -> Reader | None:
    part = names.parse_segment_file(name.removesuffix(names.DELETED))
    return _READERS.get(part[1] if part is not None else name)


def _segment(disk: Disk, path: str, deep: bool) -> Iterator[DumpEntry]:
    part = names.parse_segment_file(path.rpartition("/")[2].removesuffix(names.DELETED))
    assert part is not None
    file = disk.open(path, writable=False)
    try:
        size = disk.size(file)
        walk = BatchWalk(disk, file, position=0, end=size, next_offset=part[0], check_from_offset=0)
        for position, fields in walk:
            yield DumpEntry(path=path, kind="batch", position=position, values=batch_values(fields))
            if deep:
                yield from _records(path, position, walk.batch(position, fields))
        if walk.damage:
            yield DumpEntry(path=path, kind="damage", position=walk.position, values={"damage": walk.damage})
        elif walk.position < size:
            zeros = {"bytes": size - walk.position}
            yield DumpEntry(path=path, kind="preallocated", position=walk.position, values=zeros)
    finally:
        disk.close(file)


def batch_values(fields: HeaderFields) -> dict[str, Value]:
    attributes = fields[ATTRIBUTES]
    return {
        "base_offset": fields[BASE_OFFSET],
        "last_offset": fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA],
        "records": fields[RECORD_COUNT],
        "bytes": fields[LENGTH] + LOG_OVERHEAD,
        "leader_epoch": fields[LEADER_EPOCH],
        "compression": attributes & COMPRESSION_MASK,
        "base_timestamp": fields[BASE_TIMESTAMP],
        "max_timestamp": fields[MAX_TIMESTAMP],
        "append_time": bool(attributes & LOG_APPEND_TIME_BIT),
        "transactional": bool(attributes & TRANSACTIONAL_BIT),
        "control": bool(attributes & CONTROL_BIT),
        "producer_id": fields[PRODUCER_ID],
        "producer_epoch": fields[PRODUCER_EPOCH],
        "base_sequence": fields[BASE_SEQUENCE],
        "crc": fields[CRC],
    }


def _records(path: str, position: int, batch: bytes) -> Iterator[DumpEntry]:
    try:
        for record in records(batch):
            values: dict[str, Value] = {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": record.key,
                "value": record.value,
                **{f"header:{name}": value for name, value in record.headers},
            }
            yield DumpEntry(path=path, kind="record", position=position, values=values)
    except ProtocolError as error:
        yield DumpEntry(path=path, kind="damage", position=position, values={"damage": str(error)})


def _index_reader(kind: str, entry: Struct, first: str, second: str) -> Reader:
    def read(disk: Disk, path: str, _deep: bool) -> Iterator[DumpEntry]:
        content = read_whole(disk, path, INDEX_BYTES_MAX)
        whole = len(content) - len(content) % entry.size
        for position in range(0, whole, entry.size):
            a, b = entry.unpack_from(content, position)
            yield DumpEntry(path=path, kind=kind, position=position, values={first: a, second: b})
        if whole < len(content):
            raise CorruptFile(f"{len(content) - whole} bytes after the last entry do not form a whole entry")

    return read


def _transaction_index(disk: Disk, path: str, _deep: bool) -> Iterator[DumpEntry]:
    entries = transaction_index.decode(read_whole(disk, path, transaction_index.INDEX_BYTES_MAX))
    for place, entry in enumerate(entries):
        position = place * transaction_index.ENTRY.size
        yield DumpEntry(path=path, kind="aborted-transaction", position=position, values=entry._asdict())


def _snapshot(disk: Disk, path: str, _deep: bool) -> Iterator[DumpEntry]:
    producers = producer_snapshot.decode(read_whole(disk, path, producer_snapshot.SNAPSHOT_BYTES_MAX))
    for place, (producer_id, state) in enumerate(producers.states()):
        values: dict[str, Value] = {
            "producer_id": producer_id,
            "producer_epoch": state.epoch,
            "last_timestamp": state.last_timestamp,
            "coordinator_epoch": state.coordinator_epoch,
            "transaction_start_offset": state.transaction_start_offset,
            "batches": " ".join(f"{first}-{last}@{base}" for first, last, base, _, _ in state.batches),
        }
        yield DumpEntry(path=path, kind="producer", position=place, values=values)


def _epochs(disk: Disk, path: str, _deep: bool) -> Iterator[DumpEntry]:
    epochs = LeaderEpochs.decode(read_whole(disk, path, EPOCHS_FILE_BYTES_MAX))
    for place, (epoch, start) in enumerate(zip(epochs.epochs, epochs.starts, strict=True)):
        values = {"leader_epoch": epoch, "start_offset": start}
        yield DumpEntry(path=path, kind="leader-epoch", position=place, values=values)


def _offsets(disk: Disk, path: str, _deep: bool) -> Iterator[DumpEntry]:
    offsets = checkpoints.decode_offsets(read_whole(disk, path, checkpoints.CHECKPOINT_BYTES_MAX))
    for place, (topic_partition, offset) in enumerate(offsets.items()):
        values: dict[str, Value] = {
            "topic": topic_partition.topic,
            "partition": topic_partition.partition,
            "offset": offset,
        }
        yield DumpEntry(path=path, kind="checkpoint", position=place, values=values)


def _partition_metadata(disk: Disk, path: str, _deep: bool) -> Iterator[DumpEntry]:
    topic_id = checkpoints.decode_partition_metadata(read_whole(disk, path, checkpoints.PROPERTIES_BYTES_MAX))
    values = {"topic_id": checkpoints.encode_uuid(topic_id)}
    yield DumpEntry(path=path, kind="partition-metadata", position=0, values=values)


def _meta_properties(disk: Disk, path: str, _deep: bool) -> Iterator[DumpEntry]:
    properties = checkpoints.decode_properties(read_whole(disk, path, checkpoints.PROPERTIES_BYTES_MAX))
    yield DumpEntry(path=path, kind="meta-properties", position=0, values=properties)


_READERS: dict[str, Reader] = {
    names.LOG: _segment,
    names.INDEX: _index_reader("offset-index", OFFSET_ENTRY, "relative_offset", "log_position"),
    names.TIME_INDEX: _index_reader("time-index", TIME_ENTRY, "timestamp", "relative_offset"),
    names.TRANSACTION_INDEX: _transaction_index,
    names.SNAPSHOT: _snapshot,
    names.LEADER_EPOCHS: _epochs,
    names.PARTITION_METADATA: _partition_metadata,
    names.META_PROPERTIES: _meta_properties,
    names.RECOVERY_POINTS: _offsets,
    names.START_OFFSETS: _offsets,
    names.START_OFFSETS_COPY: _offsets,
    names.HIGH_WATERMARKS: _offsets,
}
