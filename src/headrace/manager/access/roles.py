"""Roles of the manager's users, and the one table of what each route requires."""

from enum import IntEnum
from typing import NamedTuple


class UserRole(IntEnum):
    """A role may do everything that a lower one may."""

    ANYONE = 0
    VIEWER = 1
    """Sees everything except users, access rules and secrets of brokers."""
    EDITOR = 2
    """Changes topics, records, groups and transactions."""
    ADMIN = 3

    @property
    def label(self) -> str:
        return self.name.lower()


ROLES = {role.label: role for role in (UserRole.VIEWER, UserRole.EDITOR, UserRole.ADMIN)}
"""The roles of users, by name."""


class RouteRule(NamedTuple):
    """The role that a route requires, and how the guard treats its requests."""

    role: UserRole
    is_audited: bool = False
    """True if each request leaves an audit record."""
    has_secrets: bool = False
    """Its body and parameters stay out of the audit record."""
    is_leased: bool = False
    """It changes the catalog, so the holder of the lease serves it."""
    is_stream: bool = False
    """Its response is a stream, which ends when the caller loses the right to it."""
    is_page: bool = False
    """A person who is not logged in is sent to the page with the form."""


ANYONE = RouteRule(UserRole.ANYONE)
SEEN = RouteRule(UserRole.VIEWER)
PAGE = RouteRule(UserRole.VIEWER, is_page=True)
STREAMED = RouteRule(UserRole.VIEWER, is_stream=True)
WRITTEN = RouteRule(UserRole.EDITOR)
WRITTEN_STREAM = RouteRule(UserRole.EDITOR, is_stream=True)
EDITED = RouteRule(UserRole.EDITOR, is_audited=True)
ADMIN_SEEN = RouteRule(UserRole.ADMIN)
ADMINISTERED = RouteRule(UserRole.ADMIN, is_audited=True)
ADMIN_SECRETS = RouteRule(UserRole.ADMIN, is_audited=True, has_secrets=True)
LOGIN = RouteRule(UserRole.ANYONE, is_audited=True, has_secrets=True)
OWN_CHANGE = RouteRule(UserRole.VIEWER, is_audited=True, has_secrets=True)
OWN_LEASED = RouteRule(UserRole.VIEWER, is_audited=True, has_secrets=True, is_leased=True)
CLIENTS = RouteRule(UserRole.EDITOR, is_audited=True, is_leased=True)
CATALOG = RouteRule(UserRole.ADMIN, is_audited=True, is_leased=True)
CATALOG_SECRETS = RouteRule(UserRole.ADMIN, is_audited=True, has_secrets=True, is_leased=True)

