"""The log of one partition: batches are appended in groups, read as ranges of files and stored in segments.

Single-threaded: one loop owns it. Operations that may wait for the disk are returned as `Work` for a helper thread. An
append goes through `producers.admit`, `stage` for every batch of a turn, and then one `write_staged`.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from errno import EBUSY
from struct import Struct

from headrace.model.ids import TopicId, TopicPartition
from headrace.ports.disk import Disk, FileRange
from headrace.wire.records.batch_walk import BatchPlace
from headrace.wire.records.header import (
    HEADER,
    LAST_OFFSET_DELTA,
    LENGTH,
    LOG_OVERHEAD,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    HeaderFields,
    stamp_append_time,
)

from . import names, times
from .config import LogConfig
from .errors import OffsetOutsideLog, is_transient
from .files import unlink_if_present, write_all
from .flush import Flusher
from .leader_epochs import LeaderEpochs
from .loaded_log import LoadedLog, load
from .older_reads import OlderReads
from .open_files import OpenFiles
from .preallocation import Preallocation
from .producers import ProducerStates
from .recent_batches import RecentBatches
from .recovery import Loader, claim_folder
from .replicated_appends import ReplicatedAppends
from .retirement import Retirement
from .segment import Segment
from .times import TimeSearch
from .transactions import LogTransactions
from .truncation import Truncation
from .uptime import DirectoryUptime
from .work import Work

_STAMP = Struct(">qii")


class PartitionLog:
    def __init__(
        self,
        files: OpenFiles,
        path: str,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        uptime: DirectoryUptime,
        loaded: LoadedLog,
        *,
        wall_ms: int,
    ) -> None:
        self.files = files
        self.disk = files.disk
        self.path = path
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self._take_loaded(loaded)
        self.synced_offset = self.recovery_point
        """Records below this offset are on disk; the recovery point is never above it."""
        self.appended_bytes = loaded.report.scanned_bytes
        """Bytes appended since the log was opened, and those that recovery had to check; flushes are measured against
        this counter.
        """
        self.appended_wall_ms = wall_ms
        self.uptime = uptime
        self.transactions = LogTransactions(self)
        self.names_generation = 0
        """Odd while compaction swaps segment files: a reader that opened files by name meanwhile must retry."""
        self.being_replaced: tuple[Segment, ...] = ()
        """Segments of the running swap. Retention leaves them alone until it has ended; otherwise the swap would
        restore the file of a segment that is no longer part of the log.
        """
        self.failed = False
        self.closed = False
        self.recovered = loaded.report
        self.on_flushed: Callable[[int], None] | None = None
        """Called on the loop with the end offset of the records that are now on disk."""
        self.on_failed: Callable[[BaseException], None] | None = None
        """Called on the loop when work of this log failed on the device; the log is then `failed`."""
        self.on_flush_deferred: Callable[[OSError], None] | None = None
        """Called on the loop when a flush found no space or file descriptor for some files; it is retried."""
        self._staged: list[memoryview] = []
        self._staged_places: list[BatchPlace] = []
        self._staged_bytes = 0
        self._recent = RecentBatches()
        self._older = OlderReads(self)
        self._flusher = Flusher(self)
        self.preallocation = Preallocation(self)
        self.retirement = Retirement(self, self._flusher)
        self.truncation = Truncation(self)
        self.replicated = ReplicatedAppends(self, self._flusher)

    def _take_loaded(self, loaded: LoadedLog) -> None:
        self.segments: list[Segment] = loaded.segments
        self.bases: list[int] = [segment.base_offset for segment in loaded.segments]
        self.active: Segment = loaded.segments[-1]
        self.start_offset: int = loaded.start_offset
        self.end_offset: int = self.active.next_offset
        self.staged_end_offset: int = self.end_offset
        """Offset of the next staged batch; equal to `end_offset` once everything staged is written."""
        self.recovery_point: int = loaded.recovery_point
        self.size_bytes: int = sum(segment.size for segment in self.segments)
        self.producers: ProducerStates = loaded.producers
        self.epochs: LeaderEpochs = loaded.epochs
        self.gaps: bool = loaded.gaps
        """True if compaction may have removed offsets, here or at a leader."""

    # Opening

    @classmethod
    def open(
        cls,
        disk: Disk,
        path: str,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        *,
        recovery_point: int,
        start_offset: int,
        clean_shutdown: bool,
        wall_ms: int,
        high_watermark: int | None = None,
        files: OpenFiles | None = None,
        uptime: DirectoryUptime | None = None,
    ) -> "PartitionLog":
        """Open the folder, creating it if absent and recovering it after an unclean stop.

        `high_watermark` is the last known one of a replica; without it everything on disk counts as committed.
        """
        disk.make_directory(path)
        topic_id = claim_folder(disk, path, topic_partition, topic_id)
        files = files if files is not None else OpenFiles(disk)
        uptime = uptime if uptime is not None else DirectoryUptime()
        loader = Loader(
            files=files,
            folder=path,
            config=config,
            recovery_point=recovery_point,
            start_offset=start_offset,
            clean=clean_shutdown,
            wall_ms=wall_ms,
            uptime=uptime,
            high_watermark=high_watermark,
        )
        loaded = load(loader)
        log = cls(files, path, topic_partition, topic_id, config, uptime, loaded, wall_ms=wall_ms)
        if not clean_shutdown:
            log._flusher.directory_changed = True  # the previous process may have died before it synced file names
        log._flusher.note_snapshot(loaded.snapshot)
        return log

    def configure(self, config: LogConfig) -> None:
        """Apply changed topic configs from now on."""
        self.config = config

    # Appending

    def stage(
        self, batch: memoryview, fields: HeaderFields, leader_epoch: int, wall_ms: int, is_noted: bool = False
    ) -> int:
        """HOT. Assign offsets to the batch and keep it for this turn's write; its bytes must stay valid until then.

        `is_noted`: the producer state already includes it (`ProducerStates.advance`).
        """
        base_offset = self.staged_end_offset
        last_offset = base_offset + fields[LAST_OFFSET_DELTA]
        _STAMP.pack_into(batch, 0, base_offset, fields[LENGTH], leader_epoch)
        if self.config.append_time:
            stamp_append_time(batch, wall_ms)
            timestamp = wall_ms
        else:
            timestamp = fields[MAX_TIMESTAMP]
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        if not is_noted and fields[PRODUCER_ID] >= 0:
            self.producers.appended(fields, base_offset, timestamp, wall_ms)
        size = fields[LENGTH] + LOG_OVERHEAD
        self._staged.append(batch)
        self._staged_places.append((base_offset, last_offset, timestamp, size))
        self._staged_bytes += size
        self.staged_end_offset = last_offset + 1
        self.appended_wall_ms = wall_ms
        return base_offset

    @property
    def staged(self) -> bool:
        return bool(self._staged)

    def write_staged(self) -> None:
        """HOT. Write the batches staged in this turn, one vectored write per segment.

        An OSError makes the log `failed`, unless it is transient (disk full, out of file descriptors): then the batches
        that were not written are unstaged, and the log continues as soon as it can.
        """
        batches, places, total = self._staged, self._staged_places, self._staged_bytes
        if not batches:
            return
        assert not self.is_truncating, "a log that is truncated takes nothing"
        self._staged, self._staged_places, self._staged_bytes = [], [], 0
        try:
            _base, last, timestamp, _size = places[-1]
            if self.active.has_room(total, last, timestamp, self.config, self.appended_wall_ms):
                self.write_group(batches, places, total)
            else:
                self._write_across_segments(batches, places)
        except OSError as error:
            self.failed = True
            if is_transient(error):
                self.remove_unwritten()
                self._forget_unwritten(batches)
                self.failed = False
            raise

    def discard_staged(self) -> None:
        """Discard staged batches of a log that may not be written any more."""
        self._staged, self._staged_places, self._staged_bytes = [], [], 0
        self.transactions.staged.clear()

    def unstage(self) -> None:
        """Take the batches of this turn back, as if they had never been staged."""
        batches, self._staged, self._staged_places, self._staged_bytes = self._staged, [], [], 0
        if batches:
            self._forget_unwritten(batches)

    def remove_unwritten(self) -> None:
        """Remove the bytes of batches whose write failed half-way."""
        segment = self.active
        if segment.log.handle >= 0:  # otherwise nothing was written to it
            self.disk.truncate(segment.log.handle, segment.size)
            segment.allocated = segment.size

    def _forget_unwritten(self, batches: list[memoryview]) -> None:
        """Undo the effects of batches on offsets, leader epochs and producers.

        Everything comes from memory, because reading may be impossible in this situation.
        """
        self.staged_end_offset = self.end_offset
        self.epochs.truncate_from(self.end_offset + 1)
        self.transactions.staged.clear()
        self.producers.take_back({HEADER.unpack_from(batch)[PRODUCER_ID] for batch in batches}, self.end_offset)

    def write_group(self, batches: Sequence[memoryview], places: Sequence[BatchPlace], total: int) -> None:
        """HOT. Write batches of one segment. A buffer may hold several of them."""
        segment = self.active
        file = self.files.handle(segment.log)
        position = segment.size
        if len(batches) > self.disk.iov_max or self.disk.write_vector(file, batches, position) != total:
            write_all(self.disk, file, batches, position)
        self._recent.note(places, position)
        segment.note(places, self.config.index_interval_bytes)
        self.size_bytes += total
        self.appended_bytes += total
        self.end_offset = segment.next_offset
        if self.transactions.staged:
            self.transactions.written_to(segment)

    def _write_across_segments(self, batches: list[memoryview], places: list[BatchPlace]) -> None:
        """Write a turn's batches that do not all fit in the active segment."""
        begin = 0
        while begin < len(places):
            end = self.end_of_group(places, begin)
            self.write_group(batches[begin:end], places[begin:end], sum(place[3] for place in places[begin:end]))
            begin = end

    def end_of_group(self, places: Sequence[BatchPlace], begin: int) -> int:
        """Return the end of the batches that fit in one segment with the one at `begin`; roll if none fits any more."""
        pending = 0
        for index in range(begin, len(places)):
            _base, last, timestamp, size = places[index]
            if not self.active.has_room(pending + size, last, timestamp, self.config, self.appended_wall_ms):
                if pending:
                    return index
                if self.active.size:
                    self.roll()
            pending += size
        return len(places)

    def roll(self, base_offset: int | None = None) -> None:
        """Close the active segment to appends and begin the next one; the next flush trims and syncs the old one."""
        old = self.active
        old.index_time()
        old.index.spill()
        old.time_index.spill()
        old.transactions.spill()
        base_offset = self.end_offset if base_offset is None else base_offset
        segment = self._create_segment(base_offset)
        self._flusher.segment_sealed(old, base_offset)
        self.segments.append(segment)
        self.bases.append(base_offset)
        self.active = segment
        self._forget_places()

    def _create_segment(self, base_offset: int) -> Segment:
        """Create all files of a segment or none: an empty file left behind would begin where the old segment may
        continue.
        """
        try:
            return Segment.create(self.files, self.path, base_offset, self.config, self.appended_wall_ms)
        except OSError as error:
            if is_transient(error):
                for suffix in (names.LOG, names.INDEX, names.TIME_INDEX):
                    unlink_if_present(self.disk, names.segment_stem(self.path, base_offset) + suffix)
            raise

    def _forget_places(self) -> None:
        self._recent.forget()
        self._older.forget()

    # Reading

    def read(self, offset: int, max_bytes: int, below: int, at_least_one: bool) -> FileRange | None:
        """HOT. Read whole batches of one segment from the one that contains `offset`, all of them below `below`.

        Returns None if there is nothing below `below`, or if the first batch is larger than `max_bytes` and the caller
        does not want it anyway. The handle in it is valid until `files.close_idle`; pin it to keep it longer.
        """
        if offset < self.start_offset or offset > self.end_offset:
            raise OffsetOutsideLog(offset, self.start_offset, self.end_offset)
        if offset >= below or offset == self.end_offset:
            return None
        recent = self._recent
        if not recent.covers(offset):
            return self._older.read(offset, max_bytes, below, at_least_one)
        size = self.active.size
        span = recent.span(offset, max_bytes, None if below >= self.end_offset else below, at_least_one, size)
        if span is None:
            return None
        start, stop = span
        return FileRange(self.files.handle(self.active.log), start, stop - start)

    def is_in_segment_of(self, part: FileRange, offset: int) -> bool:
        """Return whether a range that was just read comes from the segment that contains `offset`."""
        place = max(bisect_right(self.bases, offset) - 1, 0)
        return self.segments[place].log.handle == part.file

    # Offsets by time and by epoch

    def offset_at_time(self, timestamp_ms: int, below: int) -> TimeSearch:
        """Return a search for a helper thread: the first record at or after the timestamp, if it is below `below`."""
        return times.first_at_or_after(self, timestamp_ms, below)

    def max_timestamp_offset(self) -> TimeSearch:
        """Return a search for a helper thread: the record with the newest timestamp, the first of several."""
        return times.newest(self)

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """Return the largest known epoch not above the given one and its end offset; (-1, -1) if unknown."""
        return self.epochs.end_of(leader_epoch, self.end_offset)

    def begin_epoch(self, leader_epoch: int) -> None:
        """Begin a leader epoch at the log end, with this node as leader. The next flush stores it; until then the
        batches carry it.
        """
        self.epochs.forget_above(leader_epoch)
        self.epochs.assign(leader_epoch, self.staged_end_offset)

    # Truncation

    @property
    def is_truncating(self) -> bool:
        """Return whether a truncation is not done yet: until then the log is neither written nor read."""
        return self.truncation.in_progress

    def exchange(self, loaded: LoadedLog) -> None:
        """Continue with the state that a helper loaded after a truncation."""
        before = {segment.base_offset: segment for segment in self.segments}
        for segment in loaded.segments:
            known = before.get(segment.base_offset)
            if known is not None:
                segment.created_ms = known.created_ms
                # Damage at the end was that the next segment does not follow, which is gone.
                segment.damaged = tuple(part for part in known.damaged if part[0] < part[1] <= segment.size)
        for segment in before.values():
            for file in segment.all_files():
                self.files.retire(file)
        self._take_loaded(loaded)
        self.synced_offset = max(self.recovery_point, min(self.synced_offset, self.end_offset))
        self._flusher.log_reloaded(loaded.snapshot)
        self.appended_bytes += loaded.report.scanned_bytes
        self._forget_places()

    def advance_start(self, offset: int) -> None:
        """Advance the log start offset (DeleteRecords): readers see nothing below it; retention removes whole segments
        later.
        """
        if offset > self.end_offset:
            raise OffsetOutsideLog(offset, self.start_offset, self.end_offset)
        if offset > self.start_offset:
            self.start_offset = offset
            self.epochs.truncate_before(offset)

    def segments_taken(self, taken: list[Segment]) -> None:
        """Note the segments that retention removed from the old end; `segments` no longer contains them."""
        self.bases = [segment.base_offset for segment in self.segments]
        self.size_bytes -= sum(segment.size for segment in taken)
        self._older.forget()
        self._flusher.segments_taken(taken)
        self.advance_start(self.bases[0])

    def segments_replaced(self, old: list[Segment], new: Segment) -> None:
        """Replace adjacent segments with the one that compaction wrote."""
        place = self.segments.index(old[0])
        assert self.segments[place : place + len(old)] == old, "replaced segments must be adjacent"
        self.segments[place : place + len(old)] = [new]
        self.bases = [segment.base_offset for segment in self.segments]
        self.size_bytes += new.size - sum(segment.size for segment in old)
        self._older.forget()

    def mark_damaged(self, segment: Segment, ranges: tuple[tuple[int, int], ...]) -> None:
        """Mark these positions of a segment as unreadable; an empty list marks a segment that is whole again."""
        segment.damaged = ranges
        self._older.forget()

    @property
    def damaged_offset(self) -> int | None:
        """Return the offset of the first batch that is known to be damaged; None if there is none.

        A replica whose log is truncated there, and then copied from a sound leader, is whole again.
        """
        for segment in self.segments:
            if segment.damaged:
                return segment.end_before(segment.damaged[0][0])
        return None

    def is_flushed(self, segment: Segment) -> bool:
        """Return whether a closed segment is trimmed and synced and will not be written to any more."""
        return self._flusher.is_flushed(segment) and self.preallocation.segment is not segment

    # Work for helper threads

    def flush_due(self, wall_ms: int) -> bool:
        """Return whether configs, a rolled segment or the unclean-tail limit require a flush now; cheap."""
        return self._flusher.is_due(wall_ms)

    def flush_work(self) -> Work | None:
        """Return work that syncs everything appended since the last flush; None if there is nothing or a flush is
        running.
        """
        return self._flusher.work()

    @property
    def flush_deferred(self) -> bool:
        """Return whether the last flush found no space for its small files and pauses before a retry."""
        return self._flusher.deferred

    def close_excess_files(self) -> None:
        """Close files after opening the log if too many are open; the next use opens them again."""
        for segment in self.segments:
            self.files.close_unused(segment.all_files())

    # Closing

    def close(self, clean: bool = True) -> None:
        """Write and sync everything, trim preallocated space and write a snapshot; if unclean, only release the
        files.
        """
        if self.closed:
            return
        if clean and not self.failed:
            if self.is_truncating:
                raise OSError(EBUSY, "a truncation of the log is not finished; the next start finishes it", self.path)
            self.write_staged()
            self._flusher.flush_everything()
        self.closed = True
        for segment in self.segments:
            for file in segment.all_files():
                self.files.retire(file)
        self.retirement.close()
        self.truncation.close()

    @property
    def has_work(self) -> bool:
        """Return whether a helper thread works on this log; it may continue after the log was closed."""
        is_exchanging = bool(self.names_generation % 2) and (self.truncation.in_flight or not self.is_truncating)
        busy = self._flusher.in_flight or self.retirement.in_flight or self.preallocation.segment is not None
        return busy or is_exchanging

    def work_failed(self, error: BaseException) -> None:
        """Fail the log after its work ended with an error: from now on no record may be acknowledged as durable."""
        if self.closed:
            return
        self.failed = True
        if self.on_failed is not None:
            self.on_failed(error)
