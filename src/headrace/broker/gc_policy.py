"""Full garbage collections of the process, at times when no request waits.

Nearly every object is freed with its last reference. Young objects are collected as usual in Python, which takes a
fraction of a millisecond. A full collection visits every object, which takes 130 ms of the loop with 4,000
partitions. So it does not run by itself: it runs when the loop has little to do, and from time to time if the loop is
never idle.
"""

import gc

from headrace.broker.metrics import Metrics
from headrace.broker.timers import Timers

CHECK_INTERVAL_MS = 1_000
QUIET_SHARE_MAX = 0.02
"""Share of the time since the last check that the loop worked: below it the loop counts as idle."""
COLLECTION_INTERVAL_MS = 600_000
COLLECTION_OVERDUE_MS = 3_600_000
"""Time after which a loop that is never idle collects all the same."""

_NEVER = 1_000_000_000


class GcPolicy:
    def __init__(self, *, timers: Timers, metrics: Metrics) -> None:
        self._timers = timers
        self._metrics = metrics
        self._collected_ms = timers.now_ms()
        self._worked_ms = metrics.turns.sum

    def begin(self) -> None:
        """Exclude the objects of the started node from collections, because they live as long as the node."""
        gc.collect()
        gc.freeze()
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, _NEVER)
        self._timers.after(CHECK_INTERVAL_MS, self._check)

    def _check(self) -> None:
        self._timers.after(CHECK_INTERVAL_MS, self._check)
        worked_ms, self._worked_ms = self._metrics.turns.sum - self._worked_ms, self._metrics.turns.sum
        since_ms = self._timers.now_ms() - self._collected_ms
        is_idle = worked_ms < QUIET_SHARE_MAX * CHECK_INTERVAL_MS
        if since_ms >= COLLECTION_OVERDUE_MS or (is_idle and since_ms >= COLLECTION_INTERVAL_MS):
            gc.collect()
            self._collected_ms = self._timers.now_ms()
