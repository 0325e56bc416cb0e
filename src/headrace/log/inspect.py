"""Verify and repair a log, for `headrace log verify` and `headrace log repair`.

`verify` only reads, and may read the files of a running broker. `repair` needs exclusive access to the directory: it
truncates a segment where it is damaged, after saving the removed bytes to a file beside it, rebuilds indexes from the
batches, removes files that the next start rebuilds, and notes in the folder that the operator has accepted the loss.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from struct import Struct

from headrace.ports.disk import Disk, FileHandle
from headrace.wire.records.header import (
    BASE_OFFSET,
    LAST_OFFSET_DELTA,
    LENGTH,
    LOG_OVERHEAD,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    RECORD_COUNT,
)
from headrace.wire.records.markers import is_marker

from . import checkpoints, names, producer_snapshot, transaction_index, uptime
from .config import LogConfig
from .dump import INDEX_BYTES_MAX, DumpEntry, dump
from .errors import CorruptFile, DamagedLog, LogError
from .files import create_empty, read_whole, unlink_if_present, write_all
from .index import OFFSET_ENTRY, TIME_ENTRY
from .leader_epochs import EPOCHS_FILE_BYTES_MAX, LeaderEpochs
from .open_files import OpenFiles
from .recovery import Loader
from .replay import LogReplay
from .segment import Segment, newest_time
from .truncation_steps import decode_mark, read_mark
from .walk import BatchWalk

__all__ = ["DumpEntry", "LogFinding", "LogReport", "Remedy", "dump", "repair", "verify"]

COPY_CHUNK_BYTES = 1 << 20
CUT_SUFFIX = ".damaged"


class Remedy(Enum):
    """The action that `repair` takes for a finding."""

    NONE = "nothing to do"
    CUT = "truncate here; the removed bytes are kept in a file beside it"
    REBUILD = "rebuild the indexes"
    REMOVE = "remove it; the next start rebuilds it"
    ACCEPT = "accept that they are missing; restore it from a copy if there is one"
    BY_HAND = "restore it from a copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFinding:
    path: str
    position: int
    text: str
    remedy: Remedy
    repaired: bool = False


@dataclass(slots=True, kw_only=True)
class LogReport:
    files: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    findings: list[LogFinding] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Return whether every finding needs no action or was repaired."""
        return all(finding.remedy is Remedy.NONE or finding.repaired for finding in self.findings)


def verify(disk: Disk, path: str) -> LogReport:
    """Check a partition's folder or a log directory: every checksum, every index entry, every small file."""
    report = LogReport()
    for finding in _findings(disk, path, report):
        report.findings.append(finding)
    return report


def repair(disk: Disk, path: str, *, dry_run: bool) -> LogReport:
    """Verify and repair as far as possible; raises DiskLockHeld if a broker uses the directory."""
    lock = None if dry_run else _lock_directory(disk, path)
    try:
        report = verify(disk, path)
        if not dry_run:
            report.findings = [_repaired(disk, finding) for finding in report.findings]
        return report
    finally:
        if lock is not None:
            disk.close(lock)


def _lock_directory(disk: Disk, path: str) -> FileHandle | None:
    """Lock the log directory, which is the path itself or its parent folder."""
    for directory in (path, path.rstrip("/").rpartition("/")[0] or "."):
        if disk.exists(f"{directory}/{names.LOCK}"):
            return disk.lock(f"{directory}/{names.LOCK}")
    return None


def _findings(disk: Disk, path: str, report: LogReport) -> Iterator[LogFinding]:
    if not disk.is_directory(path):
        raise LogError(f"{path} is not a folder: give a partition's folder or a log directory")
    found = disk.list_directory(path)
    segments = [name for name in found if name.endswith(names.LOG) and names.parse_segment_file(name)]
    folders = [name for name in found if disk.is_directory(f"{path}/{name}")]
    is_log = segments or names.META_PROPERTIES in found or names.PARTITION_METADATA in found
    if not is_log and not any(names.parse_partition_folder(name) for name in folders):
        raise LogError(f"{path} holds neither segments nor partitions: is it a log directory?")
    yield from _check_segments(disk, path, report)
    for name in found:
        checked = _SMALL_FILES.get(name) or (_SNAPSHOT if name.endswith(names.SNAPSHOT) else None)
        if checked is not None:
            report.files += 1
            yield from _check_small_file(disk, f"{path}/{name}", *checked)
    for name in folders:
        if names.parse_partition_folder(name) is not None:
            yield from _findings(disk, f"{path}/{name}", report)


