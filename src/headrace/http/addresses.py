"""The choice of a manager for a request: in turn, those that have just failed last, changes at the lease's holder."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

AVOIDED_MS = 5_000
"""Time for which a manager that has failed is tried after all others."""

LIST_AGE_MS_MAX = 30_000
"""Age at which the list of managers is loaded again."""

MANAGERS_MAX = 100
"""Managers that a client keeps from a list."""

CATALOG_PATHS = ("/v1/access/", "/v1/masks", "/v1/clients")
"""Changes below these paths are made by the holder of the lease; other managers would forward them."""
POSITIONS = ("/records", "/reads", "/acks", "/heartbeat")


class ManagerAddresses:
    """Knows managers by their URLs. The given ones are kept, because a list may be wrong or empty."""

    def __init__(self, given: Sequence[str]) -> None:
        if not given:
            raise ValueError("give the address of at least one manager, such as http://127.0.0.1:8092")
        self._given = tuple(_checked(url) for url in given)
        self._listed: tuple[str, ...] = ()
        self._holder = ""
        self._listed_at_ms: float | None = None
        self._failed_until_ms: dict[str, float] = {}
        self._turn = 0

    def is_list_old(self, now_ms: float) -> bool:
        return self._listed_at_ms is None or now_ms - self._listed_at_ms >= LIST_AGE_MS_MAX

    def learn(self, managers: Iterable[Mapping[str, Any]], now_ms: float) -> None:
        """Take the response of GET /v1/managers. A URL with another scheme is left out: it could get a token."""
        scheme = urlsplit(self._given[0]).scheme
        alive = [each for each in managers if each.get("is_alive") and urlsplit(str(each["url"])).scheme == scheme]
        self._listed = tuple(str(each["url"]).rstrip("/") for each in alive[:MANAGERS_MAX])
        self._holder = next((str(each["url"]).rstrip("/") for each in alive if each.get("holds_lease")), "")
        self._listed_at_ms = now_ms

    def not_listed(self, now_ms: float) -> None:
        """Remember that the list could not be loaded, so that not every request tries."""
        self._listed_at_ms = now_ms

    def in_order(self, method: str, path: str, now_ms: float) -> list[str]:
        """Return all managers in the order in which to try them for a request."""
        known = list(dict.fromkeys((*self._listed, *(() if self._listed else self._given))))
        self._turn += 1
        first = self._turn % len(known)
        turned = known[first:] + known[:first]
        if self._holder and is_catalog_change(method, path):
            turned.sort(key=lambda url: url != self._holder)
        turned += [url for url in self._given if url not in turned]
        return sorted(turned, key=lambda url: self._failed_until_ms.get(url, 0.0) > now_ms)

    def failed(self, url: str, now_ms: float) -> None:
        self._failed_until_ms[url] = now_ms + AVOIDED_MS

    def worked(self, url: str) -> None:
        self._failed_until_ms.pop(url, None)


def is_catalog_change(method: str, path: str) -> bool:
    return method != "GET" and path.startswith(CATALOG_PATHS) and not path.endswith(POSITIONS)


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f'"{url}" is not the address of a manager: write it as in http://127.0.0.1:8092')
    return url.rstrip("/")
