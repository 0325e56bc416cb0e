"""Submission of flushes to helpers: all at once, or a few at a time while file descriptors are scarce.

A flush keeps its files open until it has ended. After a crash every partition may need one, and together they may need
more descriptors than the process has.
"""

from functools import partial

from headrace.broker.partitions.replica import Replica
from headrace.log.work import Work
from headrace.ports.spawner import Lane, Spawner

FLUSHES_AT_ONCE_MAX = 8
"""The limit while more log files are open than there should be."""


class Flushes:
    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner
        self._waiting: dict[Replica, None] = {}
        self._counted = 0
        """Flushes in flight that were started while descriptors were scarce."""

    def begin(self, partition: Replica) -> None:
        """Flush the partition, now or when its turn comes."""
        if partition.log.files.too_many or self._waiting:
            self._waiting[partition] = None
            self._continue()
            return
        work = partition.log.flush_work()
        if work is not None:
            self._spawner.submit(*work, Lane.SYNC)

    def _continue(self) -> None:
        while self._waiting and self._counted < FLUSHES_AT_ONCE_MAX:
            partition = next(iter(self._waiting))
            del self._waiting[partition]
            work = partition.log.flush_work()
            if work is not None:
                self._spawner.submit(work.run, partial(self._ended, work), Lane.SYNC)
                self._counted += 1

    def _ended(self, work: Work, result: object, error: BaseException | None) -> None:
        self._counted -= 1
        try:
            work.done(result, error)
        finally:
            self._continue()
