"""Checks of records that a follower has refused as damaged: a helper reads them again from the leader's disk.

A leader sends its files without a look at them. If the bytes on its disk are damaged, it has to know, because its
followers cannot copy what follows; otherwise the damage happened on the way, and the next fetch brings sound bytes.
"""

from bisect import bisect_right
from collections.abc import Callable

from headrace.broker.logs import NodeLogger
from headrace.broker.partitions.replica import Replica
from headrace.log import names
from headrace.log.errors import LogError
from headrace.log.scrub import SegmentScrub
from headrace.log.segment import Segment
from headrace.ports.spawner import Spawner

CHECKED_BYTES_MAX = 1 << 20
"""Bytes that one check reads at most, beyond its first batch."""
CHECKS_MAX = 16
"""Checks under way on one node; a follower asks again."""


class RecordChecks:
    def __init__(
        self,
        *,
        spawner: Spawner,
        logger: NodeLogger,
        mark_damaged: Callable[[Replica, Segment, tuple[tuple[int, int], ...]], None],
    ) -> None:
        self._spawner = spawner
        self._logger = logger
        self._mark_damaged = mark_damaged
        self._running: dict[Replica, None] = {}

    def check(self, replica: Replica, offset: int) -> None:
        """Read the batches from this offset on, and mark what is damaged."""
        if replica in self._running or len(self._running) >= CHECKS_MAX:
            return
        log = replica.log
        try:
            part = log.read(offset, CHECKED_BYTES_MAX, log.end_offset, True)
        except (OSError, LogError):
            return  # there is nothing at this offset, or the damage is known
        if part is None:
            return
        segment = log.segments[max(bisect_right(log.bases, offset) - 1, 0)]
        marks = (names.COMPACTED, names.REPAIRED)
        scrub = SegmentScrub(
            log.disk,
            segment,
            begin=part.position,
            end=part.position + part.length,
            base_offset=offset,
            gaps=log.config.compact or any(log.disk.exists(f"{log.path}/{mark}") for mark in marks),
        )
        self._running[replica] = None
        self._continue(replica, scrub)

    def _continue(self, replica: Replica, scrub: SegmentScrub) -> None:
        work = scrub.piece()

        def done(result: int | None, error: BaseException | None) -> None:
            work.done(result, error)
            if error is None and not scrub.finished and not replica.offline:
                self._continue(replica, scrub)
                return
            scrub.close()
            del self._running[replica]
            if error is None and scrub.damages and not replica.offline and scrub.segment in replica.log.segments:
                self._found(replica, scrub)

        self._spawner.submit(work.run, done)

    def _found(self, replica: Replica, scrub: SegmentScrub) -> None:
        segment = scrub.segment
        found = {(damage.position, damage.end): damage.text for damage in scrub.damages}
        for (position, _end), text in found.items():
            self._logger.error(
                "a follower has found damage in this leader's log",
                path=segment.log.path,
                position=position,
                damage=text,
            )
        self._mark_damaged(replica, segment, tuple(sorted({*segment.damaged, *found})))