def _check_segments(disk: Disk, folder: str, report: LogReport) -> Iterator[LogFinding]:
    parsed = (names.parse_segment_file(name) for name in disk.list_directory(folder))
    bases = sorted(part[0] for part in parsed if part is not None and part[1] == names.LOG)
    gaps = any(disk.exists(f"{folder}/{name}") for name in (names.COMPACTED, names.REPAIRED))
    end_offset = 0
    for place, base_offset in enumerate(bases):
        above = bases[place + 1] if place + 1 < len(bases) else None
        report.files += 3
        stem = names.segment_stem(folder, base_offset)
        end_offset = yield from _check_segment(disk, stem, base_offset, above, report, gaps=gaps)
    synced = _synced_offset(disk, folder)
    lost = end_offset < synced and synced > _offset_in(disk, folder, names.START_OFFSETS)
    if lost and not disk.exists(f"{folder}/{names.REPAIRED}"):
        text = f"the log ends at offset {end_offset}, but was synced up to {synced}: the records between are missing"
        yield LogFinding(path=folder, position=0, text=text, remedy=Remedy.ACCEPT)


def _synced_offset(disk: Disk, folder: str) -> int:
    """Return the recovery point that the log directory has for a partition; not one of before a truncation."""
    stored = _offset_in(disk, folder, names.RECOVERY_POINTS)
    try:
        mark = read_mark(disk, folder)
    except DamagedLog:
        return 0  # the mark is a finding of its own
    return stored if mark is None else mark.valid_point(stored)


def _offset_in(disk: Disk, folder: str, checkpoint: str) -> int:
    """Return the partition's offset in a checkpoint of the log directory; 0 if it has none."""
    directory, _, name = folder.rstrip("/").rpartition("/")
    topic_partition = names.parse_partition_folder(name)
    path = f"{directory or '.'}/{checkpoint}"
    if topic_partition is None or not disk.exists(path):
        return 0
    try:
        return checkpoints.decode_offsets(read_whole(disk, path, checkpoints.CHECKPOINT_BYTES_MAX)).get(
            topic_partition, 0
        )
    except CorruptFile:
        return 0


def _check_segment(
    disk: Disk, stem: str, base_offset: int, above: int | None, report: LogReport, *, gaps: bool
) -> Generator[LogFinding, None, int]:
    """Walk the segment once, checking checksums and every index entry against its batch. Return the offset after the
    last batch.
    """
    path = stem + names.LOG
    places, index_fault = _index_entries(disk, stem + names.INDEX, OFFSET_ENTRY)
    times, time_fault = _index_entries(disk, stem + names.TIME_INDEX, TIME_ENTRY)
    by_position = {position: base_offset + relative for relative, position in places}
    by_offset = {base_offset + relative: timestamp for timestamp, relative in times}
    by_marker, aborted_fault = _aborted_entries(disk, stem + names.TRANSACTION_INDEX)
    file = disk.open(path, writable=False)
    try:
        size = disk.size(file)
        walk = BatchWalk(disk, file, position=0, end=size, next_offset=base_offset, check_from_offset=0, gaps=gaps)
        for position, fields in walk:
            last = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA]
            report.batches += 1
            report.records += fields[RECORD_COUNT]
            report.bytes += fields[LENGTH] + LOG_OVERHEAD
            if by_position.get(position) == last:
                del by_position[position]
            if by_offset.get(last) == fields[MAX_TIMESTAMP]:
                del by_offset[last]
            if by_marker and is_marker(fields) and by_marker.get(last) == fields[PRODUCER_ID]:
                del by_marker[last]
    finally:
        disk.close(file)
    yield from _segment_findings(path, walk, size, above, gaps=gaps)
    if index_fault or by_position:
        text = index_fault or f"{len(by_position)} entries name no batch of the segment"
        yield LogFinding(path=stem + names.INDEX, position=0, text=text, remedy=Remedy.REBUILD)
    if time_fault or by_offset:
        text = time_fault or f"{len(by_offset)} entries name no batch with that time"
        yield LogFinding(path=stem + names.TIME_INDEX, position=0, text=text, remedy=Remedy.REBUILD)
    if aborted_fault or by_marker:
        text = aborted_fault or f"{len(by_marker)} entries name no marker of the segment"
        yield LogFinding(path=stem + names.TRANSACTION_INDEX, position=0, text=text, remedy=Remedy.REBUILD)
    return walk.next_offset


