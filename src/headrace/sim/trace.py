"""The trace of a run: one line per event, chained into a hash that equal runs share, and counts of faults."""

import hashlib
from collections import Counter, deque
from collections.abc import Callable

TAIL_LINES_MAX = 200


class Trace:
    __slots__ = ("_chain", "events", "met", "show", "tail")

    def __init__(self) -> None:
        self._chain = hashlib.blake2b(digest_size=16)
        self.events = 0
        self.tail: deque[str] = deque(maxlen=TAIL_LINES_MAX)
        """The last lines, for the report of a failed run."""
        self.met: Counter[str] = Counter()
        """The number of times each fault actually happened, which may differ from the plan."""
        self.show: Callable[[str], object] | None = None

    def record(self, line: str) -> None:
        self.events += 1
        self.tail.append(line)
        self._chain.update(line.encode() + b"\n")
        if self.show is not None:
            self.show(line)

    def count_fault(self, fault: str, times: int = 1) -> None:
        self.met[fault] += times

    @property
    def hash(self) -> str:
        return self._chain.hexdigest()
