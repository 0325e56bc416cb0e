"""Things to do later, on the loop: a heap of deadlines on the monotonic clock."""

from collections.abc import Callable
from heapq import heappop, heappush

from headrace.ports.clock import Clock


class Timers:
    """A timer is not cancelled: what it calls finds that there is nothing left to do."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Callable[[], object]]] = []
        self._sequence = 0
        self._this_turn: list[Callable[[], object]] = []
        self._next_turn: list[Callable[[], object]] = []

    def next_turn(self, call: Callable[[], object]) -> None:
        """Go on in the next turn, after others had theirs."""
        self._next_turn.append(call)

    def at(self, deadline_ms: float, call: Callable[[], object]) -> None:
        self._sequence += 1
        heappush(self._heap, (deadline_ms, self._sequence, call))

    def after(self, delay_ms: float, call: Callable[[], object]) -> None:
        self.at(self._clock.monotonic_ms() + delay_ms, call)

    def wait_ms(self, now_ms: float) -> float:
        """How long the loop may sleep; negative when there is nothing to wait for."""
        if self._this_turn or self._next_turn:
            return 0.0
        if not self._heap:
            return -1.0
        return max(0.0, self._heap[0][0] - now_ms)

    def run_due(self, now_ms: float) -> None:
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            heappop(heap)[2]()
        calls, self._this_turn, self._next_turn = self._this_turn, self._next_turn, []
        for call in calls:
            call()
