"""The blocking front: requests by the standard library, each at the next manager that works."""

import json
import ssl
import threading
import uuid
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from time import monotonic
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from headrace.http.addresses import ManagerAddresses
from headrace.http.errors import ManagerError, ManagersUnreachable

TIMEOUT_MS = 60_000
RESPONSE_BYTES_MAX = 64 << 20
IDLE_CONNECTIONS_MAX = 8
"""Open connections to one manager that wait for a request."""

KEY_HEADER = "Idempotency-Key"
REPEATABLE = frozenset(("GET", "HEAD", "PUT", "DELETE"))
TRY_ANOTHER = frozenset((503, 504))
"""Statuses of a manager or its cluster, with which another manager may succeed."""


class ManagerClient:
    """Sends requests to the managers of a cluster. Any number of threads may use it at the same time."""

    def __init__(
        self, *urls: str, token: str | None = None, ca_file: str | None = None, timeout_ms: int = TIMEOUT_MS
    ) -> None:
        """`urls` are some of the managers; the client learns the others from them."""
        self._addresses = ManagerAddresses(urls)
        self._token = token
        self._tls = ssl.create_default_context(cafile=ca_file) if urls[0].startswith("https:") else None
        self._timeout_ms = timeout_ms
        self._idle: dict[str, list[HTTPConnection]] = {}
        self._lock = threading.Lock()

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the JSON of the response, None if it has none; raise ManagerError if the request is refused.

        A request that may be repeated is sent to another manager when one fails: GET, PUT, DELETE and what has an
        Idempotency-Key. Others are, if the connection could not be opened.
        """
        self._refresh()
        return self._tried(method, path + _query(params), body, dict(headers or {}))

    def produce(
        self, topic: str, records: Sequence[Mapping[str, object]], *, key: str | None = None
    ) -> list[dict[str, int]]:
        """Store records exactly once, whatever fails, and return their positions; `key` repeats an earlier call."""
        headers = {KEY_HEADER: key or uuid.uuid4().hex}
        answer = self.call("POST", f"/v1/topics/{quote(topic, safe='')}/records", {"records": records}, headers=headers)
        found: list[dict[str, int]] = answer["records"]
        return found

    def _refresh(self) -> None:
        with self._lock:
            if not self._addresses.is_list_old(_now_ms()):
                return
            self._addresses.not_listed(_now_ms())
        try:
            managers = self._tried("GET", "/v1/managers", None, {})
        except (ManagerError, ManagersUnreachable):
            return  # The request itself shows what is wrong.
        with self._lock:
            self._addresses.learn(managers, _now_ms())

    def _tried(self, method: str, target: str, body: object, headers: dict[str, str]) -> Any:
        is_repeatable = method in REPEATABLE or any(name.lower() == KEY_HEADER.lower() for name in headers)
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        with self._lock:
            order = self._addresses.in_order(method, target.partition("?")[0], _now_ms())
        tried: dict[str, str] = {}
        refused: ManagerError | None = None
        for url in order:
            exchange = _Exchange(self._connection(url, is_repeatable=is_repeatable))
            try:
                status, answer = exchange.run(urlsplit(url).path + target, method, content, headers)
            except (OSError, HTTPException) as error:
                exchange.connection.close()
                self._failed(url)
                tried[url] = str(error) or type(error).__name__
                if exchange.is_sent and not is_repeatable:
                    raise ManagersUnreachable(tried, may_have_been_done=True) from error
                continue
            self._keep(url, exchange)
            if status < 400:
                return answer
            refused = ManagerError(status, answer if isinstance(answer, dict) else {})
            if status not in TRY_ANOTHER or not is_repeatable:
                raise refused
            self._failed(url)
        if refused is not None:
            raise refused
        raise ManagersUnreachable(tried, may_have_been_done=False)

    def _connection(self, url: str, *, is_repeatable: bool) -> HTTPConnection:
        """Return an open connection, or a new one: on an old one, a request could be lost without a trace."""
        with self._lock:
            idle = self._idle.get(url)
            if is_repeatable and idle:
                return idle.pop()
        parts = urlsplit(url)
        assert parts.hostname is not None
        timeout = self._timeout_ms / 1000
        if self._tls is not None:
            return HTTPSConnection(parts.hostname, parts.port, timeout=timeout, context=self._tls)
        return HTTPConnection(parts.hostname, parts.port, timeout=timeout)

    def _keep(self, url: str, exchange: "_Exchange") -> None:
        with self._lock:
            self._addresses.worked(url)
            idle = self._idle.setdefault(url, [])
            if exchange.is_reusable and len(idle) < IDLE_CONNECTIONS_MAX:
                idle.append(exchange.connection)
                return
        exchange.connection.close()

    def _failed(self, url: str) -> None:
        with self._lock:
            self._addresses.failed(url, _now_ms())
            idle = self._idle.pop(url, [])
        for connection in idle:
            connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, {}
        for connection in (each for connections in idle.values() for each in connections):
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Exchange:
    """One request and its response on a connection."""

    def __init__(self, connection: HTTPConnection) -> None:
        self.connection = connection
        self.is_sent = False
        self.is_reusable = False

    def run(self, target: str, method: str, content: bytes | None, headers: Mapping[str, str]) -> tuple[int, Any]:
        if self.connection.sock is None:
            self.connection.connect()
        self.is_sent = True
        self.connection.request(method, target, content, dict(headers))
        response = self.connection.getresponse()
        answer = _decoded(response)
        self.is_reusable = response.isclosed() and not response.will_close
        return response.status, answer


def _decoded(response: HTTPResponse) -> Any:
    text = response.read(RESPONSE_BYTES_MAX + 1)
    if len(text) > RESPONSE_BYTES_MAX:
        raise HTTPException(f"the response has more than {RESPONSE_BYTES_MAX} bytes: ask for less")
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        raise HTTPException("the response is not JSON: is this the address of a manager?") from None


def _query(params: Mapping[str, object] | None) -> str:
    return f"?{urlencode(params, doseq=True)}" if params else ""


def _now_ms() -> float:
    return monotonic() * 1000
