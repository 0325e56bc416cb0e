"""Broker addresses: the candidates for a call to any broker, and those in back-off.

An address that refuses a connection is avoided for a growing, randomised back-off. Addresses that never refused come
first, so that the bootstrap servers are tried when no known broker can be reached.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from headrace.client.core.cluster import Cluster
from headrace.client.core.link import Address
from headrace.client.errors import BrokerUnreachable, ClientError

RECONNECT_BACKOFF_MS = 50
RECONNECT_BACKOFF_MS_MAX = 1_000
JITTER_PER_MILLE = 200
"""Jitter of a back-off, in both directions."""


class _Refusal(NamedTuple):
    retry_ms: float
    backoff_ms: float
    error: ClientError


class Addresses:
    """The addresses that one client knows."""

    def __init__(
        self,
        cluster: Cluster,
        bootstrap: Sequence[Address],
        *,
        choose: Callable[[int], int] | None,
        tell: Callable[[str], object] | None,
    ) -> None:
        """`choose` and `tell` are those of `Links`."""
        assert bootstrap, "at least one bootstrap server is needed"
        self._cluster = cluster
        self._choose = choose
        self._tell = tell
        first = choose(len(bootstrap)) if choose is not None else 0
        self._bootstrap = (*bootstrap[first:], *bootstrap[:first])
        self._refusals: dict[Address, _Refusal] = {}
        self.failures_count = 0

    def of(self, node: int) -> Address:
        broker = self._cluster.brokers.get(node)
        if broker is None:
            raise BrokerUnreachable(f"the address of broker {node} is not known: the broker may be down")
        return Address(broker.host, broker.port)

    def all(self) -> list[Address]:
        """Return every address that a call for any broker may use."""
        known = [Address(broker.host, broker.port) for broker in self._cluster.brokers.values()]
        return list(dict.fromkeys([*known, *self._bootstrap]))

    def usable(self, now_ms: float) -> list[Address]:
        """Return the addresses that are not in back-off, those that never refused first."""
        return sorted((each for each in self.all() if self._retry_ms(each) <= now_ms), key=self._retry_ms)

    def next(self, now_ms: float) -> Address:
        """Return the best address to connect to; if all are in back-off, raise the error of the one that is due
        first.
        """
        return next(iter(self.usable(now_ms)), None) or min(self.all(), key=self._retry_ms)

    def check(self, address: Address, now_ms: float) -> None:
        """Raise the error of the address if it is in back-off."""
        refusal = self._refusals.get(address)
        if refusal is not None and refusal.retry_ms > now_ms:
            raise refusal.error

    def refuse(self, address: Address, error: ClientError, now_ms: float) -> ClientError:
        """Put the address into back-off; return the error."""
        before = self._refusals.get(address)
        self.failures_count += 1
        if before is None and self._tell is not None:
            self._tell(f"{error}; trying again")
        backoff_ms = min(before.backoff_ms * 2, RECONNECT_BACKOFF_MS_MAX) if before else RECONNECT_BACKOFF_MS
        spread = 1 + (self._choose(2 * JITTER_PER_MILLE) - JITTER_PER_MILLE) / 1000 if self._choose is not None else 1
        self._refusals[address] = _Refusal(now_ms + backoff_ms * spread, backoff_ms, error)
        return error

    def reached(self, address: Address) -> None:
        """Note that the address responds: its back-off ends."""
        if self._refusals.pop(address, None) is not None and self._tell is not None:
            self._tell(f"{address} can be reached again")

    def _retry_ms(self, address: Address) -> float:
        refusal = self._refusals.get(address)
        return refusal.retry_ms if refusal is not None else 0.0
