"""Forwarding of changes of the catalog: a manager without the lease sends the request to the manager that holds it."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from anyio.to_thread import run_sync

from headrace.manager.access.boundary import FORWARDED_BY, FORWARDED_FOR
from headrace.manager.limits import FORWARD_SECONDS_MAX
from headrace.manager.problems import ApiProblem

HOP_BY_HOP = frozenset((b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"host",
                        b"content-length", b"origin", b"expect", b"accept-encoding"))  # fmt: skip
"""Headers of one connection. The origin is left out because this manager has checked it already."""


class HolderAway(Exception):
    """The lease has no holder, or it cannot be reached; the request was not sent."""


@dataclass(frozen=True, slots=True)
class ForwardedResponse:
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Forwarder:
    def __init__(self, ca_file: str | None) -> None:
        self._ca_file = ca_file

    async def send(
        self, holder_url: str, *, method: str, target: str, headers: Mapping[bytes, bytes], body: bytes, key: bytes,
        client: str, request_id: str,
    ) -> ForwardedResponse:  # fmt: skip
        sent = {name.decode(): value.decode("latin-1") for name, value in headers.items() if name not in HOP_BY_HOP}
        sent[FORWARDED_BY.decode()] = key.decode()
        sent[FORWARDED_FOR.decode()] = client
        sent["x-request-id"] = request_id
        sent["content-length"] = str(len(body))
        try:
            return await run_sync(
                partial(self._exchange, holder_url, method, target, sent, body), abandon_on_cancel=True
            )
        except (OSError, HTTPException) as error:
            raise ApiProblem(
                503, f"the manager that makes changes, {holder_url}, does not answer ({error}): send the request again "
                "in a moment"
            ) from error  # fmt: skip

    def _exchange(
        self, holder_url: str, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> ForwardedResponse:
        parts = urlsplit(holder_url)
        if parts.hostname is None:
            raise HolderAway
        connection: HTTPConnection
        if parts.scheme == "https":
            context = _context(self._ca_file)
            connection = HTTPSConnection(parts.hostname, parts.port, timeout=FORWARD_SECONDS_MAX, context=context)
        else:
            connection = HTTPConnection(parts.hostname, parts.port, timeout=FORWARD_SECONDS_MAX)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise HolderAway from error
        try:
            connection.request(method, parts.path + target, body, dict(headers))
            response = connection.getresponse()
            content = response.read()
            kept = [
                (name.lower().encode("latin-1"), value.encode("latin-1"))
                for name, value in response.getheaders()
                if name.lower().encode("latin-1") not in HOP_BY_HOP and name.lower() not in ("date", "x-request-id")
            ]
            kept.append((b"content-length", str(len(content)).encode()))
            return ForwardedResponse(response.status, kept, content)
        finally:
            connection.close()


@cache
def _context(ca_file: str | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)


def target_of(scope: Mapping[str, Any]) -> str:
    """Return path and query of a request as they were sent, without the root path."""
    raw = scope.get("raw_path") or scope["path"].encode()
    query = scope.get("query_string", b"")
    return str((raw + (b"?" + query if query else b"")).decode("latin-1"))
