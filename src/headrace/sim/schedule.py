"""Calls that are due at a later virtual time."""

from collections.abc import Callable
from heapq import heappop, heappush

from headrace.sim.clock import VirtualTime


class Schedule:
    """Calls of one moment run in the order in which they were planned."""

    __slots__ = ("_heap", "_planned", "_time")

    def __init__(self, time: VirtualTime) -> None:
        self._time = time
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._planned = 0

    def after(self, delay_ms: float, call: Callable[[], None]) -> None:
        self._planned += 1
        heappush(self._heap, (self._time.now_ms + delay_ms, self._planned, call))

    def run_due(self) -> None:
        while self._heap and self._heap[0][0] <= self._time.now_ms:
            heappop(self._heap)[2]()

    def clear(self) -> None:
        self._heap.clear()
