"""What happened in a run: one line per event, chained into a hash that two equal runs share."""

import hashlib
from collections import deque

TAIL_LINES_MAX = 200


class Trace:
    __slots__ = ("_digest", "events", "tail")

    def __init__(self) -> None:
        self._digest = b""
        self.events = 0
        self.tail: deque[str] = deque(maxlen=TAIL_LINES_MAX)
        """The last lines, for the report of a failed run."""

    def record(self, line: str) -> None:
        self.events += 1
        self.tail.append(line)
        self._digest = hashlib.blake2b(self._digest + line.encode(), digest_size=16).digest()

    @property
    def hash(self) -> str:
        return self._digest.hex()
