"""The Clock port: the current time on two clocks that must not be confused."""

from typing import Protocol


class Clock(Protocol):
    def monotonic_ms(self) -> float:
        """Return the monotonic time, for sessions, deadlines and waits: it never jumps."""

    def wall_ms(self) -> int:
        """Return the wall clock, for timestamps, retention and expiry ages only: it may jump either way ("Clocks" in
        docs/guarantees.md).
        """
