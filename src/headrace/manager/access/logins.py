"""Logins with a password: throttled, equally slow for unknown users, and each with a new session."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from sqlalchemy import Connection

from headrace.manager.access.passwords import LENGTH_MAX, UNKNOWN, hashed, is_password
from headrace.manager.access.throttle import begin_attempt, succeed
from headrace.manager.access.users import USER_NAME, begin_session, digest_of, end_session, password_hash_of
from headrace.manager.catalog.database import Catalog
from headrace.manager.catalog.engine import now_ms
from headrace.manager.limits import LOGINS_AT_ONCE_MAX, LOGINS_WAITING_MAX
from headrace.manager.problems import ApiProblem

T = TypeVar("T")


class Logins:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._limiter: CapacityLimiter | None = None

    async def log_in(self, user: str, password: str, *, address: str, earlier: str) -> str:
        """Return the secret of a new session; that of an earlier one, if the client sent it, is over."""
        counted = user if USER_NAME.fullmatch(user) else ""

        def admitted(connection: Connection) -> int:
            return begin_attempt(connection, counted, address, now=now_ms(connection))

        wait = await self._catalog.write(admitted)
        if wait:
            raise ApiProblem(429, f"too many failed logins: try again in {wait} s", retry_after=wait)
        stored = await self._catalog.read(partial(password_hash_of, name=counted))
        if not await self._is_password(password, stored):
            raise ApiProblem(401, "user or password is wrong")

        def begun(connection: Connection) -> str:
            succeed(connection, counted, address)
            end_session(connection, digest_of(earlier))
            return begin_session(connection, user, now=now_ms(connection))

        return await self._catalog.write(begun)

    async def hashed(self, password: str) -> str:
        return await self._run(partial(hashed, password))

    async def _is_password(self, password: str, stored: str | None) -> bool:
        if len(password) > LENGTH_MAX:
            return False
        return await self._run(partial(is_password, password, stored or UNKNOWN)) and stored is not None

    async def _run(self, call: Callable[[], T]) -> T:
        if self._limiter is None:
            self._limiter = CapacityLimiter(LOGINS_AT_ONCE_MAX)
        if self._limiter.statistics().tasks_waiting >= LOGINS_WAITING_MAX:
            raise ApiProblem(503, f"{LOGINS_WAITING_MAX} logins wait already: try again in a moment")
        return await run_sync(call, limiter=self._limiter)