RULES: dict[tuple[str, str], RouteRule] = {
    ("GET", "/healthz"): ANYONE,
    ("GET", "/readyz"): ANYONE,
    ("GET", "/metrics"): SEEN,
    ("GET", "/"): PAGE,
    ("GET", "/overview"): SEEN,
    ("GET", "/login"): ANYONE,
    ("POST", "/login"): LOGIN,
    ("GET", "/login/oidc"): ANYONE,
    ("GET", "/login/oidc/callback"): LOGIN,
    ("GET", "/reference"): PAGE,
    ("GET", "/assets/{name}"): ANYONE,
    ("GET", "/v1/openapi.json"): SEEN,
    ("GET", "/v1/session"): SEEN,
    ("POST", "/v1/session"): LOGIN,
    ("DELETE", "/v1/session"): OWN_CHANGE,
    ("GET", "/v1/access/users"): ADMIN_SEEN,
    ("POST", "/v1/access/users"): CATALOG_SECRETS,
    ("PATCH", "/v1/access/users/{user}"): CATALOG_SECRETS,
    ("DELETE", "/v1/access/users/{user}"): CATALOG,
    ("DELETE", "/v1/access/users/{user}/sessions"): ADMINISTERED,
    ("GET", "/v1/access/tokens"): SEEN,
    ("POST", "/v1/access/tokens"): OWN_LEASED,
    ("DELETE", "/v1/access/tokens/{token}"): OWN_LEASED,
    ("GET", "/v1/access/masks"): ADMIN_SEEN,
    ("POST", "/v1/access/masks"): CATALOG,
    ("DELETE", "/v1/access/masks/{mask}"): CATALOG,
    ("GET", "/v1/managers"): SEEN,
    ("GET", "/v1/audit"): ADMIN_SEEN,
    ("GET", "/v1/history/topics/{topic}"): SEEN,
    ("GET", "/v1/history/groups/{group}"): SEEN,
    ("GET", "/v1/topics"): SEEN,
    ("POST", "/v1/topics"): EDITED,
    ("PUT", "/v1/topics"): EDITED,
    ("GET", "/v1/topics/{topic}"): SEEN,
    ("PATCH", "/v1/topics/{topic}"): EDITED,
    ("DELETE", "/v1/topics/{topic}"): EDITED,
    ("GET", "/v1/topics/{topic}/partitions"): SEEN,
    ("GET", "/v1/topics/{topic}/configs"): SEEN,
    ("PATCH", "/v1/topics/{topic}/configs"): EDITED,
    ("POST", "/v1/topics/{topic}/records"): WRITTEN,
    ("GET", "/v1/topics/{topic}/records"): SEEN,
    ("DELETE", "/v1/topics/{topic}/records"): EDITED,
    ("GET", "/v1/topics/{topic}/stream"): STREAMED,
    ("GET", "/v1/clients"): SEEN,
    ("POST", "/v1/clients"): CLIENTS,
    ("GET", "/v1/clients/{client}"): SEEN,
    ("DELETE", "/v1/clients/{client}"): CLIENTS,
    ("POST", "/v1/clients/{client}/heartbeat"): WRITTEN,
    ("POST", "/v1/clients/{client}/records"): WRITTEN,
    ("POST", "/v1/clients/{client}/reads"): WRITTEN,
    ("POST", "/v1/clients/{client}/acks"): WRITTEN,
    ("GET", "/v1/clients/{client}/stream"): WRITTEN_STREAM,
    ("WEBSOCKET", "/v1/subscriptions"): STREAMED,
    ("GET", "/v1/events"): STREAMED,
    ("GET", "/v1/connections"): SEEN,
    ("GET", "/v1/brokers"): SEEN,
    ("GET", "/v1/brokers/{node_id}"): SEEN,
    ("DELETE", "/v1/brokers/{node_id}"): ADMINISTERED,
    ("POST", "/v1/brokers/{node_id}/drain"): ADMINISTERED,
    ("GET", "/v1/brokers/{broker}/configs"): SEEN,
    ("PATCH", "/v1/brokers/{broker}/configs"): ADMIN_SECRETS,
    ("GET", "/v1/cluster"): SEEN,
    ("GET", "/v1/cluster/quorum"): SEEN,
    ("GET", "/v1/groups"): SEEN,
    ("GET", "/v1/groups/{group}"): SEEN,
    ("DELETE", "/v1/groups/{group}"): EDITED,
    ("GET", "/v1/groups/{group}/lag"): SEEN,
    ("POST", "/v1/groups/{group}/reset"): EDITED,
    ("GET", "/v1/transactions"): SEEN,
    ("GET", "/v1/transactions/{transactional_id}"): SEEN,
    ("POST", "/v1/transactions/{transactional_id}/abort"): EDITED,
    ("POST", "/v1/brokers/invitations"): ADMINISTERED,
    ("PUT", "/v1/cluster/quorum/voters/{node_id}"): ADMINISTERED,
    ("DELETE", "/v1/cluster/quorum/voters/{node_id}"): ADMINISTERED,
    ("GET", "/v1/users"): ADMIN_SEEN,
    ("PUT", "/v1/users/{user}"): ADMIN_SECRETS,
    ("DELETE", "/v1/users/{user}"): ADMINISTERED,
    ("GET", "/v1/acls"): ADMIN_SEEN,
    ("POST", "/v1/acls"): ADMINISTERED,
    ("DELETE", "/v1/acls"): ADMINISTERED,
    ("GET", "/v1/acls/decision"): ADMIN_SEEN,
    ("GET", "/v1/quotas"): ADMIN_SEEN,
    ("PATCH", "/v1/quotas"): ADMINISTERED,
}
"""By method and path. The method of a WebSocket is WEBSOCKET. A route that is missing here is refused."""


class RuleBook:
    """Finds the rule of a request by its method and path, before the application reads its body."""

    def __init__(self, rules: dict[tuple[str, str], RouteRule]) -> None:
        self._rules: dict[tuple[str, int], list[tuple[tuple[str, ...], str, RouteRule]]] = {}
        for (method, path), rule in rules.items():
            parts = tuple(path.split("/"))
            self._rules.setdefault((method, len(parts)), []).append((parts, path, rule))

    def find(self, method: str, path: str) -> tuple[str, RouteRule] | None:
        """Return the path of the route and its rule; None if there is no such route."""
        parts = path.split("/")
        for wanted, route, rule in self._rules.get(("GET" if method == "HEAD" else method, len(parts)), ()):
            if all(one == other or (one.startswith("{") and other) for one, other in zip(wanted, parts, strict=True)):
                return route, rule
        return None
