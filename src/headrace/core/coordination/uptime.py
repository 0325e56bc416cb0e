"""Elapsed time of a coordinator that no jump of the wall clock can change.

The uptime of a coordinator is the time for which its partition was led, on any node, over all restarts. Records carry
it: a coordinator that is loaded continues from the largest uptime that its log holds. Time without a coordinator counts
zero. A checkpoint record is written every minute, so that a restart loses at most a minute.
"""

from headrace.core.coordination.machine import Now

UPTIME_CHECKPOINT_MS = 60_000


class Uptime:
    def __init__(self) -> None:
        self._recorded_ms = 0
        self._loaded_at_ms: float | None = None

    def replayed(self, uptime_ms: int) -> None:
        """Note the uptime of a record; those that the running coordinator writes change nothing."""
        if self._loaded_at_ms is None:
            self._recorded_ms = max(self._recorded_ms, uptime_ms)

    def loaded(self, now: Now) -> None:
        self._loaded_at_ms = now.monotonic_ms

    def at(self, now: Now) -> int:
        running_ms = 0.0 if self._loaded_at_ms is None else now.monotonic_ms - self._loaded_at_ms
        return self._recorded_ms + int(running_ms)
