"""When the keys of an identity provider are fetched: at intervals, sooner after a failure, and for an unknown key."""

from math import inf
from typing import NamedTuple

from headrace.model.limits import TOKEN_KEYS_UNKNOWN_INTERVAL_MS


class RefreshTimes(NamedTuple):
    interval_ms: float
    """From one fetch to the next."""
    retry_ms: float
    """After a failed fetch; it doubles with every further one."""
    retry_ms_max: float


class KeyRefresh:
    def __init__(self, times: RefreshTimes) -> None:
        self._times = times
        self._failures = 0
        self._began_ms = -inf
        self.fetching = False

    def began(self, now_ms: float) -> None:
        self.fetching = True
        self._began_ms = now_ms

    def succeeded(self) -> float:
        """Return the time until the next fetch."""
        self.fetching = False
        self._failures = 0
        return self._times.interval_ms

    def failed(self) -> float:
        """Return the time until the next fetch."""
        self.fetching = False
        wait_ms: float = self._times.retry_ms * 2 ** min(self._failures, 30)
        self._failures += 1
        return min(wait_ms, self._times.retry_ms_max)

    def may_bring_unknown(self, now_ms: float) -> bool:
        """Return whether a fetch that is under way, or one that may begin now, could bring the key of a token.

        Tokens can name any key, so that they begin a fetch at most every TOKEN_KEYS_UNKNOWN_INTERVAL_MS.
        """
        return self.fetching or now_ms - self._began_ms >= TOKEN_KEYS_UNKNOWN_INTERVAL_MS
