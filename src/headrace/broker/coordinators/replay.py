"""Loads coordinators from their partitions: a helper thread reads the log, and the loop applies one part per turn."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from headrace.broker.partitions.replica import Replica
from headrace.broker.timers import Timers
from headrace.log.errors import DamagedLog, OffsetOutsideLog
from headrace.log.open_files import OpenFiles
from headrace.model.ids import NO_PRODUCER_ID
from headrace.ports.disk import FileRange
from headrace.ports.spawner import Spawner
from headrace.wire.errors import CorruptBatch
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_OFFSET,
    CONTROL_BIT,
    LAST_OFFSET_DELTA,
    PRODUCER_ID,
    TRANSACTIONAL_BIT,
    HeaderFields,
)
from headrace.wire.records.reader import ControlType, batches, check_batch, control_type, records

REPLAY_READ_BYTES = 64 << 10
"""Bytes that are read and applied in one turn; a single batch may be larger."""


class ReplayTarget(Protocol):
    """Receives the records and markers of a log in order."""

    def record(self, offset: int, key: bytes | None, value: bytes | None, producer_id: int) -> None:
        """Receive a record; `producer_id` is set for records of a transaction."""

    def marker(self, producer_id: int, *, commit: bool) -> None:
        """Receive the end of a producer's transaction."""


class ReplayFailed(Exception):
    """The log of the partition cannot be read, or was closed."""


class PartitionReplay:
    """The replay of one partition up to its end, including transaction markers that are appended meanwhile."""

    def __init__(self, partition: Replica, target: ReplayTarget, done: Callable[[ReplayFailed | None], None]) -> None:
        self.partition = partition
        self.done = done
        self._target = target
        self._next_offset = partition.log.start_offset

    @property
    def at_end(self) -> bool:
        """Return whether everything is read, and no staged batch is still unwritten."""
        return self._next_offset >= self.partition.log.staged_end_offset

    def next_range(self) -> FileRange | None:
        """Return the next unread part of the log, or None if everything written has been read."""
        if not self.partition.serves:
            raise ReplayFailed("this broker does not lead the partition any more")
        end_offset = self.partition.log.end_offset
        if self._next_offset >= end_offset:
            return None
        try:
            return self.partition.log.read(self._next_offset, REPLAY_READ_BYTES, end_offset, True)
        except (OSError, OffsetOutsideLog, DamagedLog) as error:
            raise ReplayFailed(str(error)) from error

    def take(self, content: bytes) -> None:
        try:
            for batch in batches(content):
                fields = check_batch(batch)
                end_offset = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1
                if end_offset > self._next_offset:
                    self._deliver(batch, fields)
                self._next_offset = max(self._next_offset, end_offset)
        except CorruptBatch as error:
            raise ReplayFailed(str(error)) from error

    def _deliver(self, batch: memoryview, fields: HeaderFields) -> None:
        attributes = fields[ATTRIBUTES]
        if attributes & CONTROL_BIT:
            for record in records(batch):
                commit = control_type(record) is ControlType.COMMIT
                self._target.marker(fields[PRODUCER_ID], commit=commit)
            return
        producer_id = fields[PRODUCER_ID] if attributes & TRANSACTIONAL_BIT else NO_PRODUCER_ID
        for record in records(batch):
            self._target.record(record.offset, record.key, record.value, producer_id)


class ReplayQueue:
    """Replays that run one after another, so that many partitions take no more work per turn than one."""

    def __init__(self, *, files: OpenFiles, spawner: Spawner, timers: Timers) -> None:
        self._files = files
        self._spawner = spawner
        self._timers = timers
        self._waiting: deque[PartitionReplay] = deque()
        self._running = False

    def add(self, replay: PartitionReplay) -> None:
        self._waiting.append(replay)
        if not self._running:
            self._running = True
            self._timers.next_turn(self._step)

    def _step(self) -> None:
        """Begin the next read; complete all replays before it that have nothing to read."""
        while self._waiting:
            replay = self._waiting[0]
            try:
                part = replay.next_range()
            except ReplayFailed as failure:
                self._end(failure)
                continue
            if part is None and not replay.at_end:
                self._timers.next_turn(self._step)
                return
            if part is None:
                self._end(None)
                continue
            self._read(replay, part)
            return
        self._running = False

    def _end(self, failure: ReplayFailed | None) -> None:
        self._waiting.popleft().done(failure)

    def _read(self, replay: PartitionReplay, part: FileRange) -> None:
        disk = self._files.disk
        self._files.pin(part.file)

        def completed(content: bytes | None, error: BaseException | None) -> None:
            self._timers.next_turn(self._step)  # first, so that an error here does not stop the replays behind this one
            self._files.unpin(part.file)
            try:
                if content is None:
                    raise ReplayFailed(str(error))
                replay.take(content)
            except ReplayFailed as failure:
                self._end(failure)
            except Exception as failure:
                self._end(ReplayFailed(f"a record could not be applied: {failure!r}"))
                raise

        self._spawner.submit(lambda: disk.read(part.file, part.length, part.position), completed)
