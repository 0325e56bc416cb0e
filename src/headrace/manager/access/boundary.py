"""The boundary of a manager: names under which it is reached, and the proxies whose forwarded headers it believes."""

from collections.abc import MutableMapping
from dataclasses import dataclass
from hmac import compare_digest
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any
from urllib.parse import urlsplit

from headrace.manager.problems import ApiProblem
from headrace.manager.settings import is_loopback

FORWARDED_BY = b"x-headrace-forwarded"
"""Header with the key that managers share: by it a manager recognises a request that another manager forwards."""
FORWARDED_FOR = b"x-headrace-client"
"""Header with the address of the client of such a request."""


@dataclass(slots=True)
class Boundary:
    is_local: bool = True
    """True if the manager listens on loopback, without a proxy."""
    names: frozenset[str] = frozenset()
    """Host names that are accepted, besides those of loopback and IP addresses."""
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    key: bytes = b""
    """The key that managers share; empty while it is not known."""

    def admit(self, scope: MutableMapping[str, Any], headers: dict[bytes, bytes]) -> ApiProblem | None:
        """Put the client's own address, scheme and host in the place of a trusted proxy's; refuse a foreign host."""
        scope["state"]["is_forwarded"] = False
        peer = (scope.get("client") or ("",))[0]
        key = headers.pop(FORWARDED_BY, b"")
        client = headers.pop(FORWARDED_FOR, b"").decode("latin-1")
        if key and self.key and compare_digest(key, self.key):
            scope["state"]["is_forwarded"] = True
            scope["client"] = (client, 0)
        elif self.proxies and self._is_proxy(peer):
            _believe(scope, headers)
            return None
        elif self.proxies and not _is_loopback_address(peer):
            return ApiProblem(403, "this manager serves its proxy alone: use the proxy's address")
        return self._refused_host(headers.get(b"host", b"").decode("latin-1"))

    def _is_proxy(self, peer: str) -> bool:
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self.proxies)

    def _refused_host(self, host: str) -> ApiProblem | None:
        name = host_name(host)
        if name is not None and (is_loopback(name) or name in self.names or (not self.is_local and _is_address(name))):
            return None
        if self.is_local:
            return ApiProblem(
                421, f'requests for host "{host}" are not served: use 127.0.0.1 or localhost, where the manager listens'
            )
        return ApiProblem(
            421, f'requests for host "{host}" are not served: start the manager with --url, which has its host name'
        )


def _believe(scope: MutableMapping[str, Any], headers: dict[bytes, bytes]) -> None:
    clients = headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")
    nearest = clients[-1].strip()  # The proxy itself adds the last one; a client can send those before it.
    if _is_address(nearest):
        scope["client"] = (nearest, 0)
    scheme = headers.get(b"x-forwarded-proto", b"").decode("latin-1")
    if scheme in ("http", "https"):
        scope["scheme"] = {"http": "ws", "https": "wss"}[scheme] if scope["type"] == "websocket" else scheme
    host = headers.get(b"x-forwarded-host", b"")
    if host:
        headers[b"host"] = host


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_loopback_address(text: str) -> bool:
    return _is_address(text) and ip_address(text).is_loopback


def host_name(host: str) -> str | None:
    """Return the name in a Host header without the port; None if the header is not valid."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def is_same_origin(origin: str, host: str, *, is_secure: bool = False) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in (("https",) if is_secure else ("http", "https")) and parts.netloc == host
