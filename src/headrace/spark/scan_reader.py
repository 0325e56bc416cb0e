"""Read a piece of a scan on an executor: check that the files are the intended ones, and decode them.

If anything differs from the manifest (a missing file, a directory of another cluster, an older lease), the range is
read through the broker, and one log line says why. The rows are the same.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from time import time
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from headrace.client.scans import AbortedRange, ScanLease, ScanManifest
from headrace.log.checkpoints import decode_partition_metadata, decode_properties
from headrace.log.errors import CorruptFile
from headrace.log.names import META_PROPERTIES, PARTITION_METADATA
from headrace.spark.log_once import log_once
from headrace.spark.range_planner import OffsetRange
from headrace.spark.range_reader import RangePartition, decoder_helper, read_range
from headrace.spark.scan_plan import FilePart, FilePlace, ScanPiece, client_config
from headrace.spark.source_options import SourceOptions
from headrace.spark.workers import freeze_imports
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_OFFSET,
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LENGTH_AT,
    LOG_OVERHEAD,
    PRODUCER_ID,
    TRANSACTIONAL_BIT,
    HeaderFields,
)

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType

CHUNK_BYTES = 4 * 1024 * 1024
"""Bytes read at a time; a larger batch is read as a whole."""
RENEW_S = 120.0
"""Interval at which a worker that reads files renews the leases, which last several times as long."""
LEASES_KNOWN_MAX = 100
TEXT_BYTES_MAX = 64 * 1024

_renewed_s: dict[tuple[ScanLease, ...], float] = {}
"""When this worker last renewed the leases of a job: most pieces take far less time to read."""
_LENGTH = Struct(">i")
_INDEX_ENTRY = Struct(">II")


class FileRefused(Exception):
    """A file is not, or no longer, the one of the manifest."""


class Chunk(NamedTuple):
    batches: memoryview
    """Consecutive whole batches."""
    end_offset: int
    """The offset after the last of them."""


def read_piece(piece: ScanPiece, options: SourceOptions, schema: "StructType") -> "Iterator[pyarrow.RecordBatch]":
    from headrace.spark.rows import RowMaker
    from headrace.wire.columns.decoder import decode

    freeze_imports()
    maker = RowMaker(options, schema)
    done = piece.wanted.begin
    try:
        check_place(piece.place)
        for part in piece.parts:
            for chunk in _chunks(Path(piece.place.directory, piece.place.folder), part):
                _keep_leases(piece.place, options)
                for decoded in decode(
                    chunk.batches,
                    begin=max(part.begin, done),
                    end=part.end,
                    hides=hides_aborted(piece.place.aborted),
                    with_headers="headers" in options.columns,
                    helper=decoder_helper(),
                ):
                    yield from maker.rows(piece.wanted.partition, decoded)
                done = max(done, min(chunk.end_offset, part.end))
            done = part.end
    except (FileRefused, OSError, CorruptFile) as error:
        log_once(f"reading through the broker instead of from files: {error}")
        left = OffsetRange(piece.wanted.partition, done, piece.wanted.end)
        meant = str(UUID(bytes=piece.place.topic_id))
        yield from read_range(RangePartition(left, meant), options, schema)


def check_place(place: FilePlace) -> None:
    """Check that the directory is the named one of this cluster, and that the folder is of this topic."""
    properties = decode_properties(_text(Path(place.directory, META_PROPERTIES)))
    found = properties.get("cluster.id"), properties.get("directory.id")
    if found != (place.cluster_id, place.directory_id):
        raise FileRefused(
            f"{place.directory} is not the log directory of this broker, but another one with the same path"
        )
    topic_id = decode_partition_metadata(_text(Path(place.directory, place.folder, PARTITION_METADATA)))
    if topic_id != place.topic_id:
        raise FileRefused(f"{place.folder} belongs to another topic with the same name")


def hides_aborted(aborted: tuple[AbortedRange, ...]) -> Callable[[memoryview, HeaderFields], bool]:
    """Return whether to skip a batch: markers, and batches of aborted transactions."""
    by_producer: dict[int, list[tuple[int, int]]] = {}
    for each in aborted:
        by_producer.setdefault(each.producer_id, []).append((each.first_offset, each.last_offset))

    def hides(_batch: memoryview, fields: HeaderFields) -> bool:
        attributes = fields[ATTRIBUTES]
        if attributes & CONTROL_BIT:
            return True
        if not attributes & TRANSACTIONAL_BIT or fields[PRODUCER_ID] not in by_producer:
            return False
        return any(first <= fields[BASE_OFFSET] <= last for first, last in by_producer[fields[PRODUCER_ID]])

    return hides


def _chunks(folder: Path, part: FilePart) -> Iterator[Chunk]:
    """Yield the batches of the segment, from the one with the first wanted offset on."""
    segment = part.segment
    with (folder / segment.file_name).open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size < segment.size_bytes:
            raise FileRefused(f"{segment.file_name} has {size} bytes, but the manifest lists {segment.size_bytes}")
        _check_first(file.fileno(), part)
        at = _position(folder, part)
        while at < segment.size_bytes:
            chunk = _whole_batches(file.fileno(), at, segment.size_bytes)
            if HEADER.unpack_from(chunk.batches)[BASE_OFFSET] >= part.end:
                return
            yield chunk
            at += len(chunk.batches)


def _check_first(file: int, part: FilePart) -> None:
    header = os.pread(file, HEADER_SIZE, 0)
    segment = part.segment
    if len(header) < HEADER_SIZE:
        raise FileRefused(f"{segment.file_name} is empty")
    if not segment.base_offset <= HEADER.unpack(header)[BASE_OFFSET] < segment.end_offset:
        raise FileRefused(f"{segment.file_name} does not begin with offset {segment.base_offset}")


def _whole_batches(file: int, at: int, end: int) -> Chunk:
    """Return as many batches as fit into a chunk, at least one."""
    wanted = min(CHUNK_BYTES, end - at)
    while True:
        view = memoryview(os.pread(file, wanted, at))
        last = whole = place = 0
        while len(view) - place >= HEADER_SIZE:
            place += LOG_OVERHEAD + _LENGTH.unpack_from(view, place + LENGTH_AT)[0]
            if place <= whole:
                raise FileRefused(f"there is no batch at byte {at + whole}")
            if place > len(view):
                break
            last, whole = whole, place
        if whole:
            fields = HEADER.unpack_from(view, last)
            return Chunk(view[:whole], fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1)
        if not HEADER_SIZE <= place <= end - at or len(view) < wanted:
            raise FileRefused(f"the batch at byte {at} is truncated")
        wanted = place


def _position(folder: Path, part: FilePart) -> int:
    """Return where to begin in the file: by its index, at or before the first wanted offset."""
    base = part.segment.base_offset
    if part.begin == base:
        return 0
    try:
        index = (folder / part.segment.file_name).with_suffix(".index").read_bytes()
    except OSError:
        return 0
    low, high = 0, len(index) // _INDEX_ENTRY.size
    best = 0
    while low < high:
        middle = (low + high) // 2
        relative, position = _INDEX_ENTRY.unpack_from(index, middle * _INDEX_ENTRY.size)
        if base + relative <= part.begin:
            best, low = position, middle + 1
        else:
            high = middle
    return best if best < part.segment.size_bytes else 0


def _keep_leases(place: FilePlace, options: SourceOptions) -> None:
    """Renew the leases of the files for as long as the job reads, however short its pieces are.

    A lost lease does not affect an open file; the next file is then found to be missing.
    """
    now_s = time()
    if now_s - _renewed_s.get(place.leases, place.planned_s) < RENEW_S:
        return
    from headrace.client.blocking.scans import Scans
    from headrace.client.errors import ClientError

    if len(_renewed_s) >= LEASES_KNOWN_MAX:
        del _renewed_s[next(iter(_renewed_s))]
    _renewed_s[place.leases] = now_s
    try:
        with Scans(config=client_config(options)) as scans:
            scans.renew(ScanManifest(place.cluster_id, place.leases, ()))
    except ClientError as error:
        log_once(f"the lease of a scan could not be renewed: {error}")


def _text(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(TEXT_BYTES_MAX)
