"""One client's network: the real ports around the core's links, and operations run to their end by a deadline."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from headrace.client.addresses import parse_bootstrap
from headrace.client.core.calls import Operation, Pause
from headrace.client.core.cluster import Cluster
from headrace.client.core.links import REQUEST_TIMEOUT_MS, Links
from headrace.client.errors import ClientClosed, DeadlineExceeded, InvalidArgument
from headrace.ports.real.clock import RealClock
from headrace.ports.real.network import RealNetwork

T = TypeVar("T")

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
CONNECT_MS_MAX = 10_000


class Session:
    """Not for several threads at once; only `network.wake` may be called from another."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        *,
        client_id: str,
        request_timeout_ms: float = REQUEST_TIMEOUT_MS,
    ) -> None:
        if request_timeout_ms <= 0:
            raise InvalidArgument(f"a time-out is above zero milliseconds, not {request_timeout_ms}")
        bootstrap = parse_bootstrap(bootstrap_servers)
        self.cluster = Cluster()
        self.network = RealNetwork()
        self.clock = RealClock()
        self.is_closed = False
        self.links = Links(
            network=self.network,
            clock=self.clock,
            bootstrap=bootstrap,
            client_id=client_id,
            cluster=self.cluster,
            request_timeout_ms=request_timeout_ms,
            connect_timeout_ms=min(request_timeout_ms, CONNECT_MS_MAX),
        )

    def run(self, operation: Operation[T], timeout_ms: float) -> T:
        """Drive the operation until it returns, raises, or the time is over."""
        if self.is_closed:
            raise ClientClosed("this client was closed: make a new one")
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        self.links.turn(0)  # A connection that the broker closed meanwhile is noticed before it is used.
        replies: list[Any] | None = None
        try:
            while True:
                step = operation.send(replies) if replies is not None else next(operation)
                replies = []
                if isinstance(step, Pause):
                    self._pause(step.milliseconds, deadline_ms)
                else:
                    replies = self._exchange(step, deadline_ms)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            operation.close()

    def _exchange(self, calls: Sequence[Any], deadline_ms: float) -> list[Any]:
        replies: dict[int, Any] = {}
        for place, call in enumerate(calls):
            self.links.submit(call, partial(replies.__setitem__, place), deadline_ms=deadline_ms)
        while len(replies) < len(calls):
            self.links.turn(deadline_ms - self.clock.monotonic_ms())
        return [replies[place] for place in range(len(calls))]

    def _pause(self, milliseconds: float, deadline_ms: float) -> None:
        left_ms = deadline_ms - self.clock.monotonic_ms()
        if left_ms <= milliseconds:
            raise DeadlineExceeded("the cluster did not settle in time: look at its brokers and their leaders")
        time.sleep(milliseconds / 1000)

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.links.close()
            self.network.close()
