"""The heap of events that orders a run of machines."""

from collections.abc import Callable
from heapq import heappop, heappush

Action = Callable[[], None]


class Agenda:
    """Actions by virtual time; those of one moment run in the order in which they were added."""

    __slots__ = ("_added", "_heap", "now_ms")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Action]] = []
        self._added = 0
        self.now_ms = 0.0

    def add(self, delay_ms: float, action: Action) -> None:
        self._added += 1
        heappush(self._heap, (self.now_ms + delay_ms, self._added, action))

    def run_next(self) -> None:
        self.now_ms, _, action = heappop(self._heap)
        action()
