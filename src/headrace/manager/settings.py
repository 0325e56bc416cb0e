"""Settings of one manager, and the rules of the address that it listens on."""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from headrace.manager.cluster_address import ClusterAddress
from headrace.operations.errors import OperationError

if TYPE_CHECKING:
    from headrace.manager.access.identity_provider import ProviderSettings

LISTEN_DEFAULT = "127.0.0.1:8092"
CATALOG_DEFAULT = "sqlite:///headrace-manager.db"
PORT_MAX = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSettings:
    """`root_path` is the prefix that a proxy removes, such as `/headrace`; empty without one."""

    cluster: ClusterAddress
    host: str = "127.0.0.1"
    port: int = 8092
    """0 selects a free port."""
    root_path: str = ""
    access_log: bool = True
    catalog: str = CATALOG_DEFAULT
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_ca: str | None = None
    """File with the certificates by which this manager recognises other managers; the system's without it."""
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """Addresses of proxies whose forwarded headers are believed."""
    url: str | None = None
    """Address under which other managers and clients reach this one; that of the listener without it."""

    provider: "ProviderSettings | None" = None
    """Where users log in by OpenID Connect; None for passwords alone."""

    @property
    def is_local(self) -> bool:
        """True if only programs of this machine can reach the manager."""
        return is_loopback(self.host) and not self.proxies


def parse_listen(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > PORT_MAX:
        raise OperationError(f'"{text}" is not an address to listen on: write it as HOST:PORT, as in {LISTEN_DEFAULT}')
    return host, int(port)


def parse_proxies(texts: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(text) for text in texts)
    except ValueError as wrong:
        raise OperationError(f"{wrong}: write the proxy as an address, as in 10.0.0.7 or 10.0.0.0/24") from None


def parse_url(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and parts.hostname and not parts.query and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise OperationError(f'"{text}" is not the address of a manager: write it as in https://manager-1.example:8092')
    return text.rstrip("/")


def check_exposure(settings: ManagerSettings, *, has_users: bool) -> None:
    """Refuse an address that programs of other machines reach, unless users and TLS protect it."""
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise OperationError("TLS needs a certificate and its key: give --tls-cert and --tls-key")
    if settings.is_local:
        return
    if not has_users and settings.provider is None:
        place = "behind a proxy" if settings.proxies else f"on {settings.host}"
        raise OperationError(
            f"the manager has no users, so it serves this machine alone, and not {place}: add one with headrace "
            f"manager users add NAME --role admin, or use {LISTEN_DEFAULT} and reach it from elsewhere through ssh -L"
        )
    if not settings.tls_cert and not settings.proxies:
        raise OperationError(
            "passwords would cross the network in the clear: give --tls-cert and --tls-key to listen on "
            f"{settings.host}, or --behind-proxy with the address of a proxy that does TLS"
        )


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address stands for this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
