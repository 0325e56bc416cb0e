"""The remaining restarts of a run: failures count within a window, and healthy batches clear them."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.spark.pipelines.definition import Restart

HEALTHY_BATCHES = 10
"""Batches without a failure between them after which all earlier failures are forgotten."""


@dataclass(slots=True)
class RestartBudget:
    policy: Restart
    now: Callable[[], float] = time.monotonic
    _failures: deque[float] = field(default_factory=deque)
    _healthy: int = 0

    def note_batch(self) -> None:
        self._healthy += 1
        if self._healthy >= HEALTHY_BATCHES:
            self._failures.clear()

    def take(self) -> int | None:
        """Note a failure; return the number of the restart that follows, or None if the attempts are used up."""
        now = self.now()
        self._healthy = 0
        while self._failures and now - self._failures[0] > self.policy.window_ms / 1000:
            self._failures.popleft()
        if len(self._failures) >= self.policy.attempts:
            return None
        self._failures.append(now)
        return len(self._failures)

    def text(self, number: int, said: str) -> str:
        """Return the announcement of a restart."""
        wait = self.policy.backoff_ms / 1000
        return f"restart {number} of {self.policy.attempts} in {wait:g} s after: {said}"
