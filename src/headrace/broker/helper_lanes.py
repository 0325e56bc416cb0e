"""Monitoring of the helper lanes: the operations that wait in each, and the lanes that are stuck."""

from collections.abc import Iterator

from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Family
from headrace.broker.timers import Timers
from headrace.model.limits import LANE_STUCK_MS
from headrace.ports.spawner import Lane, Spawner

CHECK_INTERVAL_MS = 5_000
"""Interval between checks."""


class LaneWatch:
    def __init__(self, *, spawner: Spawner, timers: Timers, logger: NodeLogger) -> None:
        self._spawner = spawner
        self._timers = timers
        self._logger = logger
        self._stuck: set[Lane] = set()

    def start(self) -> None:
        self._timers.after(CHECK_INTERVAL_MS, self.start)
        for lane, in_flight, longest_ms in self._spawner.lanes():
            is_stuck = longest_ms >= LANE_STUCK_MS
            if is_stuck and lane not in self._stuck:
                self._stuck.add(lane)
                self._logger.warning(
                    "a helper thread is stuck; check whether the disk responds, and restart the broker if not",
                    lane=lane.label,
                    seconds=int(longest_ms / 1000),
                    operations=in_flight,
                )
            elif not is_stuck and lane in self._stuck:
                self._stuck.remove(lane)
                self._logger.warning("a helper thread that was stuck continues", lane=lane.label, operations=in_flight)

    def families(self) -> Iterator[Family]:
        states = self._spawner.lanes()
        yield Family(
            "headrace_helper_operations",
            "gauge",
            "Operations that helper threads work on or that wait for one, by lane.",
            tuple(((("lane", state.lane.label),), state.in_flight) for state in states),
        )
        yield Family(
            "headrace_helper_longest_seconds",
            "gauge",
            "How long the oldest operation under way has been, by lane.",
            tuple(((("lane", state.lane.label),), round(state.longest_ms / 1000, 3)) for state in states),
        )
        yield Family(
            "headrace_helper_stuck",
            "gauge",
            f"1 while an operation of the lane has been under way for {LANE_STUCK_MS // 1000} s or more.",
            tuple(((("lane", state.lane.label),), int(state.longest_ms >= LANE_STUCK_MS)) for state in states),
        )
