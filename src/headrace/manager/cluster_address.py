"""The cluster that a manager serves: its address, and the security settings of the manager's own clients."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.client.config import AdminConfig
from headrace.client.errors import InvalidArgument
from headrace.operations.errors import OperationError

CLIENT_ID = "headrace-manager"
OWN_SETTINGS = frozenset(("bootstrap_servers", "client_id", "request_timeout_ms", "timeout_ms"))
"""Settings that the manager chooses itself."""


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    bootstrap: str
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Settings that every client of the manager gets, such as those of TLS and SASL."""

    def options(self) -> dict[str, Any]:
        """Return the keywords of a client of any kind."""
        return {**self.properties, "bootstrap_servers": self.bootstrap, "client_id": CLIENT_ID}


def check_address(address: ClusterAddress) -> None:
    """Refuse an address or properties that no client accepts, before the first request needs one."""
    for name in address.properties:
        if AdminConfig.field_name(name) in OWN_SETTINGS:
            raise OperationError(f"-X {name}: the manager chooses this setting itself; leave it out")
    try:
        AdminConfig.from_names(address.options())
    except InvalidArgument as wrong:
        raise OperationError(str(wrong)) from None
