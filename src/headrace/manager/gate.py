"""The outermost layer of the HTTP API: request ids, checks of Host and Origin, limits, metrics and the access log."""

import asyncio
import logging
import re
import time

import msgspec

from headrace.manager.access.boundary import Boundary, is_same_origin
from headrace.manager.asgi import Application, Message, Receive, Scope, Send
from headrace.manager.compression import CompressedResponse, accepted_encoding
from headrace.manager.limits import (
    BODY_SECONDS_MAX,
    DISCARD_SECONDS_MAX,
    DISCARDED_BODY_BYTES_MAX,
    REQUEST_BODY_BYTES_MAX,
    REQUESTS_AT_ONCE_MAX,
)
from headrace.manager.metrics import ManagerMetrics
from headrace.manager.problems import MEDIA_TYPE, ApiProblem, problem_of, unexpected
from headrace.ports.real.entropy import RealEntropy

REQUEST_ID_BYTES = 8
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
UNKNOWN_ROUTE = "unknown"
access = logging.getLogger("headrace.manager.access")
logger = logging.getLogger("headrace.manager")


class Gate:
    """Wraps the application. It answers requests that may not reach a route, and errors that no route expects."""

    def __init__(
        self, application: Application, metrics: ManagerMetrics, boundary: Boundary, *, access_log: bool = True
    ) -> None:
        self._application = application
        self._metrics = metrics
        self._boundary = boundary
        self._access_log = access_log
        self._entropy = RealEntropy()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
        else:
            await self._guarded(scope, receive, send)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(scope, receive, send, self._entropy)
        self._metrics.in_progress += 1
        began = time.monotonic()
        try:
            refused = check(scope, exchange.headers, self._boundary, in_progress=self._metrics.in_progress)
            if refused is not None:
                self._metrics.refused += 1
                await exchange.fail(refused)
            else:
                await self._application(scope, exchange.receive, exchange.send)
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                logger.exception("request %s failed", exchange.request_id)
                problem = unexpected(exchange.request_id)
            await exchange.fail(problem)
        finally:
            self._metrics.in_progress -= 1
            self._ended(scope, exchange, time.monotonic() - began)

    def _ended(self, scope: Scope, exchange: "_Exchange", seconds: float) -> None:
        route = getattr(scope.get("route"), "path", UNKNOWN_ROUTE)
        method = scope.get("method", "WEBSOCKET")
        self._metrics.ended(method if exchange.is_known_method else "other", route, exchange.status, seconds)
        if self._access_log:
            line = {
                "time_ms": time.time_ns() // 1_000_000,
                "request_id": exchange.request_id,
                "client": (scope.get("client") or ("",))[0],
                "method": method,
                "path": scope["path"],
                "user": getattr(scope["state"].get("caller"), "name", ""),
                "status": exchange.status,
                "duration_ms": round(seconds * 1000, 3),
            }
            access.info("%s", msgspec.json.encode(line).decode())


METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"))


class _Exchange:
    """One request and its response, with the bounds of the body and the id in the response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, entropy: RealEntropy) -> None:
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        given = self.headers.get(b"x-request-id", b"")
        self.request_id = (
            given.decode() if _REQUEST_ID.fullmatch(given) else entropy.random_bytes(REQUEST_ID_BYTES).hex()
        )
        scope.setdefault("state", {}).update(request_id=self.request_id, headers=self.headers)
        self.status = 0
        self.is_known_method = scope.get("method", "WEBSOCKET") in METHODS
        self._is_websocket = scope["type"] == "websocket"
        self._receive = receive
        self._send = send
        self._body_bytes = 0
        self._has_body = not self._is_websocket
        self._body_ends = time.monotonic() + BODY_SECONDS_MAX
        self._has_begun = False
        encoding = accepted_encoding(self.headers.get(b"accept-encoding", b""))
        self._respond = CompressedResponse(send, encoding).send if encoding and not self._is_websocket else send

    async def receive(self) -> Message:
        if not self._has_body:
            return await self._receive()
        try:
            async with asyncio.timeout(max(0.0, self._body_ends - time.monotonic())):
                message = await self._receive()
        except TimeoutError:
            raise ApiProblem(
                408, f"the body of the request did not arrive within {BODY_SECONDS_MAX} s: send it in smaller parts"
            ) from None
        if message["type"] == "http.request":
            self._body_bytes += len(message.get("body", b""))
            if self._body_bytes > REQUEST_BODY_BYTES_MAX:
                raise too_large()
            self._has_body = message.get("more_body", False)
        else:
            self._has_body = False
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._has_begun = True
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.request_id.encode()), *SECURITY]
        elif message["type"] == "websocket.accept":
            self._has_begun = True
            self.status = 101
        await self._respond(message)

    async def fail(self, problem: ApiProblem) -> None:
        """Answer with the problem, unless the response has begun: then it ends where it is."""
        if self._has_begun:
            logger.warning("request %s ended early: %s", self.request_id, problem.detail)
            return
        await self._discard_body()
        content = msgspec.json.encode(problem.body(self.request_id))
        headers = {"content-type": MEDIA_TYPE, "content-length": str(len(content)), **problem.headers()}
        if self._has_body:
            headers["connection"] = "close"  # The rest of the body is not read.
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        if self._is_websocket:
            self.status = problem.status
            begin = {"type": "websocket.http.response.start", "status": problem.status, "headers": encoded}
            await self._send(begin)
            await self._send({"type": "websocket.http.response.body", "body": content})
            return
        await self.send({"type": "http.response.start", "status": problem.status, "headers": encoded})
        await self.send({"type": "http.response.body", "body": content})

    async def _discard_body(self) -> None:
        """Read the rest of the body: closing a connection with unread bytes can take the response with it."""
        discarded = 0
        try:
            async with asyncio.timeout(DISCARD_SECONDS_MAX):
                while self._has_body and discarded < DISCARDED_BODY_BYTES_MAX:
                    message = await self._receive()
                    discarded += len(message.get("body", b""))
                    self._has_body = message.get("more_body", False)
        except TimeoutError:
            pass


SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
                                 b"img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"),
)  # fmt: skip


def check(scope: Scope, headers: dict[bytes, bytes], boundary: Boundary, *, in_progress: int = 0) -> ApiProblem | None:
    """Return the reason to refuse a request before it reaches a route; None to let it pass.

    A page of another site that a browser shows could otherwise send requests to the manager with the rights of the
    machine or of a session, also under a host name that its owner points to this machine.
    """
    if in_progress > REQUESTS_AT_ONCE_MAX:
        return ApiProblem(503, f"the manager serves {REQUESTS_AT_ONCE_MAX} requests already: try again in a moment")
    if sum(name == b"host" for name, _ in scope["headers"]) > 1:
        return ApiProblem(400, "a request names its host once: leave the other Host headers out")
    refused = boundary.admit(scope, headers)
    if refused is not None:
        return refused
    origin, host = headers.get(b"origin"), headers.get(b"host", b"").decode("latin-1")
    is_secure = scope.get("scheme") in ("https", "wss")
    if origin is not None and not is_same_origin(origin.decode("latin-1"), host, is_secure=is_secure):
        return ApiProblem(403, "a page of another site may not use this manager: open the manager's own address")
    length = headers.get(b"content-length", b"0")
    if scope["type"] == "http" and length.isdigit() and int(length) > REQUEST_BODY_BYTES_MAX:
        return too_large()
    return None


def too_large() -> ApiProblem:
    return ApiProblem(
        413, f"the body of a request may have {REQUEST_BODY_BYTES_MAX} bytes: send the records in several requests"
    )
