"""Delays logins after failed ones, by user and address: guessing is slow, and users at other addresses do not wait."""

from headrace.model.limits import (
    LOGIN_FAILURES_FORGOTTEN_MS,
    LOGIN_FAILURES_FREE,
    LOGIN_FAILURES_KEPT_MAX,
    LOGIN_INTERVAL_MS_MAX,
    LOGIN_INTERVAL_MS_MIN,
    LOGIN_WAIT_MS_MAX,
)


class _Failures:
    __slots__ = ("count", "last_ms", "next_ms")

    def __init__(self) -> None:
        self.count = 0
        self.last_ms = 0.0
        self.next_ms = 0.0
        """The time at which the next login may be answered."""


class LoginThrottle:
    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], _Failures] = {}

    def wait_ms(self, user: str, address: str, now_ms: float) -> float | None:
        """Return how long the response to a login has to wait; None if too many wait already, so that it is refused.

        The login takes its place in the queue: the next one of this user and address waits longer.
        """
        found = self._failures.get((user, address))
        if found is None or found.count < LOGIN_FAILURES_FREE:
            return 0.0
        if now_ms - max(found.last_ms, found.next_ms) > LOGIN_FAILURES_FORGOTTEN_MS:
            del self._failures[user, address]
            return 0.0
        wait_ms = max(0.0, found.next_ms - now_ms)
        if wait_ms > LOGIN_WAIT_MS_MAX:
            return None
        interval_ms = LOGIN_INTERVAL_MS_MIN * 2 ** min(found.count - LOGIN_FAILURES_FREE, 16)
        found.next_ms = max(now_ms, found.next_ms) + min(interval_ms, LOGIN_INTERVAL_MS_MAX)
        return wait_ms

    def failed(self, user: str, address: str, now_ms: float) -> None:
        found = self._failures.pop((user, address), None)
        if found is None:
            found = _Failures()
            if len(self._failures) >= LOGIN_FAILURES_KEPT_MAX:
                del self._failures[next(iter(self._failures))]  # the one that failed least recently
        found.count += 1
        found.last_ms = now_ms
        self._failures[user, address] = found

    def succeeded(self, user: str, address: str) -> None:
        self._failures.pop((user, address), None)
