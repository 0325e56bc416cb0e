"""Periodic work: flushing, retention, checkpoints and open files.

Each round checks the partitions that were written to since the last one. Work that grows with the number of
partitions is done in slices of a named size, one per turn.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.table import PartitionTable
from headrace.broker.timers import Timers
from headrace.log.open_files import OpenFiles
from headrace.log.uptime import UPTIME_CHECKPOINT_MS
from headrace.model.limits import HOUSEKEEPING_INTERVAL_MS
from headrace.ports.clock import Clock
from headrace.ports.disk import FileHandle

PARTITIONS_PER_SLICE = 200
SWEEP_AGAIN_MS = 50
"""Interval between checks of open files while there are too many."""


class Housekeeping:
    def __init__(
        self,
        *,
        table: PartitionTable,
        files: OpenFiles,
        files_in_use: Callable[[], Iterator[FileHandle]],
        clock: Clock,
        timers: Timers,
    ) -> None:
        self._table = table
        self._files = files
        self._files_in_use = files_in_use
        self._clock = clock
        self._timers = timers
        self._making_room = False
        self._sweeps_again = False

    def start(self) -> None:
        config = self._table.config
        self._every(UPTIME_CHECKPOINT_MS, self._table.checkpoints.write_uptime)
        self._every(HOUSEKEEPING_INTERVAL_MS, self._check_active)
        self._every(config.retention_check_interval_ms, self._check_all)
        self._every(
            min(
                config.recovery_checkpoint_interval_ms,
                config.log_start_checkpoint_interval_ms,
                config.high_watermark_checkpoint_interval_ms,
            ),
            self._table.checkpoints.write,
        )

    def _every(self, interval_ms: float, call: Callable[[], None]) -> None:
        def again() -> None:
            self._timers.after(interval_ms, again)
            call()

        self._timers.after(interval_ms, again)

    def _check_active(self) -> None:
        table, wall_ms = self._table, self._clock.wall_ms()
        table.checkpoints.follow_uptime()
        active, table.active = table.active, {}
        for partition in active:
            if partition.offline:
                continue
            if partition.log.flush_due(wall_ms):
                table.flush(partition)
            if partition.log.recovery_point < partition.log.end_offset:
                table.active[partition] = None
        self.close_idle_files()

    def _check_all(self) -> None:
        self._expire(iter(tuple(self._table)))

    def make_room(self) -> None:
        """Apply retention at once, because a directory is full."""
        if not self._making_room:
            self._making_room = True
            self._expire(partition for partition in tuple(self._table) if partition.space.full)

    def _expire(self, partitions: Iterator[Replica]) -> None:
        """Apply retention and expire producers, a slice of partitions per turn."""
        wall_ms = self._clock.wall_ms()
        checked = 0
        for partition in islice(partitions, PARTITIONS_PER_SLICE):
            checked += 1
            if not partition.offline:
                high_watermark = int(partition.role.high_watermark)
                self._table.submit(partition.log.retirement.work(wall_ms, high_watermark, hurry=partition.space.full))
                partition.log.producers.expire(wall_ms, self._table.config.producer_id_expiration_ms)
        if checked == PARTITIONS_PER_SLICE:
            self._timers.next_turn(lambda: self._expire(partitions))
        else:
            self._making_room = False

    def close_idle_files(self) -> None:
        """Close idle files; files of responses that are still being sent stay open."""
        with_pins(self._files, tuple(self._files_in_use()), self._files.close_idle)
        if self._files.too_many and not self._sweeps_again:
            self._sweeps_again = True
            self._timers.after(SWEEP_AGAIN_MS, self._sweep_again)

    def _sweep_again(self) -> None:
        self._sweeps_again = False
        self.close_idle_files()


def with_pins(files: OpenFiles, handles: Iterable[FileHandle], call: Callable[[], None]) -> None:
    pinned = list(handles)
    for handle in pinned:
        files.pin(handle)
    try:
        call()
    finally:
        for handle in pinned:
            files.unpin(handle)
