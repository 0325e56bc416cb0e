"""Builds machines from their partitions: a helper reads the log, a slice of it is applied a turn, one after another."""

from collections import deque
from collections.abc import Callable

from headrace.broker.partitions.leader import LedPartition
from headrace.broker.timers import Timers
from headrace.log.errors import DamagedLog, OffsetOutOfRange
from headrace.log.open_files import OpenFiles
from headrace.ports.disk import Slice
from headrace.ports.spawner import Spawner
from headrace.wire.errors import CorruptBatch
from headrace.wire.records.header import BASE_OFFSET, LAST_OFFSET_DELTA
from headrace.wire.records.reader import batches, check_batch, is_control, records

REPLAY_SLICE_BYTES = 64 << 10
"""Read and applied in one turn; a single batch may be larger."""

ApplyRecord = Callable[[int, bytes | None, bytes | None], None]
"""Gets the offset, the key and the value."""


class ReplayFailed(Exception):
    """The log of the partition cannot be read, or is gone."""


class Replay:
    """One partition, from its start to where its log ended when the replay began."""

    def __init__(
        self, partition: LedPartition, apply: ApplyRecord, done: Callable[[ReplayFailed | None], None]
    ) -> None:
        self.partition = partition
        self.done = done
        self._apply = apply
        self._next_offset = partition.log.start_offset
        self._end_offset = partition.log.end_offset

    def next_slice(self) -> Slice | None:
        if self.partition.offline:
            raise ReplayFailed("the partition is offline")
        if self._next_offset >= self._end_offset:
            return None
        try:
            return self.partition.log.read(self._next_offset, REPLAY_SLICE_BYTES, self._end_offset, True)
        except (OSError, OffsetOutOfRange, DamagedLog) as error:
            raise ReplayFailed(str(error)) from error

    def take(self, content: bytes) -> None:
        try:
            for batch in batches(content):
                fields = check_batch(batch)
                end_offset = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1
                if end_offset > self._next_offset and not is_control(batch):
                    for record in records(batch):
                        self._apply(record.offset, record.key, record.value)
                self._next_offset = max(self._next_offset, end_offset)
        except CorruptBatch as error:
            raise ReplayFailed(str(error)) from error


class Replays:
    """Those that wait for their turn, in order: many partitions to load are no more work per turn than one."""

    def __init__(self, *, files: OpenFiles, spawner: Spawner, timers: Timers) -> None:
        self._files = files
        self._spawner = spawner
        self._timers = timers
        self._waiting: deque[Replay] = deque()
        self._running = False

    def add(self, replay: Replay) -> None:
        self._waiting.append(replay)
        if not self._running:
            self._running = True
            self._timers.next_turn(self._step)

    def _step(self) -> None:
        """Begin the next read. Partitions with nothing to read end here, as many as there are."""
        while self._waiting:
            replay = self._waiting[0]
            try:
                part = replay.next_slice()
            except ReplayFailed as failure:
                self._end(failure)
                continue
            if part is None:
                self._end(None)
                continue
            self._read(replay, part)
            return
        self._running = False

    def _end(self, failure: ReplayFailed | None) -> None:
        self._waiting.popleft().done(failure)

    def _read(self, replay: Replay, part: Slice) -> None:
        disk = self._files.disk
        self._files.pin(part.file)

        def completed(content: bytes | None, error: BaseException | None) -> None:
            self._files.unpin(part.file)
            try:
                if content is None:
                    raise ReplayFailed(str(error))
                replay.take(content)
            except ReplayFailed as failure:
                self._end(failure)
            self._timers.next_turn(self._step)

        self._spawner.submit(lambda: disk.read(part.file, part.length, part.position), completed)
