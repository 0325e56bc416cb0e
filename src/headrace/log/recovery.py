"""Turn the files of a folder into a log that can be appended to, after a clean stop or a crash at any instant.

Below the recovery point everything was synced and only indexes are checked; above it every batch is checked, torn bytes
are removed, and the indexes are rebuilt. A header of zeros marks where preallocated space begins.
"""

from dataclasses import dataclass, field

from headrace.model.ids import NO_TOPIC_ID, TopicId, TopicPartition
from headrace.ports.disk import Disk
from headrace.wire.records.header import (
    BASE_OFFSET,
    LAST_OFFSET_DELTA,
    LENGTH,
    LOG_OVERHEAD,
    MAX_TIMESTAMP,
)

from . import names, producer_snapshot, unsynced
from .checkpoints import PROPERTIES_BYTES_MAX, decode_partition_metadata, encode_partition_metadata
from .compaction.interrupted import finish_swaps
from .config import LogConfig
from .errors import CorruptFile, DamagedLog, WrongTopicId, is_transient
from .files import is_blank, read_whole, unlink_if_present, write_atomically
from .leader_epochs import LeaderEpochs
from .open_files import OpenFiles
from .producers import ProducerStates
from .replay import LogReplay
from .segment import NO_TIMESTAMP, RELATIVE_OFFSET_MAX, Segment, newest_time
from .uptime import DirectoryUptime
from .walk import NEVER_CHECK, BatchWalk


@dataclass(slots=True, kw_only=True)
class RecoveryReport:
    """Work that opening a log required; all zeros after a clean stop."""

    scanned_bytes: int = 0
    cut_bytes: int = 0
    damage: str = ""
    indexes_rebuilt: int = 0
    segments_dropped: int = 0
    batches_replayed: int = 0


