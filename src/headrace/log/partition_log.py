"""The log of one partition: batches appended in groups, read as slices, kept in segments.

Single-threaded: one loop owns it. Whatever may wait for the device is handed out as `Work` for a helper. The path of
an append is `producers.admit`, `stage` for every batch of a turn, then one `write_staged`.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from struct import Struct

from headrace.model.ids import TopicId, TopicPartition
from headrace.ports.disk import Disk, Slice
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

from . import names, times, unsynced
from .config import LogConfig
from .errors import OffsetOutOfRange, passes
from .files import unlink_if_present, write_all
from .flush import Flusher
from .leader_epochs import LeaderEpochs
from .older_reads import OlderReads
from .open_files import OpenFiles
from .preallocation import Preallocation
from .producers import ProducerStates
from .recovery import Loader, RecoveryReport, claim_folder
from .retirement import Retirement
from .segment import BatchPlace, Segment
from .times import TimeSearch
from .transactions import LogTransactions
from .uptime import Uptime
from .work import Work

RECENT_BATCHES_MAX = 2048
"""Batches of the active segment whose places are kept in memory; twice as many just before the older half goes."""

_STAMP = Struct(">qii")


class PartitionLog:
    def __init__(
        self,
        files: OpenFiles,
        path: str,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        uptime: Uptime,
    ) -> None:
        self.files = files
        self.disk = files.disk
        self.path = path
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self.start_offset = 0
        self.end_offset = 0
        self.recovery_point = 0
        self.synced_offset = 0
        """What is below is on the device; the recovery point is not ahead of it."""
        self.size_bytes = 0
        self.appended_bytes = 0
        """Since the log was opened; what is flushed is counted against it."""
        self.appended_wall_ms = 0
        self._uptime = uptime
        self.producers = ProducerStates(uptime)
        self.transactions = LogTransactions(self)
        self.epochs = LeaderEpochs()
        self.names_generation = 0
        """Odd while compaction exchanges the files of segments: what opened them by name meanwhile must look again."""
        self.being_replaced: tuple[Segment, ...] = ()
        """The segments of the exchange that runs now. Retention leaves them alone until it has ended: the exchange
        would put the file of a segment back that is no longer part of the log."""
        self.failed = False
        self.closed = False
        self.recovered = RecoveryReport()
        self.on_flushed: Callable[[int], None] | None = None
        """Called on the loop with the end offset of what is now on the device."""
        self.on_failed: Callable[[BaseException], None] | None = None
        """Called on the loop when work of this log failed on the device; the log is then `failed`."""
        self.on_put_off: Callable[[OSError], None] | None = None
        """Called on the loop when a flush found no room, or no descriptor, for everything; it is tried again."""
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        self.active: Segment
        self.staged_end_offset = 0
        """Where the next staged batch goes; `end_offset` once everything staged is written."""
        self._staged: list[memoryview] = []
        self._staged_places: list[BatchPlace] = []
        self._staged_bytes = 0
        self._recent_offsets = array("q")
        self._recent_positions = array("q")
        self._older = OlderReads(self)
        self._flusher = Flusher(self)
        self._preallocation = Preallocation(self)
        self._retirement = Retirement(self, self._flusher)

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
        files: OpenFiles | None = None,
        uptime: Uptime | None = None,
    ) -> "PartitionLog":
        """Take over the folder, made when absent, recovered when it was not closed."""
        disk.make_directory(path)
        topic_id = claim_folder(disk, path, topic_partition, topic_id)
        files = files if files is not None else OpenFiles(disk)
        uptime = uptime if uptime is not None else Uptime()
        log = cls(files, path, topic_partition, topic_id, config, uptime)
        log.recovery_point, log.start_offset = recovery_point, start_offset
        loader = log._loader(clean=clean_shutdown, wall_ms=wall_ms)
        log.recovered = loader.report
        log._take_segments(loader.load_segments(), start_offset, wall_ms)
        log.appended_bytes = loader.report.scanned_bytes
        # Not up to the log's start, which may lie in a segment: the part before it need not be synced.
        log.recovery_point = min(max(recovery_point, log.bases[0]), log.end_offset)
        if clean_shutdown:
            log.recovery_point = log.end_offset
        else:
            log._flusher.directory_changed = True  # the process before may have died with names it had not synced
        log.synced_offset = log.recovery_point
        log._restore_state(loader)
        return log

    def _loader(self, *, clean: bool, wall_ms: int) -> Loader:
        return Loader(
            files=self.files,
            folder=self.path,
            config=self.config,
            recovery_point=self.recovery_point,
            start_offset=self.start_offset,
            clean=clean,
            wall_ms=wall_ms,
            uptime=self._uptime,
        )

    def _take_segments(self, segments: list[Segment], start_offset: int, wall_ms: int) -> None:
        self.appended_wall_ms = wall_ms
        if segments and segments[-1].next_offset < start_offset:
            self._unlink_segments(segments)
            segments = []
        if not segments:
            segments = [Segment.create(self.files, self.path, start_offset, self.config, wall_ms)]
            # Its name must not be lost while that of a later segment stays: the log would seem to begin there.
            self.disk.sync_directory(self.path)
        self.segments = segments
        self.bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        self.start_offset = max(start_offset, self.bases[0])
        self.end_offset = self.staged_end_offset = self.active.next_offset
        self.size_bytes = sum(segment.size for segment in segments)

    def _restore_state(self, loader: Loader) -> None:
        """Producers from the newest snapshot, epochs from their file, then both from the batches since."""
        self.producers, snapshot = loader.load_producers(self.segments)
        begin = max(snapshot, 0)
        epochs = loader.load_epochs()
        if epochs is None:
            begin = 0
        else:
            self.epochs = epochs
            begin = min(begin, self.recovery_point)
        self.epochs.truncate_from(self.end_offset)
        self._replay(loader, snapshot, begin)
        self.epochs.truncate_before(self.start_offset)

    def _replay(self, loader: Loader, snapshot: int, begin: int) -> None:
        state, point = (self.segments, self.producers, self.epochs), self.recovery_point
        loader.replay(*state, snapshot=snapshot, begin=begin, recovery_point=point)
        self._flusher.note_snapshot(snapshot)

    def configure(self, config: LogConfig) -> None:
        """Obey changed topic configs from now on."""
        self.config = config

    # Appending

    def stage(
        self, batch: memoryview, fields: HeaderFields, leader_epoch: int, wall_ms: int, is_noted: bool = False
    ) -> int:
        """HOT. Give the batch its offsets and keep it for this turn's write; its bytes must stay until then.

        `is_noted`: the producer's state has it already (`ProducerStates.advance`)."""
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
        """HOT. Write what this turn staged, one vector per segment.

        An OSError makes the log `failed`, unless it passes (a full device, no file descriptors left): then what did
        not get in is taken back, and the log goes on as soon as it can.
        """
        batches, places, total = self._staged, self._staged_places, self._staged_bytes
        if not batches:
            return
        self._staged, self._staged_places, self._staged_bytes = [], [], 0
        try:
            _base, last, timestamp, _size = places[-1]
            if self.active.has_room(total, last, timestamp, self.config, self.appended_wall_ms):
                self._write_group(batches, places, total)
            else:
                self._write_across_segments(batches, places)
        except OSError as error:
            self.failed = True
            if passes(error):
                self._take_back(batches)
                self.failed = False
            raise

    def discard_staged(self) -> None:
        """Of a log that may not be written any more."""
        self._staged, self._staged_places, self._staged_bytes = [], [], 0
        self.transactions.staged.clear()

    def _take_back(self, batches: list[memoryview]) -> None:
        """As if what is not in the log had never been staged: the bytes, the offsets, the epoch and the producers.

        All of it from memory, because reading may be what the system cannot do just now.
        """
        segment = self.active
        if segment.log.handle >= 0:  # otherwise nothing was written to it
            self.disk.truncate(segment.log.handle, segment.size)
            segment.allocated = segment.size
        self.staged_end_offset = self.end_offset
        self.epochs.truncate_from(self.end_offset + 1)
        self.transactions.staged.clear()
        self.producers.take_back({HEADER.unpack_from(batch)[PRODUCER_ID] for batch in batches}, self.end_offset)

    def _write_group(self, batches: list[memoryview], places: list[BatchPlace], total: int) -> None:
        segment = self.active
        file = self.files.handle(segment.log)
        position = segment.size
        if len(batches) > self.disk.iov_max or self.disk.write_vector(file, batches, position) != total:
            write_all(self.disk, file, batches, position)
        recent_offsets, recent_positions = self._recent_offsets, self._recent_positions
        for place in places:
            recent_offsets.append(place[0])
            recent_positions.append(position)
            position += place[3]
        if len(recent_offsets) >= 2 * RECENT_BATCHES_MAX:
            del recent_offsets[:RECENT_BATCHES_MAX], recent_positions[:RECENT_BATCHES_MAX]
        segment.note(places, self.config.index_interval_bytes)
        self.size_bytes += total
        self.appended_bytes += total
        self.end_offset = segment.next_offset
        if self.transactions.staged:
            self.transactions.written_to(segment)

    def _write_across_segments(self, batches: list[memoryview], places: list[BatchPlace]) -> None:
        """The turn's batches do not all belong into the active segment: split them where the next must begin."""
        begin, pending = 0, 0
        for index, (base, last, timestamp, size) in enumerate(places):
            room = self.active.has_room(pending + size, last, timestamp, self.config, self.appended_wall_ms)
            if not room and (pending or self.active.size):
                if pending:
                    self._write_group(batches[begin:index], places[begin:index], pending)
                    begin, pending = index, 0
                self.roll(base)
            pending += size
        self._write_group(batches[begin:], places[begin:], pending)

    def roll(self, base_offset: int | None = None) -> None:
        """Close the active segment to appends and begin the next; the old one is cut and synced by the next flush."""
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
        """All of its files or none: an empty one left behind would begin where the old segment may go on."""
        try:
            return Segment.create(self.files, self.path, base_offset, self.config, self.appended_wall_ms)
        except OSError as error:
            if passes(error):
                for suffix in (names.LOG, names.INDEX, names.TIME_INDEX):
                    unlink_if_present(self.disk, names.segment_stem(self.path, base_offset) + suffix)
            raise

    def _forget_places(self) -> None:
        del self._recent_offsets[:], self._recent_positions[:]
        self._older.forget()

    # Reading

    def read(self, offset: int, max_bytes: int, below: int, at_least_one: bool) -> Slice | None:
        """HOT. Whole batches of one segment from the one that contains `offset`, all of them below `below`.

        None when there is nothing below `below`, or when the first batch is above `max_bytes` and is not wanted
        anyway. The slice's handle is good until `files.close_idle`; pin it to keep it longer.
        """
        if offset < self.start_offset or offset > self.end_offset:
            raise OffsetOutOfRange(offset, self.start_offset, self.end_offset)
        if offset >= below or offset == self.end_offset:
            return None
        offsets = self._recent_offsets
        if not offsets or offset < offsets[0]:
            return self._older.read(offset, max_bytes, below, at_least_one)
        positions = self._recent_positions
        first = bisect_right(offsets, offset) - 1
        start = positions[first]
        if below >= self.end_offset:
            stop = self.active.size
        else:
            after = bisect_left(offsets, below, first)
            stop = positions[after] if after < len(positions) else self.active.size
        if stop - start > max_bytes:
            cut = bisect_right(positions, start + max_bytes, first) - 1
            if cut > first:
                stop = positions[cut]
            elif not at_least_one:
                return None
            elif first + 1 < len(positions):
                stop = positions[first + 1]
        return Slice(self.files.handle(self.active.log), start, stop - start)

    def is_in_segment_of(self, part: Slice, offset: int) -> bool:
        """Whether a slice that was just read is of the segment that `offset` belongs to."""
        place = max(bisect_right(self.bases, offset) - 1, 0)
        return self.segments[place].log.handle == part.file

    # Offsets by time and by epoch

    def offset_at_time(self, timestamp_ms: int, below: int) -> TimeSearch:
        """For a helper: the first record at or after the time, if it is below `below`."""
        return times.first_at_or_after(self, timestamp_ms, below)

    def max_timestamp_offset(self) -> TimeSearch:
        """For a helper: the record with the newest timestamp, the first of several."""
        return times.newest(self)

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """The largest known epoch not above the given one, and where it ended; (-1, -1) when unknown."""
        return self.epochs.end_of(leader_epoch, self.end_offset)

    def begin_epoch(self, leader_epoch: int) -> None:
        """This node leads from the log's end on. The next flush writes it down; until then the batches tell it."""
        self.epochs.forget_above(leader_epoch)
        self.epochs.assign(leader_epoch, self.staged_end_offset)

    # Shortening

    def truncate_to(self, offset: int) -> None:
        """Drop everything from `offset` on, which must be a batch boundary or inside a batch, then dropped whole."""
        assert not self._staged, "staged batches must be written before the log is truncated"
        if offset >= self.end_offset:
            return
        keep = max(bisect_left(self.bases, offset), 1)
        dropped, self.segments = self.segments[keep:], self.segments[:keep]
        del self.bases[keep:]
        self.active = self.segments[-1]
        if dropped:
            self._unlink_segments(dropped)
        self._shorten_active(max(offset, self.active.base_offset))
        self._forget_places()
        self.end_offset = self.staged_end_offset = self.active.next_offset
        self.size_bytes = sum(segment.size for segment in self.segments)
        self.recovery_point = min(self.recovery_point, self.end_offset)
        self.synced_offset = min(self.synced_offset, self.end_offset)
        self.start_offset = min(self.start_offset, self.end_offset)
        self._flusher.log_truncated()
        self._reload_state()

    def _shorten_active(self, offset: int) -> None:
        segment = self.active
        found = segment.find(offset)
        if found is None:
            return
        position, _size, base_offset = found
        segment.truncate(position, base_offset)
        file = self.files.handle(segment.log)
        self.disk.truncate(file, position)
        unsynced.sync(self.disk, self.path, file)

    def _reload_state(self) -> None:
        loader = self._loader(clean=True, wall_ms=self.appended_wall_ms)
        self.epochs.truncate_from(self.end_offset)
        self.producers, snapshot = loader.load_producers(self.segments)
        self._replay(loader, snapshot, max(snapshot, 0))

    def advance_start(self, offset: int) -> None:
        """DeleteRecords: readers see nothing below `offset` from now on; whole segments go with retention."""
        if offset > self.end_offset:
            raise OffsetOutOfRange(offset, self.start_offset, self.end_offset)
        if offset > self.start_offset:
            self.start_offset = offset
            self.epochs.truncate_before(offset)

    def segments_taken(self, taken: list[Segment]) -> None:
        """Retention took these from the old end; `segments` is without them already."""
        self.bases = [segment.base_offset for segment in self.segments]
        self.size_bytes -= sum(segment.size for segment in taken)
        self._older.forget()
        self._flusher.segments_taken(taken)
        self.advance_start(self.bases[0])

    def segments_replaced(self, old: list[Segment], new: Segment) -> None:
        """Compaction put one segment in the place of these neighbours."""
        place = self.segments.index(old[0])
        assert self.segments[place : place + len(old)] == old, "segments that were replaced are neighbours"
        self.segments[place : place + len(old)] = [new]
        self.bases = [segment.base_offset for segment in self.segments]
        self.size_bytes += new.size - sum(segment.size for segment in old)
        self._older.forget()

    def mark_damaged(self, segment: Segment, ranges: tuple[tuple[int, int], ...]) -> None:
        """What was found in these positions of a segment is not read to anyone; nothing for one that is whole again."""
        segment.damaged = ranges
        self._older.forget()

    def retire(self, segments: list[Segment], due_ms: int) -> None:
        """Segments whose files were renamed as deleted already: unlink them when no reader can be left."""
        self._retirement.add(segments, due_ms)

    def is_settled(self, segment: Segment) -> bool:
        """Whether a closed segment is cut and synced, and nobody will write to it any more."""
        return self._flusher.is_settled(segment) and not self.is_preallocating(segment)

    def _unlink_segments(self, segments: list[Segment]) -> None:
        """At once and for good: a segment that came back after a crash would follow batches it does not belong to."""
        for segment in segments:
            for file in segment.all_files():
                self.files.retire(file)
            for suffix in names.SEGMENT_FILES:
                unlink_if_present(self.disk, segment.stem + suffix)
        self.disk.sync_directory(self.path)

    # Work for helpers

    def flush_due(self, wall_ms: int) -> bool:
        """Cheap: whether configs, a sealed segment or the unclean tail's limit ask for a flush now."""
        return self._flusher.is_due(wall_ms)

    def flush_work(self) -> Work | None:
        """Sync what was appended since the last flush; None if nothing was or a flush is under way."""
        return self._flusher.work()

    @property
    def flush_put_off(self) -> bool:
        """Whether the last flush found no room for its small files, and rests."""
        return self._flusher.put_off

    def preallocation_work(self) -> Work | None:
        """Reserve the next blocks of a busy segment; None, cheaply, for an idle one or while some are left."""
        return self._preallocation.work()

    def retention_work(self, wall_ms: int, high_watermark: int, *, hurry: bool = False) -> Work | None:
        """Take away segments that are too old, too much or below the start, and unlink those taken away earlier."""
        return self._retirement.work(wall_ms, high_watermark, hurry=hurry)

    def put_away_files(self) -> None:
        """After it was opened: where more files are open than there should be, the next use opens them again."""
        for segment in self.segments:
            self.files.put_away_unused(segment.all_files())

    # Ending

    def close(self, clean: bool = True) -> None:
        """Write and sync everything, cut preallocated space and leave a snapshot; unclean: only let go."""
        if self.closed:
            return
        if clean and not self.failed:
            self.write_staged()
            self._flusher.flush_everything()
        self.closed = True
        for segment in self.segments:
            for file in segment.all_files():
                self.files.retire(file)
        self._retirement.close()

    @property
    def has_work(self) -> bool:
        """Whether a helper works on this log; that may go on after the log was closed."""
        is_exchanging = bool(self.names_generation % 2)
        busy = self._flusher.in_flight or self._retirement.in_flight or self._preallocation.segment is not None
        return busy or is_exchanging

    def is_preallocating(self, segment: Segment) -> bool:
        return self._preallocation.segment is segment

    def work_failed(self, error: BaseException) -> None:
        """Work of this log ended with an error: nothing more may be acknowledged as if it were on the device."""
        if self.closed:
            return
        self.failed = True
        if self.on_failed is not None:
            self.on_failed(error)
