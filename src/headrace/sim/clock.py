"""Virtual time: it advances only when the driver advances it, and each machine has its own clocks."""

WALL_START_MS = 1_700_000_000_000


class VirtualTime:
    """Milliseconds that the world has run."""

    __slots__ = ("now_ms",)

    def __init__(self) -> None:
        self.now_ms = 0.0

    def advance(self, duration_ms: float) -> None:
        assert duration_ms >= 0, "time does not run backwards"
        self.now_ms += duration_ms


class VirtualClock:
    """One machine's clocks: each has its own offset and rate, and the wall clock can be set."""

    __slots__ = (
        "_monotonic_rate",
        "_monotonic_set_at_ms",
        "_monotonic_set_to_ms",
        "_time",
        "_wall_rate",
        "_wall_set_at_ms",
        "_wall_set_to_ms",
    )

    def __init__(
        self, time: VirtualTime, *, monotonic_start_ms: float = 0.0, wall_start_ms: int = WALL_START_MS
    ) -> None:
        self._time = time
        self._monotonic_set_to_ms = monotonic_start_ms
        self._monotonic_set_at_ms = 0.0
        self._monotonic_rate = 1.0
        self._wall_set_to_ms = wall_start_ms
        self._wall_set_at_ms = 0.0
        self._wall_rate = 1.0

    def monotonic_ms(self) -> float:
        return self._monotonic_set_to_ms + (self._time.now_ms - self._monotonic_set_at_ms) * self._monotonic_rate

    def wall_ms(self) -> int:
        return self._wall_set_to_ms + int((self._time.now_ms - self._wall_set_at_ms) * self._wall_rate)

    def jump_wall(self, by_ms: int) -> None:
        """Set the wall clock of this machine; the monotonic clock is not affected."""
        self._wall_set_to_ms += by_ms

    def drift_wall(self, rate: float) -> None:
        """Let the wall clock of this machine run at this multiple of the real rate from now on."""
        self._wall_set_to_ms, self._wall_set_at_ms = self.wall_ms(), self._time.now_ms
        self._wall_rate = rate

    def drift_monotonic(self, rate: float) -> None:
        """Let the monotonic clock of this machine run at this multiple of the real rate from now on."""
        self._monotonic_set_to_ms, self._monotonic_set_at_ms = self.monotonic_ms(), self._time.now_ms
        self._monotonic_rate = rate