@dataclass(slots=True, kw_only=True)
class Loader:
    files: OpenFiles
    folder: str
    config: LogConfig
    recovery_point: int
    start_offset: int
    clean: bool
    wall_ms: int
    uptime: DirectoryUptime = field(default_factory=DirectoryUptime)
    high_watermark: int | None = None
    """The last known one of a replicated log; None if everything on disk counts as committed."""
    live_from: int | None = None
    """The log start of a log in use: older segments are being removed, and files with other names belong to helpers."""
    gaps: bool = False
    """True if compaction may have removed offsets from the log."""
    left: list[Segment] = field(default_factory=list)
    """Damaged segments below the log start, which no reader can reach."""
    unindexed: list[Segment] = field(default_factory=list)
    """Segments whose transaction index is damaged, until `replay`."""
    report: RecoveryReport = field(default_factory=RecoveryReport)

    @property
    def disk(self) -> Disk:
        return self.files.disk

    def load_segments(self) -> list[Segment]:
        if self.live_from is None:
            bases = remove_leftovers(self.disk, self.folder)
        else:
            bases = [base for base in segment_bases(self.disk, self.folder) if base >= self.live_from]
        repaired = self.disk.exists(f"{self.folder}/{names.REPAIRED}")
        self.gaps = repaired or self.config.compact or self.disk.exists(f"{self.folder}/{names.COMPACTED}")
        suspect = unsynced.is_remembered(self.disk, self.folder)
        self.clean = self.clean and not suspect
        segments: list[Segment] = []
        for place, base_offset in enumerate(bases):
            above = bases[place + 1] if place + 1 < len(bases) else None
            segment = Segment(self.files, self.folder, base_offset, self.config, self.wall_ms)
            segments.append(segment)
            with self.files.held(segment.all_files()):
                whole = self._check_or_set_aside(segment, above)
                if suspect:
                    self._write_again(segment)
                if not segment.transactions.load(base_offset=base_offset, next_offset=segment.next_offset):
                    self.unindexed.append(segment)
            for file in segment.all_files():
                self.files.close_file(file)
            if not whole:
                self._drop(bases[place + 1 :])
                break
        if not repaired:
            self._refuse_lost_end(segments)
        if suspect:
            unsynced.forget(self.disk, self.folder)
        return segments

    def _write_again(self, segment: Segment) -> None:
        found = segment.find(self.recovery_point) if segment.next_offset > self.recovery_point else None
        if found is not None:
            unsynced.write_again(self.disk, self.folder, self.files.handle(segment.log), found[0], segment.size)

    def _refuse_lost_end(self, segments: list[Segment]) -> None:
        """Refuse a log that ends below the recovery point: a lost or zeroed end looks like one that was never
        written.
        """
        if self.recovery_point <= self.start_offset:
            return  # records below the log start offset are deleted anyway
        if segments and segments[-1].next_offset < self.recovery_point:
            segment = segments[-1]
            text = f"it ends at offset {segment.next_offset}, but was synced up to {self.recovery_point}"
            raise DamagedLog(segment.log.path, segment.size, text)
        if not segments:
            raise DamagedLog(self.folder, 0, f"it has no segments, but was synced up to offset {self.recovery_point}")

    def _check_or_set_aside(self, segment: Segment, above: int | None) -> bool:
        """Keep a damaged segment below the log start for retention: its records are deleted, and perhaps were never
        synced.
        """
        try:
            return self._check_segment(segment, above)
        except DamagedLog:
            if above is None or above > self.start_offset:
                raise
            segment.size = segment.allocated = self.disk.file_size(segment.log.path)
            segment.next_offset = above
            self.left.append(segment)
            return True

    def _check_segment(self, segment: Segment, above: int | None) -> bool:
        """Find the segment's end and check its indexes; return False if later segments no longer follow it."""
        file_bytes = self.disk.file_size(segment.log.path)
        unclean = not self.clean and (above is None or above > self.recovery_point)
        # A segment that was rolled exactly at the recovery point is synced, but its indexes may not be.
        unsealed = not self.clean and (above is None or above >= self.recovery_point)
        indexed = self._indexes_are_sound(segment, file_bytes, thorough=unsealed)
        if indexed and not unclean and above is not None and self._take_closed(segment, file_bytes, above):
            return True
        if not indexed:
            self.report.indexes_rebuilt += 1
        self._rewind(segment, indexed=indexed, unclean=unclean)
        self._scan(segment, file_bytes, unclean=unclean)
        if above is not None:
            self._finish_indexes(segment)
        if above is None:
            return True
        if segment.next_offset > above:
            raise DamagedLog(segment.log.path, segment.size, f"it overlaps the segment at offset {above}")
        if segment.next_offset < above and not self.gaps and (not unclean or segment.next_offset < self.recovery_point):
            text = f"it ends at offset {segment.next_offset}, but the next segment begins at {above}"
            raise DamagedLog(segment.log.path, segment.size, text)
        return not unclean or segment.next_offset == above

    def _take_closed(self, segment: Segment, file_bytes: int, above: int) -> bool:
        """Accept a segment that was closed and synced: its last batch ends with the file and before the next segment.

        Only the headers after the last index entry are read. Returns False if the indexes do not match, or if the file
        still has its preallocated length; a mismatch in the segment itself is damage.
        """
        last, last_time = segment.index.last, segment.time_index.last
        position = last[1] if last is not None else 0
        if last is not None and not self._batch_ends_at(segment, position, segment.base_offset + last[0]):
            return False
        walk = BatchWalk(
            self.disk,
            self.files.handle(segment.log),
            position=position,
            end=file_bytes,
            next_offset=segment.base_offset,
            gaps=self.gaps,
        )
        newest = (NO_TIMESTAMP, segment.base_offset)
        for _position, fields in walk:
            newest = max(newest, (newest_time(fields), walk.next_offset - 1), key=lambda found: found[0])
        if walk.damage:
            raise DamagedLog(segment.log.path, walk.position, walk.damage)
        segment.size = segment.allocated = walk.position
        if last_time is not None and not self._has_time(segment, *last_time):
            segment.index.reset()  # the times before its last entry must be read again as well
            return False
        if walk.position != file_bytes:
            return False
        if walk.next_offset > above or (walk.next_offset < above and not self.gaps):
            text = f"it ends at offset {walk.next_offset}, but the next segment begins at {above}"
            raise DamagedLog(segment.log.path, walk.position, text)
        segment.next_offset = above
        self._take_times(segment)
        if newest[0] > segment.max_timestamp:  # the last entry of the time index was not synced
            segment.max_timestamp, segment.max_timestamp_offset = newest
        return True

    def _has_time(self, segment: Segment, timestamp: int, relative_offset: int) -> bool:
        """Return whether the newest time in the index is that of a batch: retention depends on it."""
        found = segment.find(segment.base_offset + relative_offset)
        if found is None:
            return False
        walk = BatchWalk(
            self.disk,
            self.files.handle(segment.log),
            position=found[0],
            end=segment.size,
            next_offset=segment.base_offset,
        )
        for _position, fields in walk:
            return newest_time(fields) == timestamp
        return False

    def _indexes_are_sound(self, segment: Segment, file_bytes: int, *, thorough: bool) -> bool:
        if not (segment.index.load() and segment.time_index.load()):
            return False
        last, last_time = segment.index.last, segment.time_index.last
        if last is not None and not (last[0] >= 0 and 0 < last[1] < file_bytes):
            return False
        if last_time is not None and (min(last_time) < 0 or not any(last_time)):
            return False  # zeros are what a power cut leaves of an entry
        return segment.index.is_ascending(thorough=thorough) and segment.time_index.is_ascending(thorough=thorough)

    def _rewind(self, segment: Segment, *, indexed: bool, unclean: bool) -> None:
        """Keep the index entries that can be trusted and precede the batch of the last of them."""
        if indexed and unclean:
            keep = segment.index.count_through(self.recovery_point - 1 - segment.base_offset)
            segment.index.keep(keep)
        last = segment.index.last
        if indexed and last is not None and self._batch_ends_at(segment, last[1], segment.base_offset + last[0]):
            segment.index.keep(len(segment.index) - 1)  # the scan of that batch writes it again
            segment.time_index.keep(segment.time_index.count_through_second(last[0] - 1))
            segment.size = last[1]
            previous = segment.index.last
            segment.next_offset = segment.base_offset + previous[0] + 1 if previous else segment.base_offset
            segment.bytes_since_index = self.config.index_interval_bytes + 1
            self._take_times(segment)
            return
        segment.index.reset()
        segment.time_index.reset()
        segment.size, segment.next_offset = 0, segment.base_offset  # it may have been taken for a closed one

    def _batch_ends_at(self, segment: Segment, position: int, last_offset: int) -> bool:
        file = self.files.handle(segment.log)
        end = self.disk.size(file)
        if not 0 <= position < end:
            return False
        walk = BatchWalk(self.disk, file, position=position, end=end, next_offset=segment.base_offset)
        for _position, fields in walk:
            return fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] == last_offset
        return False

    def _take_times(self, segment: Segment) -> None:
        if segment.time_index.last is not None:
            segment.max_timestamp, relative = segment.time_index.last
            segment.max_timestamp_offset = segment.base_offset + relative

    def _scan(self, segment: Segment, file_bytes: int, *, unclean: bool) -> None:
        """Scan to the end, noting every batch as an append would, and truncate the rest."""
        file = self.files.handle(segment.log)
        walk = BatchWalk(
            self.disk,
            file,
            position=segment.size,
            end=file_bytes,
            next_offset=segment.next_offset,
            check_from_offset=self.recovery_point if unclean else NEVER_CHECK,
            last_offset_max=segment.base_offset + RELATIVE_OFFSET_MAX,
            gaps=self.gaps,
        )
        begin = segment.size
        for _position, fields in walk:
            base = fields[BASE_OFFSET]
            last = base + fields[LAST_OFFSET_DELTA]
            place = (base, last, newest_time(fields), fields[LENGTH] + LOG_OVERHEAD)
            segment.note((place,), self.config.index_interval_bytes)
        self.report.scanned_bytes += segment.size - begin
        if walk.damage and (not unclean or walk.next_offset < self.recovery_point):
            raise DamagedLog(segment.log.path, walk.position, walk.damage)
        segment.allocated = segment.size
        if begin:
            self._take_first_timestamp(segment)
        if segment.size < file_bytes:
            blank = not walk.damage and is_blank(self.disk, file, segment.size, file_bytes)
            self.disk.truncate(file, segment.size)
            if not blank:
                # Without this sync, a second crash could restore torn bytes after batches written since. Preallocated
                # space may return as it was; syncing that would mean syncing the whole tail while clients wait.
                unsynced.sync(self.disk, self.folder, file)
        if walk.damage:
            self.report.damage = walk.damage
            self.report.cut_bytes += file_bytes - segment.size

    def _finish_indexes(self, segment: Segment) -> None:
        """Write the indexes of a full segment: no append or roll writes them later, and the recovery point is about to
        pass them.
        """
        segment.index_time()
        try:
            for index in (segment.index, segment.time_index):
                index.spill()
                self.disk.data_sync(self.files.handle(index.file))
        except OSError as error:
            if not is_transient(error):
                raise

    def _take_first_timestamp(self, segment: Segment) -> None:
        file = self.files.handle(segment.log)
        walk = BatchWalk(self.disk, file, position=0, end=segment.size, next_offset=segment.base_offset)
        for _position, fields in walk:
            segment.first_timestamp = fields[MAX_TIMESTAMP]
            return

    def _drop(self, bases: list[int]) -> None:
        """Drop the segments after a truncation, whose offsets no longer follow in order."""
        for base_offset in bases:
            stem = names.segment_stem(self.folder, base_offset)
            for suffix in names.SEGMENT_FILES:
                unlink_if_present(self.disk, stem + suffix)
        self.report.segments_dropped += len(bases)
        if bases:
            self.disk.sync_directory(self.folder)

    def load_producers(self, segments: list[Segment], *, at_most: int | None = None) -> tuple[ProducerStates, int]:
        """Load the newest readable snapshot not above the log end, with its offset; -1 without one.

        A snapshot below the first segment is ignored: it lacks batches that retention removed later, and their producer
        would be refused. Of the others only those at the base offset of a segment are kept, because a truncation may
        need them. With `at_most`, an older snapshot is loaded and nothing is removed.

        Removals are synced: a snapshot that came back after a crash would describe batches that the log no longer has.
        """
        bases = {segment.base_offset for segment in segments}
        end = segments[-1].next_offset if at_most is None else at_most
        newest: tuple[ProducerStates, int] | None = None
        removed = False
        for offset in reversed(snapshot_offsets(self.disk, self.folder)):
            path = names.segment_stem(self.folder, offset) + names.SNAPSHOT
            if newest is None and segments[0].base_offset <= offset <= end:
                try:
                    content = read_whole(self.disk, path, producer_snapshot.SNAPSHOT_BYTES_MAX)
                    newest = (producer_snapshot.decode(content, seen_ms=self.wall_ms, uptime=self.uptime), offset)
                    continue
                except (CorruptFile, FileNotFoundError):
                    pass
            elif newest is not None and offset in bases:
                continue
            if at_most is None and unlink_if_present(self.disk, path):
                removed = True
        if removed:
            self.disk.sync_directory(self.folder)
        return newest if newest is not None else (ProducerStates(self.uptime), -1)

    def replay(
        self,
        segments: list[Segment],
        producers: ProducerStates,
        epochs: LeaderEpochs,
        *,
        snapshot: int,
        begin: int,
        recovery_point: int,
    ) -> None:
        """Apply the headers from `begin` on: to producers from the snapshot on, to leader epochs all the way."""
        replay = LogReplay(
            files=self.files,
            segments=[segment for segment in segments if segment not in self.left],
            wall_ms=self.wall_ms,
            recovery_point=recovery_point,
            committed_offset=recovery_point if self.high_watermark is None else self.high_watermark,
        )
        for segment in self.unindexed:
            if segment in segments:
                earlier, offset = self.load_producers(segments, at_most=segment.base_offset)
                replay.rebuild(segment, earlier, snapshot=offset)
                self.report.indexes_rebuilt += 1
        self.unindexed.clear()
        replay.run(producers, epochs, snapshot=snapshot, begin=begin)
        self.report.batches_replayed += replay.batches


