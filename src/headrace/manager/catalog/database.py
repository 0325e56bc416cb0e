"""The catalog as the manager's routes use it: reads, writes, and changes that need the lease."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from headrace import __version__
from headrace.manager.catalog.engine import WRITES, catalog_url, now_ms, shown
from headrace.manager.catalog.lease import Instance, LeaseLost, Standing, beat, release, require
from headrace.manager.catalog.migration import prepare, reason
from headrace.manager.limits import CATALOG_CALLS_AT_ONCE_MAX, CATALOG_CALLS_WAITING_MAX, HEARTBEAT_MS
from headrace.manager.problems import ApiProblem
from headrace.ports.real.entropy import RealEntropy

T = TypeVar("T")
Call = Callable[[Connection], T]
INSTANCE_BYTES = 8
NO_LEASE = Standing(None, "", "")
logger = logging.getLogger("headrace.manager")


class Catalog:
    """The database that the managers of a cluster share. Calls run in threads, each in a transaction of its own."""

    def __init__(self, url: str) -> None:
        """Open the database, and bring its tables to the newest revision; OperationError says what is wrong."""
        parsed = catalog_url(url)
        self._name = shown(parsed)
        self._engine = prepare(parsed)
        self._limiter: CapacityLimiter | None = None
        self.instance = Instance(RealEntropy().random_bytes(INSTANCE_BYTES).hex(), "", __version__)
        self.standing = NO_LEASE
        """As of the last heartbeat."""
        self._started_ms = 0
        self._heartbeats: asyncio.Task[None] | None = None

    async def read(self, call: Call[T]) -> T:
        return await self._run(call, writes=False)

    async def write(self, call: Call[T]) -> T:
        """Make a change that every manager may make: of sessions, heartbeats and audit records."""
        return await self._run(call, writes=True)

    async def change(self, call: Call[T]) -> T:
        """Make a change that only the holder of the lease may make; LeaseLost if that is another manager."""
        epoch = self.standing.epoch
        if epoch is None:
            raise LeaseLost

        def checked(connection: Connection) -> T:
            require(connection, holder=self.instance.id, epoch=epoch)
            return call(connection)

        return await self._run(checked, writes=True)

    async def _run(self, call: Call[T], *, writes: bool) -> T:
        if self._limiter is None:
            self._limiter = CapacityLimiter(CATALOG_CALLS_AT_ONCE_MAX)
        if self._limiter.statistics().tasks_waiting >= CATALOG_CALLS_WAITING_MAX:
            raise ApiProblem(
                503, f"{CATALOG_CALLS_WAITING_MAX} requests wait for the catalog already: try again in a moment"
            )
        return await run_sync(partial(self.run_here, call, writes=writes), limiter=self._limiter)

    def run_here(self, call: Call[T], *, writes: bool) -> T:
        """Run a call in this thread."""
        try:
            with self._engine.connect() as connection:
                if writes:
                    connection.execution_options(**WRITES)
                with connection.begin():
                    return call(connection)
        except SQLAlchemyError as error:
            raise ApiProblem(
                503, f"the catalog {self._name} cannot be used: {reason(error)}; check the database, and try again"
            ) from error

    async def join(self, url: str) -> None:
        """List this manager under its address, and try to hold the lease from now on."""
        self.instance = self.instance._replace(url=url)
        await self._beat()
        self._heartbeats = asyncio.create_task(self._keep())

    async def _beat(self) -> None:
        def beaten(connection: Connection) -> Standing:
            now = now_ms(connection)
            self._started_ms = self._started_ms or now
            return beat(connection, self.instance, now=now, started_ms=self._started_ms)

        try:
            self.standing = await self.write(beaten)
        except ApiProblem as problem:
            if self.standing is not NO_LEASE:
                logger.warning("%s", problem.detail)
            self.standing = NO_LEASE

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_MS / 1000)
            await self._beat()

    async def close(self) -> None:
        """Give the lease up, so that another manager takes it over at once."""
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
            with suppress(ApiProblem):
                await self.write(partial(release, instance=self.instance))
        self.dispose()

    def dispose(self) -> None:
        """Close the connections of a catalog that was not joined."""
        self._engine.dispose()
