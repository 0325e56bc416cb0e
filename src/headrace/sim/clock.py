"""Virtual time: it moves only when the driver moves it, and each machine has its own idea of it."""

WALL_START_MS = 1_700_000_000_000


class VirtualTime:
    """How many milliseconds the world has run."""

    __slots__ = ("now_ms",)

    def __init__(self) -> None:
        self.now_ms = 0.0

    def advance(self, duration_ms: float) -> None:
        assert duration_ms >= 0, "time does not run backwards"
        self.now_ms += duration_ms


class VirtualClock:
    """One machine's clocks: both have an offset of their own, and the wall clock can be set or run at a wrong rate."""

    __slots__ = ("_monotonic_start_ms", "_time", "_wall_rate", "_wall_set_at_ms", "_wall_set_to_ms")

    def __init__(
        self, time: VirtualTime, *, monotonic_start_ms: float = 0.0, wall_start_ms: int = WALL_START_MS
    ) -> None:
        self._time = time
        self._monotonic_start_ms = monotonic_start_ms
        self._wall_set_to_ms = wall_start_ms
        self._wall_set_at_ms = 0.0
        self._wall_rate = 1.0

    def monotonic_ms(self) -> float:
        return self._monotonic_start_ms + self._time.now_ms

    def wall_ms(self) -> int:
        return self._wall_set_to_ms + int((self._time.now_ms - self._wall_set_at_ms) * self._wall_rate)

    def jump_wall(self, by_ms: int) -> None:
        """Somebody sets the clock of this machine; the monotonic one does not notice."""
        self._wall_set_to_ms += by_ms

    def drift_wall(self, rate: float) -> None:
        """From now on the wall clock of this machine runs so many times as fast as time does."""
        self._wall_set_to_ms, self._wall_set_at_ms = self.wall_ms(), self._time.now_ms
        self._wall_rate = rate
