"""One client's network on a running asyncio loop: the engine, driven by the loop's events and timers."""

import asyncio
import logging
import os
from typing import Any, TypeVar

from headrace.client.aio.network import Events, LoopNetwork
from headrace.client.blocking.session import security_of
from headrace.client.config import ClientConfig
from headrace.client.core.calls import Operation
from headrace.client.core.cluster import Cluster
from headrace.client.core.engine import ClientEngine
from headrace.client.errors import ClientClosed, InvalidArgument
from headrace.client.link_factory import make_links
from headrace.ports.real.clock import RealClock
from headrace.ports.real.entropy import RealEntropy

T = TypeVar("T")
logger = logging.getLogger("headrace.client")


class Session:
    """Usable only in the loop in which it was created."""

    def __init__(self, config: ClientConfig) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise InvalidArgument("an asyncio client must be created inside a coroutine, where its loop runs") from None
        self.cluster = Cluster(age_ms_max=config.metadata_max_age_ms)
        self.clock = RealClock()
        self.entropy = RealEntropy()
        self.network = LoopNetwork(self._happened)
        self.is_closed = False
        self._process_id = os.getpid()
        self.links = make_links(
            config,
            self.cluster,
            network=self.network,
            clock=self.clock,
            entropy=self.entropy,
            security=security_of(config, self.entropy),
            tell=logger.info,
        )
        self.engine = ClientEngine(self.links, self.clock)
        self._timer: asyncio.Handle | None = None
        self._waiters: set[asyncio.Future[None]] = set()

    def schedule(self) -> None:
        """Schedule a step in the loop's next turn, because something is due."""
        if not self.is_closed:
            self._schedule(0.0)

    def _schedule(self, wait_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if wait_ms <= 0:
            self._timer = self._loop.call_soon(self._turn)
        else:
            self._timer = self._loop.call_later(wait_ms / 1000, self._turn)

    def _happened(self, events: Events) -> None:
        if not self.is_closed:
            self.links.handle(events)
            self._turn()

    def _turn(self) -> None:
        """Send what is due, notify the waiters, and schedule the next step."""
        if self.is_closed:
            return
        self.links.handle(())
        wakeup_ms = self.engine.step()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
        self._schedule(self.links.wait_ms(wakeup_ms - self.clock.monotonic_ms()))

    async def changed(self, deadline_ms: float) -> None:
        """Wait until anything changes, at most until the given time."""
        self.check_usable()
        waiter = self._loop.create_future()
        self._waiters.add(waiter)
        timeout = self._loop.call_later(max(0.0, deadline_ms - self.clock.monotonic_ms()) / 1000, _finish, waiter)
        try:
            await waiter
        finally:
            timeout.cancel()
            self._waiters.discard(waiter)

    async def run(self, operation: Operation[T], timeout_ms: float) -> T:
        """Return the operation's result or raise its error, within the time limit."""
        self.check_usable()
        ended: asyncio.Future[Any] = self._loop.create_future()

        def end(outcome: Any) -> None:
            if ended.done():
                return
            if isinstance(outcome, Exception):
                ended.set_exception(outcome)
            else:
                ended.set_result(outcome)

        self.engine.start(operation, deadline_ms=self.clock.monotonic_ms() + timeout_ms, ended=end)
        self.schedule()
        result: T = await ended
        return result

    def check_usable(self) -> None:
        if self.is_closed:
            raise ClientClosed("this client is closed; create a new one")
        if not self.is_own_process():
            raise ClientClosed("a client does not survive a fork: create one in each process, after the fork")
        if asyncio._get_running_loop() is not self._loop:
            raise ClientClosed("this client belongs to another event loop: create one in each loop")

    def is_own_process(self) -> bool:
        return self._process_id == os.getpid()

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        if not self.is_own_process():
            return  # The loop still watches the parent's sockets, through state that both processes share.
        if self._timer is not None:
            self._timer.cancel()
        self.engine.stop(ClientClosed("the client was closed before the response arrived"))
        self.links.close()
        self.network.close()
        for waiter in self._waiters:
            _finish(waiter)


def _finish(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
