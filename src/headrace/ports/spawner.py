"""The Spawner port: work that may wait is done elsewhere, and its end is an event of a later turn.

`operation` runs outside the loop (in production on a helper thread) and may touch only what it was handed: disk
handles and immutable values, never the node's state. `completed` runs on the loop, in a later turn, and gets the
result or the exception.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Spawner(Protocol):
    def submit(self, operation: Callable[[], T], completed: Callable[[T | None, BaseException | None], None]) -> None:
        """Queue `operation`; exactly one of the two arguments of `completed` tells how it ended."""

    def run_completions(self) -> int:
        """Called by the loop once per turn: call `completed` for what has ended; how many there were."""

    def in_flight(self) -> int:
        """Operations submitted whose completion has not run yet."""

    def close(self) -> None:
        """Wait for running operations; drop queued ones that have not started."""
