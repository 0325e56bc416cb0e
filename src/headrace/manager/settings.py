"""Settings of one manager, and the check of the address that it listens on."""

from dataclasses import dataclass
from ipaddress import ip_address

from headrace.operations.errors import OperationError

LISTEN_DEFAULT = "127.0.0.1:8092"
PORT_MAX = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSettings:
    """`root_path` is the prefix that a proxy removes, such as `/headrace`; empty without one."""

    bootstrap: str
    host: str = "127.0.0.1"
    port: int = 8092
    """0 selects a free port."""
    root_path: str = ""
    access_log: bool = True


def parse_listen(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`; only loopback addresses are accepted, because there are no users yet."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > PORT_MAX:
        raise OperationError(f'"{text}" is not an address to listen on: write it as HOST:PORT, as in {LISTEN_DEFAULT}')
    if not is_loopback(host):
        raise OperationError(
            f"the manager has no users, so it listens on this machine alone, and not on {host}: use {LISTEN_DEFAULT}, "
            "and reach it from elsewhere through ssh -L"
        )
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address stands for this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
