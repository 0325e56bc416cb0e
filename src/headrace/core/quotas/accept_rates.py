"""Rates of new connections: of the broker, of each listener and of each address (KIP-612).

A broker or a listener beyond its rate accepts later: connections wait in the system's queue. An address beyond its rate
has its connections accepted and closed, so that it does not delay others.
"""

from collections.abc import Mapping

from headrace.core.quotas.bucket import Bucket
from headrace.core.quotas.entities import IP, QuotaTable, quota_of_address
from headrace.model.limits import QUOTA_ADDRESSES_MAX

CLOSED_AGAIN_MS = 1_000
"""Time after which a rate of 0 is looked at again."""


class _Rate:
    """A rate per second that may be 0, or unlimited."""

    __slots__ = ("_bucket", "_rate")

    def __init__(self) -> None:
        self._rate: float | None = None
        self._bucket: Bucket | None = None

    def set(self, rate: float | None, *, window_s: float, now_ms: float) -> None:
        if rate == self._rate:
            return
        self._rate = rate
        if not rate:
            self._bucket = None
        elif self._bucket is None:
            self._bucket = Bucket(rate, window_s=window_s, now_ms=now_ms)
        else:
            self._bucket.set_rate(rate, window_s=window_s, now_ms=now_ms)

    def wait_ms(self, now_ms: float) -> float:
        if self._bucket is None:
            return 0.0 if self._rate is None else CLOSED_AGAIN_MS
        return self._bucket.debt_ms(now_ms)

    def count(self, now_ms: float) -> None:
        if self._bucket is not None:
            self._bucket.charge(1, now_ms)


class AcceptRates:
    def __init__(self) -> None:
        self._window_s = 1.0
        self._broker = _Rate()
        self._listeners: dict[str, _Rate] = {}
        self._addresses: dict[str, _Rate] = {}
        self._quotas: QuotaTable | None = None
        """None while no address has a quota."""

    def configure(
        self, rate: float | None, of_listeners: Mapping[str, float | None], *, window_s: float, now_ms: float
    ) -> None:
        """Set the rates of the broker and of its listeners, by name; None is no limit."""
        self._window_s = window_s
        self._broker.set(rate, window_s=window_s, now_ms=now_ms)
        for name, listener_rate in of_listeners.items():
            self._listeners.setdefault(name, _Rate()).set(listener_rate, window_s=window_s, now_ms=now_ms)

    def follow(self, quotas: QuotaTable) -> None:
        """Set the rates of addresses."""
        has_any = any(kind == IP for entity in quotas for kind, _name in entity)
        self._quotas = quotas if has_any else None
        self._addresses.clear()

    def wait_ms(self, listener: str, now_ms: float) -> float:
        """Return for how long the listener may not accept another connection."""
        own = self._listeners.get(listener)
        return max(self._broker.wait_ms(now_ms), 0.0 if own is None else own.wait_ms(now_ms))

    def accepted(self, listener: str, now_ms: float) -> None:
        self._broker.count(now_ms)
        own = self._listeners.get(listener)
        if own is not None:
            own.count(now_ms)

    def admit(self, address: str, now_ms: float) -> float:
        """Count a connection of the address; return for how long the address may open no more, and count nothing, if
        it is beyond its rate.
        """
        if self._quotas is None:
            return 0.0
        rate = self._addresses.get(address)
        if rate is None:
            if len(self._addresses) >= QUOTA_ADDRESSES_MAX:
                del self._addresses[next(iter(self._addresses))]
            rate = self._addresses[address] = _Rate()
            rate.set(quota_of_address(self._quotas, address), window_s=self._window_s, now_ms=now_ms)
        wait_ms = rate.wait_ms(now_ms)
        if not wait_ms:
            rate.count(now_ms)
        return wait_ms
