"""Syncs on demand, for callers that must not continue before a partition's log is on the disk up to an offset.

All waits of a partition share its flushes. A flush starts at the end of a turn; a wait that begins while it is in
flight is for the next one. A wait ends with success; or with failure, when this broker no longer leads the partition or
the time is over.
"""

from collections.abc import Callable

from headrace.broker.partitions.replica import Replica
from headrace.broker.timers import Timers

SYNC_WAIT_MS_MAX = 30_000
SYNC_WAITS_MAX = 100_000
"""The most waits of one node; further ones fail in the next turn."""

Synced = Callable[[bool], None]


class _Wait:
    __slots__ = ("end_offset", "since_ms", "then")

    def __init__(self, end_offset: int, since_ms: float, then: Synced) -> None:
        self.end_offset = end_offset
        self.since_ms = since_ms
        self.then = then


class Syncs:
    def __init__(self, timers: Timers, flush: Callable[[Replica], None]) -> None:
        self._timers = timers
        self._flush = flush
        self._waits: dict[Replica, list[_Wait]] = {}
        self._count = 0
        self._watching = False

    def when_synced(self, partition: Replica, end_offset: int, then: Synced) -> None:
        """Call `then` in a later turn, with True once everything below `end_offset` is synced, or with False."""
        if self._count >= SYNC_WAITS_MAX:
            self._timers.next_turn(lambda: then(False))
            return
        self._count += 1
        wait = _Wait(end_offset, self._timers.now_ms(), then)
        self._waits.setdefault(partition, []).append(wait)
        if not self._watching:
            self._watching = True
            self._timers.after(SYNC_WAIT_MS_MAX, self._give_up_late)

    def end_turn(self) -> None:
        """End the waits that can end, and start the missing flushes; called after the writes of a turn."""
        if self._waits:
            for partition in tuple(self._waits):
                self._look_at(partition)

    def _look_at(self, partition: Replica) -> None:
        log = partition.log
        if not partition.serves or log.failed or log.closed:
            self._end(partition, lambda wait: True, synced=False)
            return
        # A failed write has taken its batches back, so the wait is for what remains below.
        end_offset, synced_offset = log.staged_end_offset, log.synced_offset
        self._end(partition, lambda wait: min(wait.end_offset, end_offset) <= synced_offset, synced=True)
        if partition in self._waits and not log.flush_deferred:  # else housekeeping retries after a pause
            self._flush(partition)

    def _end(self, partition: Replica, is_over: Callable[[_Wait], bool], *, synced: bool) -> None:
        waits = self._waits[partition]
        left = [wait for wait in waits if not is_over(wait)]
        if len(left) == len(waits):
            return
        ended = [wait for wait in waits if is_over(wait)]
        if left:
            self._waits[partition] = left
        else:
            del self._waits[partition]
        self._count -= len(ended)
        self._timers.next_turn(lambda: [wait.then(synced) for wait in ended])

    def _give_up_late(self) -> None:
        before_ms = self._timers.now_ms() - SYNC_WAIT_MS_MAX
        for partition in tuple(self._waits):
            self._end(partition, lambda wait: wait.since_ms <= before_ms, synced=False)
        self._watching = bool(self._waits)
        if self._waits:
            first_ms = min(waits[0].since_ms for waits in self._waits.values())
            self._timers.at(first_ms + SYNC_WAIT_MS_MAX, self._give_up_late)
