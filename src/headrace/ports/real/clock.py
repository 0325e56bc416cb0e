"""The machine's clocks behind the Clock port."""

import time

MILLISECONDS_PER_SECOND = 1000.0
NANOSECONDS_PER_MILLISECOND = 1_000_000


class RealClock:
    __slots__ = ()

    def monotonic_ms(self) -> float:
        return time.monotonic() * MILLISECONDS_PER_SECOND

    def wall_ms(self) -> int:
        return time.time_ns() // NANOSECONDS_PER_MILLISECOND
