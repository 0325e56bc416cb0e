"""Parse bootstrap servers: one string with commas, or several strings."""

from collections.abc import Sequence

from headrace.client.core.link import Address
from headrace.client.errors import InvalidArgument

DEFAULT_PORT = 9092
PORT_MAX = 65_535


def parse_bootstrap(servers: str | Sequence[str]) -> tuple[Address, ...]:
    """Return every `host`, `host:port` and `[ipv6]:port`, in order."""
    parts = servers.split(",") if isinstance(servers, str) else servers
    addresses = tuple(_parse(part) for part in parts if not isinstance(part, str) or part.strip())
    if not addresses:
        raise InvalidArgument("no bootstrap server is given: name one as host:port, such as 127.0.0.1:9092")
    return addresses


def _parse(server: str) -> Address:
    if not isinstance(server, str):
        raise InvalidArgument(f"a bootstrap server is a string such as 127.0.0.1:9092, not {server!r}")
    text = server.strip()
    if text.startswith("["):
        host, bracket, port = text[1:].partition("]")
        port = port.removeprefix(":") if bracket else "?"
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    number = int(port) if port.isdecimal() else DEFAULT_PORT
    if not host or "/" in host or (port and not port.isdecimal()) or not 0 < number <= PORT_MAX:
        raise InvalidArgument(f"{server!r} is not a bootstrap server: write it as host:port, such as 127.0.0.1:9092")
    return Address(host, number)