def remove_leftovers(disk: Disk, folder: str) -> list[int]:
    """Remove the leftovers of unfinished deletions and writes; return the base offsets of the segments, ascending."""
    found = disk.list_directory(folder)
    if any(name.endswith((names.CLEANED, names.SWAP)) for name in found):
        finish_swaps(disk, folder)
        found = disk.list_directory(folder)
    bases = segment_bases(disk, folder)
    known = set(bases)
    for name in found:
        part = names.parse_segment_file(name)
        orphan = part is not None and part[1] in names.INDEXES and part[0] not in known
        if orphan or name.endswith((names.DELETED, names.TEMPORARY)):
            disk.unlink(f"{folder}/{name}")
    return bases


def segment_bases(disk: Disk, folder: str) -> list[int]:
    """Return the base offsets of the segments in a folder, ascending."""
    parsed = map(names.parse_segment_file, disk.list_directory(folder))
    return sorted(part[0] for part in parsed if part is not None and part[1] == names.LOG)


def snapshot_offsets(disk: Disk, folder: str) -> list[int]:
    parsed = [names.parse_segment_file(name) for name in disk.list_directory(folder)]
    return sorted(part[0] for part in parsed if part is not None and part[1] == names.SNAPSHOT)


def claim_folder(disk: Disk, path: str, topic_partition: TopicPartition, topic_id: TopicId) -> TopicId:
    """Write the topic id into a new folder; an existing folder must have the same id."""
    metadata = f"{path}/{names.PARTITION_METADATA}"
    try:
        found = decode_partition_metadata(read_whole(disk, metadata, PROPERTIES_BYTES_MAX))
    except (FileNotFoundError, CorruptFile):
        if topic_id != NO_TOPIC_ID:
            write_atomically(disk, metadata, encode_partition_metadata(topic_id))
        return topic_id
    if topic_id not in (NO_TOPIC_ID, found):
        raise WrongTopicId(path, topic_partition, found)
    return found
