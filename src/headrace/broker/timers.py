"""Timers of the loop: a heap of deadlines on the monotonic clock."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import inf

from headrace.ports.clock import Clock

CANCELLED_KEPT_MIN = 64
"""Number of cancelled timers below which removing them from the heap is not worth the effort."""


class Timer:
    """The call to make; None once it was made or cancelled. A cancelled timer keeps nothing else alive."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], object]) -> None:
        self.call: Callable[[], object] | None = call


class Timers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Timer]] = []
        self._sequence = 0
        self._cancelled = 0
        self._this_turn: list[Callable[[], object]] = []
        self._next_turn: list[Callable[[], object]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def now_ms(self) -> float:
        return self._clock.monotonic_ms()

    def next_turn(self, call: Callable[[], object]) -> None:
        """Call in the next turn, after other work had its chance."""
        self._next_turn.append(call)

    def at(self, deadline_ms: float, call: Callable[[], object]) -> Timer:
        self._sequence += 1
        timer = Timer(call)
        heappush(self._heap, (deadline_ms, self._sequence, timer))
        return timer

    def after(self, delay_ms: float, call: Callable[[], object]) -> Timer:
        return self.at(self._clock.monotonic_ms() + delay_ms, call)

    def cancel(self, timer: Timer) -> None:
        """Cancel the timer; no effect if it was called already."""
        if timer.call is None:
            return
        timer.call = None
        self._cancelled += 1
        # Most waits end long before their deadline: without this the heap would keep all of the last minutes.
        if self._cancelled > max(CANCELLED_KEPT_MIN, len(self._heap) // 2):
            self._heap = [entry for entry in self._heap if entry[2].call is not None]
            heapify(self._heap)
            self._cancelled = 0

    def wait_ms(self, now_ms: float) -> float:
        """Return how long the loop may sleep; negative when there is no timer."""
        if self._this_turn or self._next_turn:
            return 0.0
        if not self._heap:
            return -1.0
        return max(0.0, self._heap[0][0] - now_ms)

    def run_due(self, now_ms: float, until_ms: float = inf) -> None:
        """Make the calls that are due, then those of `next_turn`, until that time, and at least one of each kind."""
        clock = self._clock
        while self._heap and self._heap[0][0] <= now_ms:
            timer = heappop(self._heap)[2]
            call, timer.call = timer.call, None
            if call is None:
                self._cancelled -= 1
                continue
            call()
            if clock.monotonic_ms() >= until_ms:
                break
        calls = self._this_turn
        self._this_turn, self._next_turn = self._next_turn, []
        calls.reverse()
        try:
            while calls:
                calls.pop()()
                if clock.monotonic_ms() >= until_ms:
                    break
        finally:
            # An error in one call does not prevent the others, nor does the end of the turn's time.
            self._this_turn[:0] = reversed(calls)