def _segment_findings(path: str, walk: BatchWalk, size: int, above: int | None, *, gaps: bool) -> Iterator[LogFinding]:
    behind = size - walk.position
    if walk.damage:
        text = f"{walk.damage}; {behind} bytes from here on cannot be trusted"
        yield LogFinding(path=path, position=walk.position, text=text, remedy=Remedy.CUT)
    elif behind:
        text = f"{behind} bytes are preallocated"
        yield LogFinding(path=path, position=walk.position, text=text, remedy=Remedy.NONE)
    if above is not None and not walk.damage and walk.next_offset != above:
        remedy = Remedy.NONE if gaps else Remedy.ACCEPT
        text = f"ends at offset {walk.next_offset}, but the next segment begins at {above}"
        yield LogFinding(
            path=path, position=size, text=text, remedy=Remedy.BY_HAND if walk.next_offset > above else remedy
        )


def _index_entries(disk: Disk, path: str, entry: Struct) -> tuple[list[tuple[int, int]], str]:
    """Return the entries, and the fault of the file as a whole, if any."""
    try:
        content = read_whole(disk, path, INDEX_BYTES_MAX)
    except FileNotFoundError:
        return [], "the file is missing"
    if len(content) % entry.size:
        return [], f"{len(content)} bytes are not a whole number of entries"
    entries = [(first, second) for first, second in entry.iter_unpack(content)]
    if any(later[0] <= earlier[0] or later[1] < earlier[1] for earlier, later in pairwise(entries)):
        return [], "the entries do not ascend"
    return entries, ""


def _aborted_entries(disk: Disk, path: str) -> tuple[dict[int, int], str]:
    """Return the producer of every aborted transaction by the offset of its marker; most segments have no such file."""
    try:
        entries = transaction_index.decode(read_whole(disk, path, transaction_index.INDEX_BYTES_MAX))
    except FileNotFoundError:
        return {}, ""
    except CorruptFile as error:
        return {}, str(error)
    return {entry.last_offset: entry.producer_id for entry in entries}, ""


def _check_small_file(
    disk: Disk, path: str, decode: Callable[[bytes], object], bytes_max: int, remedy: Remedy
) -> Iterator[LogFinding]:
    try:
        decode(read_whole(disk, path, bytes_max))
    except CorruptFile as error:
        yield LogFinding(path=path, position=0, text=str(error), remedy=remedy)


_SNAPSHOT = (producer_snapshot.decode, producer_snapshot.SNAPSHOT_BYTES_MAX, Remedy.REMOVE)
_SMALL_FILES: dict[str, tuple[Callable[[bytes], object], int, Remedy]] = {
    names.LEADER_EPOCHS: (LeaderEpochs.decode, EPOCHS_FILE_BYTES_MAX, Remedy.REMOVE),
    names.PARTITION_METADATA: (
        checkpoints.decode_partition_metadata,
        checkpoints.PROPERTIES_BYTES_MAX,
        Remedy.BY_HAND,
    ),
    names.META_PROPERTIES: (checkpoints.decode_properties, checkpoints.PROPERTIES_BYTES_MAX, Remedy.BY_HAND),
    names.RECOVERY_POINTS: (checkpoints.decode_offsets, checkpoints.CHECKPOINT_BYTES_MAX, Remedy.REMOVE),
    names.START_OFFSETS: (checkpoints.decode_offsets, checkpoints.CHECKPOINT_BYTES_MAX, Remedy.REMOVE),
    names.START_OFFSETS_COPY: (checkpoints.decode_offsets, checkpoints.CHECKPOINT_BYTES_MAX, Remedy.REMOVE),
    names.HIGH_WATERMARKS: (checkpoints.decode_offsets, checkpoints.CHECKPOINT_BYTES_MAX, Remedy.REMOVE),
    names.CLEANER_OFFSETS: (checkpoints.decode_offsets, checkpoints.CHECKPOINT_BYTES_MAX, Remedy.REMOVE),
    names.TRUNCATION: (decode_mark, checkpoints.PROPERTIES_BYTES_MAX, Remedy.REMOVE),
    names.UPTIME: (uptime.decode, checkpoints.PROPERTIES_BYTES_MAX, Remedy.REMOVE),
}


