"""Named deadlines: each name has at most one deadline, which can be moved or dropped cheaply at any time.

Heartbeats move deadlines far more often than one expires, so moving a deadline to a later time only updates a
dictionary; the heap is corrected when the earlier entry reaches its top.
"""

from collections.abc import Hashable, Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)


class Deadlines(Generic[Name]):
    __slots__ = ("_due_ms", "_heap", "_queued_ms", "_sequence")

    def __init__(self) -> None:
        self._due_ms: dict[Name, float] = {}
        self._queued_ms: dict[Name, float] = {}
        """The earliest heap entry of each name."""
        self._heap: list[tuple[float, int, Name]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._due_ms)

    def set(self, name: Name, due_ms: float) -> None:
        self._due_ms[name] = due_ms
        queued_ms = self._queued_ms.get(name)
        if queued_ms is None or due_ms < queued_ms:
            self._queue(name, due_ms)

    def drop(self, name: Name) -> None:
        self._due_ms.pop(name, None)

    def due_ms(self, name: Name) -> float | None:
        return self._due_ms.get(name)

    def next_ms(self) -> float | None:
        """Return a time that is not later than the first deadline; earlier if that one was moved or dropped."""
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_ms: float, count_max: int) -> Iterator[Name]:
        """Yield the names of expired deadlines, the earliest first, and drop each one."""
        for _ in range(count_max):
            if not self._heap or self._heap[0][0] > now_ms:
                return
            queued_ms, _, name = heappop(self._heap)
            if self._queued_ms.get(name) != queued_ms:
                continue  # an earlier entry has replaced this one
            del self._queued_ms[name]
            due_ms = self._due_ms.get(name)
            if due_ms is None:
                continue
            if due_ms > now_ms:
                self._queue(name, due_ms)
                continue
            del self._due_ms[name]
            yield name

    def _queue(self, name: Name, due_ms: float) -> None:
        self._sequence += 1
        self._queued_ms[name] = due_ms
        heappush(self._heap, (due_ms, self._sequence, name))
