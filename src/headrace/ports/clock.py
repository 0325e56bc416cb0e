"""The Clock port: what time it is, on two clocks that must not be confused."""

from typing import Protocol


class Clock(Protocol):
    def monotonic_ms(self) -> float:
        """For sessions, deadlines and waits: never jumps."""

    def wall_ms(self) -> int:
        """For timestamps, retention and expiry ages only: may jump either way (promise G10)."""
