"""The guard: finds the caller of each request, and lets it pass if the table of roles allows it.

It stands before the application, so that the body of a refused request is never read. A second check in the application
makes sure that the guard and the router mean the same route.
"""

import asyncio
import logging
import time
from collections.abc import MutableMapping
from contextlib import suppress
from hmac import compare_digest
from typing import Any

from starlette.requests import HTTPConnection

from headrace.manager.access.audit import AuditRecord, write_record
from headrace.manager.access.callers import ANONYMOUS, Caller, Callers, session_of
from headrace.manager.access.forwarder import ForwardedResponse, Forwarder, HolderAway, target_of
from headrace.manager.access.mask_rules import Masks
from headrace.manager.access.roles import RULES, RouteRule, RuleBook, UserRole
from headrace.manager.access.users import csrf_token
from headrace.manager.asgi import Application, Message, Receive, Scope, Send
from headrace.manager.catalog.database import Catalog
from headrace.manager.limits import (
    AUDITED_BODY_BYTES_MAX,
    FORWARDED_BODY_BYTES_MAX,
    REVOCATION_CHECK_SECONDS,
    TAKEOVER_SECONDS_MAX,
)
from headrace.manager.problems import ApiProblem

SAFE = frozenset(("GET", "HEAD", "OPTIONS", "WEBSOCKET"))
CSRF_HEADER = b"x-csrf-token"
NO_HOLDER = "no manager makes changes to the catalog at the moment: send the request again in some seconds"
HOLDER_AWAITED_SECONDS = 0.1
SESSION_OVER = 4401
"""Code by which a WebSocket is closed when its caller loses the right to it."""
logger = logging.getLogger("headrace.manager")


class Guard:
    def __init__(
        self,
        application: Application,
        *,
        callers: Callers,
        masks: Masks,
        catalog: Catalog,
        forwarder: Forwarder,
        key: bytes,
    ) -> None:
        self._application = application
        self._callers = callers
        self._masks = masks
        self._catalog = catalog
        self._forwarder = forwarder
        self._key = key
        self._rules = RuleBook(RULES)
        self._streams: set[GuardedStream] = set()
        self._watcher: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        method = scope.get("method", "WEBSOCKET")
        found = self._rules.find(method, path_of(scope))
        if found is None:
            await self._application(scope, receive, send)  # Its router answers with 404 or 405.
            return
        route, rule = found
        headers = scope["state"]["headers"]
        caller = ANONYMOUS if rule.role is UserRole.ANYONE else await self._callers.find(headers)
        if rule.is_page and caller.kind == "anonymous":
            await send_to_login(scope, send)
            return
        permit(caller, rule.role)
        if caller.kind == "session" and method not in SAFE:
            _check_csrf(headers)
        scope["state"].update(caller=caller, route=route)
        if rule.is_leased:
            await self._leased(scope, receive, send, caller, route, rule)
        elif rule.is_stream:
            await self._stream(scope, receive, send, caller)
        elif rule.is_audited:
            await self._audited(scope, receive, send, caller, route, rule)
        else:
            await self._application(scope, receive, send)

    async def _leased(
        self, scope: Scope, receive: Receive, send: Send, caller: Caller, route: str, rule: RouteRule
    ) -> None:
        """Serve a change if this manager holds the lease, or forward it; wait a little for a holder to be there."""
        ends_s = time.monotonic() + TAKEOVER_SECONDS_MAX
        body: bytes | None = None
        while self._catalog.standing.epoch is None:
            if scope["state"]["is_forwarded"]:
                raise ApiProblem(503, NO_HOLDER)
            body = await _whole_body(receive) if body is None else body
            try:
                response = await self._forwarded(scope, body)
            except HolderAway:  # It got nothing, so that the request may be sent again.
                if time.monotonic() >= ends_s:
                    raise ApiProblem(503, NO_HOLDER) from None
                await asyncio.sleep(HOLDER_AWAITED_SECONDS)
                continue
            await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
            await send({"type": "http.response.body", "body": response.body})
            return
        await self._audited(scope, receive if body is None else _again(body), send, caller, route, rule)

    async def _forwarded(self, scope: Scope, body: bytes) -> ForwardedResponse:
        """Return the holder's response; give up waiting for it when another manager has taken the lease over."""
        holder = self._catalog.standing.holder
        sending = asyncio.create_task(
            self._forwarder.send(
                self._catalog.standing.holder_url,
                method=scope["method"],
                target=target_of(scope),
                headers=scope["state"]["headers"],
                body=body,
                key=self._key,
                client=(scope.get("client") or ("",))[0],
                request_id=scope["state"]["request_id"],
            )
        )
        try:
            while not (await asyncio.wait((sending,), timeout=HOLDER_AWAITED_SECONDS))[0]:
                if self._catalog.standing.holder not in (holder, ""):
                    raise ApiProblem(
                        503, "the manager that makes changes has stopped: look whether it has made this one, and send "
                        "the request again if not"
                    )  # fmt: skip
            return sending.result()
        finally:
            sending.cancel()

    async def _audited(
        self, scope: Scope, receive: Receive, send: Send, caller: Caller, route: str, rule: RouteRule
    ) -> None:
        """Write the audit record before the response is sent."""
        body = bytearray()

        async def receiving() -> Message:
            message = await receive()
            if not rule.has_secrets and len(body) < AUDITED_BODY_BYTES_MAX:
                body.extend(message.get("body", b"")[: AUDITED_BODY_BYTES_MAX - len(body)])
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._record(scope, caller, route, rule, message["status"], bytes(body))
            await send(message)

        await self._application(scope, receiving, sending)

    async def _record(
        self, scope: Scope, caller: Caller, route: str, rule: RouteRule, status: int, body: bytes
    ) -> None:
        query = "" if rule.has_secrets else scope.get("query_string", b"").decode("latin-1")
        record = AuditRecord(
            user=scope["state"].get("audited_user", caller.name),
            address=(scope.get("client") or ("",))[0],
            request_id=scope["state"]["request_id"],
            action=f"{scope['method']} {route}",
            resource=path_of(scope) + (f"?{query}" if query else ""),
            status=status,
            detail=body.decode(errors="replace"),
        )
        try:
            await self._catalog.write(lambda connection: write_record(connection, record))
        except ApiProblem as problem:  # The change is made: its client gets to know that, and the log has the record.
            logger.error("an audit record cannot be stored (%s): %s", problem.detail, record)

    async def _stream(self, scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
        """Run the application until it ends, or until the caller loses the right to the stream."""
        task = asyncio.current_task()
        assert task is not None
        stream = GuardedStream(task, caller)
        self._streams.add(stream)
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch())
        try:
            await self._application(scope, receive, stream.noting(send))
        except asyncio.CancelledError:
            if not stream.is_revoked:
                raise
            task.uncancel()
            await stream.end(scope, send)
        finally:
            self._streams.discard(stream)

    async def _watch(self) -> None:
        """End the streams whose callers have lost their right, until there are no streams."""
        while self._streams:
            with suppress(ApiProblem):
                await self._masks.refresh()
            for caller in {stream.caller for stream in self._streams}:
                role = UserRole.ANYONE
                with suppress(ApiProblem):  # Without the catalog no right can be shown.
                    role = await self._callers.still(caller)
                for stream in [*self._streams]:
                    if stream.caller == caller and role is not caller.role:  # Masks depend on the role.
                        stream.revoke()
            await asyncio.sleep(REVOCATION_CHECK_SECONDS)

    async def close(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)


