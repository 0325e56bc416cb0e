"""The caller of a request, by session cookie or bearer token; without users it is the machine's own user."""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from fastapi import Depends
from starlette.requests import HTTPConnection

from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.client.types import NewTopic
from headrace.manager.access.roles import UserRole
from headrace.manager.access.users import (
    UserIdentity,
    digest_of,
    have_users,
    identity_of_session,
    identity_of_token,
    record_use,
)
from headrace.manager.catalog.database import Catalog
from headrace.manager.catalog.engine import now_ms
from headrace.manager.cluster_calls import ClusterCalls
from headrace.manager.limits import CALLER_KNOWN_SECONDS, CALLERS_KNOWN_MAX, SESSION_USE_SECONDS, USERS_MARK_SECONDS
from headrace.manager.problems import ApiProblem
from headrace.model.errors import ErrorCode

SESSION_COOKIE = "headrace_session"
BEARER = "bearer "
USERS_MARK = "__headrace_manager_users"
"""A topic whose existence says that managers of the cluster have users, even if their catalog is lost."""
BROKER_DEFAULT = -1
logger = logging.getLogger("headrace.manager")


@dataclass(frozen=True, slots=True)
class Caller:
    """The user of a request, as its credential proves it."""

    name: str
    """Empty for the machine's own user while there are no users, and for a caller without a credential."""
    role: UserRole
    kind: Literal["machine", "session", "token", "anonymous"]
    credential: bytes = b""
    """The digest of the session or token."""


MACHINE = Caller("", UserRole.ADMIN, "machine")
ANONYMOUS = Caller("", UserRole.ANYONE, "anonymous")


def caller_of(connection: HTTPConnection) -> Caller:
    """Return the caller that the guard has found."""
    caller = connection.scope["state"]["caller"]
    assert isinstance(caller, Caller)
    return caller


async def _current(connection: HTTPConnection) -> Caller:
    return caller_of(connection)  # A function that is not async would run in a thread.


CurrentCaller = Annotated[Caller, Depends(_current)]


def session_of(headers: Mapping[bytes, bytes]) -> str:
    """Return the secret in the session cookie; an empty string without one."""
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == SESSION_COOKIE:
            return value
    return ""


class KnownIdentity(NamedTuple):
    identity: UserIdentity | None
    until_s: float
    recorded_s: float
    """When the use of the session was last recorded."""


class Callers:
    """Finds the callers of requests. A result is used for half a second at most, so that a revocation takes effect."""

    def __init__(self, catalog: Catalog, cluster: ClusterCalls, *, needs_users: bool) -> None:
        """With `needs_users` nothing is open to callers without a credential, whether or not there are users."""
        self._catalog = catalog
        self._cluster = cluster
        self._has_users = needs_users
        """Stays true for the life of the process once there were users."""
        self._is_marked = False
        self._marking: asyncio.Task[None] | None = None
        self._open_until_s = 0.0
        self._unmarked_until_s = 0.0
        self._known: dict[bytes, KnownIdentity] = {}

    async def find(self, headers: Mapping[bytes, bytes]) -> Caller:
        """Return the caller; a bearer token that is not valid raises a problem, a session that is over does not."""
        if await self.is_open():
            return MACHINE
        given = headers.get(b"authorization", b"").decode("latin-1")
        if given:
            digest = digest_of(given[len(BEARER) :].strip()) if given.lower().startswith(BEARER) else b""
            identity = await self._identity(digest, is_session=False) if digest else None
            if identity is None:
                raise ApiProblem(
                    401, "the header Authorization has no valid token: create one with headrace manager users token, "
                    "and send it as Bearer TOKEN"
                )  # fmt: skip
            return Caller(identity.name, identity.role, "token", digest)
        session = session_of(headers)
        if session:
            digest = digest_of(session)
            identity = await self._identity(digest, is_session=True)
            if identity is not None:
                return Caller(identity.name, identity.role, "session", digest)
        return ANONYMOUS

    async def is_open(self) -> bool:
        """Return whether everyone on this machine may do everything, because there are and were no users."""
        if self._has_users:
            self._keep_mark()
            return False
        now_s = time.monotonic()
        if now_s < self._open_until_s:
            return True
        if await self._catalog.read(have_users):
            self._has_users = True
            self._keep_mark()
            return False
        if now_s >= self._unmarked_until_s:
            if await self._cluster.run(is_marked):
                self._has_users = self._is_marked = True
                logger.error(
                    "the catalog has no users, but managers of this cluster had some: nothing is open until "
                    "headrace manager users add"
                )
                return False
            self._unmarked_until_s = now_s + USERS_MARK_SECONDS
        self._open_until_s = now_s + CALLER_KNOWN_SECONDS
        return True

    async def still(self, caller: Caller) -> UserRole:
        """Return the role that a caller has now."""
        if caller.kind == "machine":
            return UserRole.ADMIN if await self.is_open() else UserRole.ANYONE
        if caller.kind == "anonymous":
            return UserRole.ANYONE
        identity = await self._identity(caller.credential, is_session=caller.kind == "session")
        return UserRole.ANYONE if identity is None else identity.role

    def forget(self, credential: bytes) -> None:
        self._known.pop(credential, None)

    async def _identity(self, digest: bytes, *, is_session: bool) -> UserIdentity | None:
        known = self._known.get(digest)
        now_s = time.monotonic()
        if known is not None and now_s < known.until_s:
            return known.identity
        look_up = identity_of_session if is_session else identity_of_token
        identity = await self._catalog.read(lambda connection: look_up(connection, digest, now=now_ms(connection)))
        recorded_s = -SESSION_USE_SECONDS if known is None else known.recorded_s
        if identity is not None and is_session and now_s >= recorded_s + SESSION_USE_SECONDS:
            await self._catalog.write(lambda connection: record_use(connection, digest, now=now_ms(connection)))
            recorded_s = now_s
        if len(self._known) >= CALLERS_KNOWN_MAX:
            self._known.clear()
        self._known[digest] = KnownIdentity(identity, now_s + CALLER_KNOWN_SECONDS, recorded_s)
        return identity

    def _keep_mark(self) -> None:
        """Create the mark in the cluster, in the background, unless it is there."""
        if not self._is_marked and (self._marking is None or self._marking.done()):
            self._marking = asyncio.create_task(self._mark())

    async def _mark(self) -> None:
        try:
            await self._cluster.run(mark)
            self._is_marked = True
        except (ApiProblem, ClientError) as error:
            logger.warning("the topic %s cannot be created yet: %s", USERS_MARK, error)
            await asyncio.sleep(USERS_MARK_SECONDS)

    async def close(self) -> None:
        if self._marking is not None:
            self._marking.cancel()
            await asyncio.gather(self._marking, return_exceptions=True)


def is_marked(admin: Admin) -> bool:
    (found,) = admin.topics([USERS_MARK])
    if found.error not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        raise ApiProblem(503, f"topic {USERS_MARK} cannot be looked up: try again in a moment")
    return found.error == ErrorCode.NONE


def mark(admin: Admin) -> None:
    if not is_marked(admin):
        new = NewTopic(USERS_MARK, 1, BROKER_DEFAULT, {"cleanup.policy": "compact"})
        outcome = admin.create_topics([new])[USERS_MARK]
        if outcome.error != ErrorCode.TOPIC_ALREADY_EXISTS:
            outcome.check(f"topic {USERS_MARK} cannot be created")
