"""A clock that a test moves from deadline to deadline, for the harnesses of coordinators' machines."""

from headrace.core.coordination.machine import Now

WALL_START_MS = 1_700_000_000_000


class Ticket:
    def __init__(self, name, kind):
        self.name = name
        self.kind = kind


class PassingTime:
    """Of a harness with a `machine` and a `run`; it keeps what it was answered in `outcomes`."""

    def __init__(self):
        self.monotonic_ms = 1_000.0
        self.wall_ms = WALL_START_MS
        self.outcomes = []

    def now(self):
        return Now(self.monotonic_ms, self.wall_ms)

    def wait(self, duration_ms):
        """Let time pass, from deadline to deadline."""
        end_ms = self.monotonic_ms + duration_ms
        while True:
            due_ms = self.machine.next_deadline_ms()
            if due_ms is None or due_ms > end_ms:
                break
            self._pass(max(due_ms - self.monotonic_ms, 0))
            self.run(lambda machine, now: machine.expire(now))
        self._pass(end_ms - self.monotonic_ms)

    def _pass(self, duration_ms):
        self.monotonic_ms += duration_ms
        self.wall_ms += int(duration_ms)

    def take_outcomes(self):
        outcomes, self.outcomes = self.outcomes, []
        return outcomes