class GuardedStream:
    """A response without an end, or a WebSocket, and the right of its caller."""

    def __init__(self, task: "asyncio.Task[Any]", caller: Caller) -> None:
        self._task = task
        self.caller = caller
        self.is_revoked = False
        self._has_begun = False

    def noting(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            self._has_begun = self._has_begun or message["type"] in ("http.response.start", "websocket.accept")
            await send(message)

        return sending

    def revoke(self) -> None:
        if not self.is_revoked:
            self.is_revoked = True
            self._task.cancel()

    async def end(self, scope: Scope, send: Send) -> None:
        if not self._has_begun:
            raise ApiProblem(401, "the session is over: log in again")
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": SESSION_OVER, "reason": "the session is over"})
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _whole_body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if len(body) > FORWARDED_BODY_BYTES_MAX:
            raise ApiProblem(413, f"the body of this request may have {FORWARDED_BODY_BYTES_MAX} bytes")
        if not message.get("more_body", False):
            return body


def _again(body: bytes) -> Receive:
    """Return the function that receives a body which was read already."""

    async def receiving() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receiving


def path_of(scope: MutableMapping[str, Any]) -> str:
    """Return the path without the prefix that a proxy has removed."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


async def send_to_login(scope: Scope, send: Send) -> None:
    location = f"{scope.get('root_path', '')}/login".encode()
    await send({"type": "http.response.start", "status": 303, "headers": [(b"location", location)]})
    await send({"type": "http.response.body", "body": b""})


def permit(caller: Caller, role: UserRole) -> None:
    """Raise a problem unless the caller has at least this role."""
    if caller.role >= role:
        return
    if caller.kind == "anonymous":
        raise ApiProblem(401, "this manager has users: log in at /login, or send Authorization: Bearer TOKEN")
    raise ApiProblem(403, f"this needs the role {role.label}; {caller.name} has the role {caller.role.label}")


def _check_csrf(headers: dict[bytes, bytes]) -> None:
    wanted = csrf_token(session_of(headers))
    if not compare_digest(headers.get(CSRF_HEADER, b""), wanted.encode()):
        raise ApiProblem(
            403, "a change by a session needs the header X-CSRF-Token with the token that GET /v1/session returns"
        )


async def same_route(connection: HTTPConnection) -> None:
    """Refuse a route that the guard did not mean; every route depends on this."""
    route = getattr(connection.scope.get("route"), "path", None)
    if route is None or connection.scope["state"].get("route") != route:
        raise ApiProblem(403, f"the route {route} is not in the table of roles")
