"""Health of compaction for operators: the partitions that wait for a pass, those that fail, and for how long.

A partition whose pass failed rests before the next one, longer after each failure, so that others get their passes.
So does one whose segments retention deleted during the pass, which is not a failure.
"""

from collections.abc import Callable, Iterable, Iterator

from headrace.broker.compaction_pass import CompactionPass
from headrace.broker.metrics import Family
from headrace.broker.partitions.replica import Replica

REST_MS_MIN = 15_000
REST_MS_MAX = 600_000
"""Limits of the rest after a failed pass: it doubles after each failure."""


class CompactionHealth:
    def __init__(self, now_ms: Callable[[], float]) -> None:
        self._now_ms = now_ms
        self._due_since: dict[Replica, float] = {}
        self._failing: dict[Replica, int] = {}
        """Number of failed passes in a row, by partition."""
        self._rests_until_ms: dict[Replica, float] = {}
        self.uncleanable: dict[Replica, str] = {}
        """Partitions that compaction gave up on, and the reason."""

    def checked(self, partition: Replica, *, is_due: bool) -> None:
        if is_due:
            self._due_since.setdefault(partition, self._now_ms())
        else:
            self._due_since.pop(partition, None)

    def forget(self, partition: Replica) -> None:
        """Note that a pass succeeded, or that none is needed any more."""
        for known in (self._due_since, self._failing, self._rests_until_ms, self.uncleanable):
            known.pop(partition, None)

    def failed(self, partition: Replica) -> None:
        times = self._failing.get(partition, 0)
        self._failing[partition] = times + 1
        self._rests_until_ms[partition] = self._now_ms() + min(REST_MS_MIN * 2 ** min(times, 16), REST_MS_MAX)

    def had_no_result(self, partition: Replica) -> None:
        """Note that the log changed during the pass."""
        self._rests_until_ms[partition] = self._now_ms() + REST_MS_MIN

    def wake(self, partition: Replica) -> None:
        """Let the partition have a pass at once."""
        self._rests_until_ms.pop(partition, None)

    def rests(self, partition: Replica) -> bool:
        """Return whether the partition is not compacted for now because its last pass achieved nothing."""
        return self._now_ms() < self._rests_until_ms.get(partition, 0.0)

    def forget_offline(self) -> None:
        """Forget partitions that were deleted, or whose directory failed."""
        for partition in {*self._due_since, *self._failing, *self._rests_until_ms, *self.uncleanable}:
            if partition.offline:
                self.forget(partition)

    def families(self, running: Iterable[CompactionPass]) -> Iterator[Family]:
        now_ms, passes = self._now_ms(), tuple(running)
        waiting = self._due_since.keys() - {each.partition for each in passes}
        gauges = (
            ("running", "Partitions that are being compacted.", len(passes)),
            ("waiting_partitions", "Partitions that are due for compaction and are not being compacted.", len(waiting)),
            ("failing_partitions", "Partitions whose last pass failed; they are tried again.", len(self._failing)),
            ("uncleanable_partitions", "Partitions that compaction gave up on.", len(self.uncleanable)),
            (
                "due_seconds_max",
                "How long the partition that waits longest for the end of a pass has been due.",
                _seconds_since(self._due_since.values(), now_ms),
            ),
            (
                "idle_seconds_max",
                "How long ago the running pass that has been silent longest made progress.",
                _seconds_since((each.progressed_ms for each in passes), now_ms),
            ),
        )
        for name, help_text, value in gauges:
            yield Family(f"headrace_compaction_{name}", "gauge", help_text, (((), value),))


def _seconds_since(times_ms: Iterable[float], now_ms: float) -> float:
    return max((now_ms - time_ms for time_ms in times_ms), default=0.0) / 1000
