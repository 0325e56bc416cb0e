"""A bucket that fills at the rate of a quota, and may be in debt.

A charge is never refused: what a client has already sent or is about to read cannot be taken back. A charge that the
bucket does not hold creates a debt, and the client waits until the debt is paid. So the mean rate of clients that wait
is the rate of the quota, whatever the size of their requests and however many share the bucket.
"""

from headrace.model.limits import QUOTA_DEBT_MS_MAX


class Bucket:
    __slots__ = ("_capacity", "_level", "_rate_per_ms", "_updated_ms", "rate")

    def __init__(self, rate: float, *, window_s: float, now_ms: float) -> None:
        """`rate` is in units per second; a full bucket holds the units of `window_s`."""
        assert rate > 0
        self._updated_ms = now_ms
        self.rate = rate
        self._rate_per_ms = rate / 1_000
        self._capacity = self._level = rate * window_s

    @property
    def capacity(self) -> float:
        return self._capacity

    def set_rate(self, rate: float, *, window_s: float, now_ms: float) -> None:
        """Fill at another rate from now on; a debt stays, and is paid at the new rate."""
        self._refill(now_ms)
        self.rate = rate
        self._rate_per_ms = rate / 1_000
        self._capacity = rate * window_s
        self._level = min(self._level, self._capacity)

    def charge(self, amount: float, now_ms: float) -> float:
        """Take units out, and return for how many milliseconds the bucket is in debt then; 0.0 if it is not."""
        self._refill(now_ms)
        self._level = max(self._level - amount, -QUOTA_DEBT_MS_MAX * self._rate_per_ms)
        return 0.0 if self._level >= 0 else -self._level / self._rate_per_ms

    def give_back(self, amount: float) -> None:
        """Undo a charge."""
        self._level = min(self._level + amount, self._capacity)

    def debt_ms(self, now_ms: float) -> float:
        """Return for how many milliseconds the bucket is in debt."""
        return self.charge(0.0, now_ms)

    def is_full(self, now_ms: float) -> bool:
        """Return whether the bucket is as it was at first, so that nothing is lost with it."""
        self._refill(now_ms)
        return self._level >= self._capacity

    def _refill(self, now_ms: float) -> None:
        if now_ms > self._updated_ms:
            self._level = min(self._capacity, self._level + (now_ms - self._updated_ms) * self._rate_per_ms)
            self._updated_ms = now_ms
