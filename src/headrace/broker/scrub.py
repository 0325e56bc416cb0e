"""The background scrub: reads closed segments again periodically, so that bit rot is found before a reader needs them.

It reads one segment at a time, a piece at a time, no faster than configured. Damage is logged and counted, and the
damaged range is not served any more; the rest of the partition is.
"""

from collections.abc import Callable, Iterator

from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Family
from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.table import PartitionTable
from headrace.broker.timers import Timers
from headrace.log import names
from headrace.log.errors import is_transient
from headrace.log.scrub import SegmentScrub
from headrace.log.segment import Segment
from headrace.ports.clock import Clock
from headrace.ports.disk import Disk
from headrace.ports.spawner import Spawner

START_DELAY_MS = 60_000
"""Wait between the start and the first round."""
LOOK_AGAIN_MS = 60_000
"""Interval at which a scrub that is disabled or finished checks whether it is due."""


class Scrubber:
    def __init__(
        self,
        *,
        table: PartitionTable,
        disk: Disk,
        spawner: Spawner,
        timers: Timers,
        clock: Clock,
        logger: NodeLogger,
    ) -> None:
        self._table = table
        self._disk = disk
        self._spawner = spawner
        self._timers = timers
        self._clock = clock
        self._logger = logger
        self._began_ms = -1.0
        self._waiting: Iterator[tuple[Replica, Segment]] = iter(())
        self._current: SegmentScrub | None = None
        self._names_generation = 0
        """Generation of the log's file names, which changes when compaction swaps files."""
        self.rounds = 0
        self.bytes_read = 0
        self.damages_found = 0

    def start(self) -> None:
        self._later(START_DELAY_MS, self._begin_if_due)

    def _begin_if_due(self) -> None:
        interval_ms = self._table.config.scrub_interval_ms
        now_ms = self._clock.monotonic_ms()
        if not interval_ms or (self._began_ms >= 0 and now_ms - self._began_ms < interval_ms):
            self._later(LOOK_AGAIN_MS, self._begin_if_due)
            return
        self._began_ms = now_ms
        self._waiting = self._closed_segments()
        self._next_segment()

    def _later(self, delay_ms: float, call: Callable[[], None]) -> None:
        """Run a step after a while. A step that fails does not end the scrub: the next segment is read all the same."""

        def resume() -> None:
            try:
                call()
            except Exception:
                self._later(LOOK_AGAIN_MS, self._next_segment)
                raise

        self._timers.after(delay_ms, resume)

    def _closed_segments(self) -> Iterator[tuple[Replica, Segment]]:
        for partition in tuple(self._table):
            for segment in tuple(partition.log.segments[:-1]):
                yield partition, segment

    def _next_segment(self) -> None:
        for partition, segment in self._waiting:
            log = partition.log
            if not self._is_closed(partition, segment) or not log.is_flushed(segment) or log.names_generation % 2:
                continue
            self._names_generation = log.names_generation
            following = log.segments[log.segments.index(segment) + 1]
            marks = (names.COMPACTED, names.REPAIRED)
            gaps = log.config.compact or any(self._disk.exists(f"{log.path}/{mark}") for mark in marks)
            scrub = SegmentScrub(self._disk, segment, next_base_offset=following.base_offset, gaps=gaps)
            self._continue(partition, scrub)
            return
        self.rounds += 1
        self._begin_if_due()

    def _is_closed(self, partition: Replica, segment: Segment) -> bool:
        """Return whether the segment still exists and is closed: retention or compaction may have removed it."""
        return not partition.offline and not partition.log.closed and segment in partition.log.segments[:-1]

    def close(self) -> None:
        """Close the file; call it when no work is in progress."""
        if self._current is not None:
            self._current.close()

    def _continue(self, partition: Replica, scrub: SegmentScrub) -> None:
        self._current = scrub
        work = scrub.piece()

        def done(result: int | None, error: BaseException | None) -> None:
            try:
                read_piece(result, error)
            except Exception:
                scrub.close()
                self._later(LOOK_AGAIN_MS, self._next_segment)
                raise

        def read_piece(result: int | None, error: BaseException | None) -> None:
            work.done(result, error)
            read = result or 0
            self.bytes_read += read
            pause_ms = 1000 * read / self._table.config.scrub_bytes_per_second
            exchanged = partition.log.names_generation != self._names_generation  # it may have opened the new file
            if exchanged or not self._is_closed(partition, scrub.segment):
                scrub.close()
            elif not scrub.finished:
                self._later(pause_ms, lambda: self._continue(partition, scrub))
                return
            else:
                self._ended(partition, scrub, error)
            self._later(pause_ms, self._next_segment)

        self._spawner.submit(work.run, done)

    def _ended(self, partition: Replica, scrub: SegmentScrub, error: BaseException | None) -> None:
        path, segment = scrub.segment.log.path, scrub.segment
        if error is not None:
            if not is_transient(error):
                self.damages_found += 1
                self._logger.error("a segment cannot be read", path=path, error=str(error))
            return
        known = segment.damaged
        ranges = tuple((damage.position, damage.end) for damage in scrub.damages)
        self._table.mark_damaged(partition, segment, ranges)
        for damage in scrub.damages:
            if (damage.position, damage.end) not in known:
                self.damages_found += 1
                self._logger.error(
                    "a segment is damaged: a replica is copied from its leader again; if this is the only one, restore "
                    "the folder from a copy, or cut it there with `headrace log repair`",
                    path=path,
                    position=damage.position,
                    damage=damage.text,
                )

    def families(self) -> Iterator[Family]:
        for name, kind, text, value in (
            ("scrub_bytes_total", "counter", "Bytes of closed segments that were read again.", self.bytes_read),
            ("scrub_rounds_total", "counter", "Times that all closed segments were read again.", self.rounds),
            ("scrub_damages_total", "counter", "Damaged places found in closed segments.", self.damages_found),
            (
                "partitions_damaged",
                "gauge",
                "Partitions with a segment that is known to be damaged.",
                len(self._table.damaged_replicas()),
            ),
        ):
            yield Family(f"headrace_{name}", kind, text, (((), value),))