# Repair


def _repaired(disk: Disk, finding: LogFinding) -> LogFinding:
    folder, _, name = finding.path.rpartition("/")
    if finding.remedy is Remedy.CUT:
        _cut(disk, finding.path, finding.position)
        _accept_loss(disk, folder)
    elif finding.remedy is Remedy.ACCEPT:
        _accept_loss(disk, folder if name.endswith(names.LOG) else finding.path)
    elif finding.remedy is Remedy.REMOVE:
        unlink_if_present(disk, finding.path)
        disk.sync_directory(folder)
    elif finding.remedy is not Remedy.REBUILD:
        return finding
    part = names.parse_segment_file(name)
    if part is not None and part[1] == names.TRANSACTION_INDEX:
        _rebuild_transaction_index(disk, folder, part[0])
    elif part is not None and part[1] != names.SNAPSHOT:
        _rebuild_indexes(disk, folder, part[0])
    return LogFinding(
        path=finding.path, position=finding.position, text=finding.text, remedy=finding.remedy, repaired=True
    )


def _accept_loss(disk: Disk, folder: str) -> None:
    """Note that the loss is accepted, so that the next start does not refuse the log for the missing records."""
    create_empty(disk, f"{folder}/{names.REPAIRED}")
    disk.sync_directory(folder)


def _cut(disk: Disk, path: str, position: int) -> None:
    """Truncate the segment after saving the removed bytes to a separate file, so that a repair loses nothing."""
    file = disk.open(path)
    kept = disk.open(f"{path}.{position}{CUT_SUFFIX}", create=True)
    try:
        disk.truncate(kept, 0)
        written = 0
        while part := disk.read(file, COPY_CHUNK_BYTES, position + written):
            written = write_all(disk, kept, [part], written)
        disk.data_sync(kept)
        disk.sync_directory(path.rpartition("/")[0])
        disk.truncate(file, position)
        disk.data_sync(file)
    finally:
        disk.close(kept)
        disk.close(file)


def _rebuild_indexes(disk: Disk, folder: str, base_offset: int) -> None:
    files = OpenFiles(disk)
    config = LogConfig()
    segment = Segment(files, folder, base_offset, config, created_ms=0)
    try:
        segment.index.reset()
        segment.time_index.reset()
        file = files.handle(segment.log)
        for _position, fields in BatchWalk(disk, file, position=0, end=disk.size(file), next_offset=base_offset):
            last = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA]
            place = (fields[BASE_OFFSET], last, newest_time(fields), fields[LENGTH] + LOG_OVERHEAD)
            segment.note((place,), config.index_interval_bytes)
        segment.index_time()
        for index in (segment.index, segment.time_index):
            index.spill()
            disk.data_sync(files.handle(index.file))
    finally:
        files.close_all()


def _rebuild_transaction_index(disk: Disk, folder: str, base_offset: int) -> None:
    """Rebuild from the last snapshot before the segment: transactions that it aborts may have begun earlier."""
    files, config = OpenFiles(disk), LogConfig()
    parsed = (names.parse_segment_file(name) for name in disk.list_directory(folder))
    bases = sorted(part[0] for part in parsed if part is not None and part[1] == names.LOG and part[0] <= base_offset)
    segments = [Segment(files, folder, base, config, created_ms=0) for base in bases]
    try:
        for segment in segments:
            segment.index.load()
            file = files.handle(segment.log)
            walk = BatchWalk(disk, file, position=0, end=disk.size(file), next_offset=segment.base_offset)
            for _batch in walk:
                pass
            segment.size, segment.next_offset = walk.position, walk.next_offset
        loader = Loader(
            files=files, folder=folder, config=config, recovery_point=0, start_offset=0, clean=True, wall_ms=0
        )
        producers, snapshot = loader.load_producers(segments, at_most=base_offset)
        replay = LogReplay(files=files, segments=segments, wall_ms=0, recovery_point=0, committed_offset=0)
        replay.rebuild(segments[-1], producers, snapshot=snapshot)
    finally:
        files.close_all()
