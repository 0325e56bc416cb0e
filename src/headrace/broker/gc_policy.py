"""Full garbage collections of the process, when they hold up nobody.

Nearly everything here is freed by its last reference. Young objects are collected as Python does it, which takes a
fraction of a millisecond. A full collection looks at every object there is, 130 ms of the loop with 4,000 partitions,
so it does not come by itself: it is made when the loop has little to do, and once in a while if it never has.
"""

import gc

from headrace.broker.metrics import Metrics
from headrace.broker.timers import Timers

LOOK_INTERVAL_MS = 1_000
QUIET_SHARE_MAX = 0.02
"""Of the time since the last look in which the loop worked: below it the loop counts as idle."""
COLLECTION_INTERVAL_MS = 600_000
COLLECTION_OVERDUE_MS = 3_600_000
"""After so long a loop that is never idle collects all the same."""

_NEVER = 1_000_000_000


class GcPolicy:
    def __init__(self, *, timers: Timers, metrics: Metrics) -> None:
        self._timers = timers
        self._metrics = metrics
        self._collected_ms = timers.now_ms()
        self._worked_ms = metrics.turns.sum

    def begin(self) -> None:
        """What lives now lives as long as the node: no collection looks at it again."""
        gc.collect()
        gc.freeze()
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, _NEVER)
        self._timers.after(LOOK_INTERVAL_MS, self._look)

    def _look(self) -> None:
        self._timers.after(LOOK_INTERVAL_MS, self._look)
        worked_ms, self._worked_ms = self._metrics.turns.sum - self._worked_ms, self._metrics.turns.sum
        since_ms = self._timers.now_ms() - self._collected_ms
        is_idle = worked_ms < QUIET_SHARE_MAX * LOOK_INTERVAL_MS
        if since_ms >= COLLECTION_OVERDUE_MS or (is_idle and since_ms >= COLLECTION_INTERVAL_MS):
            gc.collect()
            self._collected_ms = self._timers.now_ms()
