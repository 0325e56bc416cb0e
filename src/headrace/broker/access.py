"""Access control. Every request asks here; until access control lists exist, everything is allowed."""

from collections.abc import Iterable

from headrace.model.access import AclResourceType, Operation, Principal
from headrace.model.addresses import is_loopback
from headrace.model.configs.listeners import address_text

OPEN_LISTENER = "reachable from other machines without authentication"
OPEN_LISTENER_ADVICE = (
    "everyone who reaches it may read, write and delete every topic: bind it to 127.0.0.1, or let a firewall admit "
    "trusted hosts only"
)
UNENCRYPTED_LOGINS = (
    "is reachable from other machines with SASL_PLAINTEXT: logins and data cross the network unencrypted; use SASL_SSL"
)


class OpenAccess:
    """Allows every operation; `open_to_all` lets Produce and Fetch skip the check."""

    open_to_all = True

    def authorize(self, principal: Principal, operation: Operation, resource_type: AclResourceType, name: str) -> bool:
        return True


def open_listeners(bound: Iterable[tuple[str, int]]) -> list[str]:
    """Return HOST:PORT of the listeners that other machines can reach."""
    return [address_text(host, port) for host, port in bound if not is_loopback(host)]
