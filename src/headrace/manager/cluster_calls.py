"""Calls to the cluster from the event loop: blocking clients for administration, each used by one thread at a time.

The operations that the command line and the manager share wait for their responses, so they run in threads.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from headrace.client import Admin
from headrace.client.errors import BrokerUnreachable, DeadlineExceeded
from headrace.manager.cluster_address import ClusterAddress
from headrace.manager.limits import ADMIN_CALLS_AT_ONCE_MAX, ADMIN_CALLS_WAITING_MAX, ADMIN_TIMEOUT_MS
from headrace.manager.problems import ApiProblem

T = TypeVar("T")


class ClusterCalls:
    """A pool of blocking clients; it connects when the first call is made."""

    def __init__(self, cluster: ClusterAddress, *, timeout_ms: int = ADMIN_TIMEOUT_MS) -> None:
        self._cluster = cluster
        self._timeout_ms = timeout_ms
        self._idle: list[Admin] = []
        self._limiter: CapacityLimiter | None = None
        self._is_closed = False

    async def run(self, call: Callable[[Admin], T]) -> T:
        """Return the result of `call`, which gets a client of its own for that time."""
        if self._limiter is None:
            self._limiter = CapacityLimiter(ADMIN_CALLS_AT_ONCE_MAX)
        if self._limiter.statistics().tasks_waiting >= ADMIN_CALLS_WAITING_MAX:
            raise ApiProblem(
                503, f"{ADMIN_CALLS_WAITING_MAX} requests wait for the cluster already: try again in a moment"
            )
        return await run_sync(partial(self._call, call), limiter=self._limiter)

    def _call(self, call: Callable[[Admin], T]) -> T:
        admin = self._idle.pop() if self._idle else self._connected()
        try:
            result = call(admin)
        except (BrokerUnreachable, DeadlineExceeded):
            admin.close()  # The next call begins with the bootstrap servers again.
            raise
        except BaseException:
            self._give_back(admin)
            raise
        self._give_back(admin)
        return result

    def _connected(self) -> Admin:
        return Admin(**self._cluster.options(), timeout_ms=self._timeout_ms)

    def _give_back(self, admin: Admin) -> None:
        if self._is_closed:
            admin.close()
        else:
            self._idle.append(admin)

    def close(self) -> None:
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()
