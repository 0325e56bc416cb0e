"""Parsing of listener configs: NAME://host:port lists, the security protocol map, and plain addresses."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import NamedTuple

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SECURITY_PROTOCOLS_DEFAULT = tuple(f"{name}:{name}" for name in SECURITY_PROTOCOLS)
LISTENERS_MAX = 16
PORT_MAX = 65_535

_LISTENER = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_-]*)://(?P<address>.*)")
_ANY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104  (recognised, not bound)


class Listener(NamedTuple):
    """An address that clients connect to. An empty host means all addresses; port 0 means a free port."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{address_text(self.host, self.port)}"

    @property
    def any_host(self) -> bool:
        """Tell whether it listens on all addresses, so that clients cannot use its host."""
        return self.host in _ANY_ADDRESS


def address_text(host: str, port: int) -> str:
    """Return HOST:PORT, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT, [IPv6]:PORT or :PORT; raise ValueError with the reason otherwise."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isascii() or not port.isdecimal() or int(port) > PORT_MAX:
        raise ValueError(f'"{text}" must end in :PORT, from 0 to {PORT_MAX}')
    bracketed = host.startswith("[") and host.endswith("]")
    if ":" in host and not bracketed:
        raise ValueError(f'"{text}": write an IPv6 address in brackets, as [::1]:{port}')
    return (host[1:-1] if bracketed else host), int(port)


def parse_listeners(items: tuple[str, ...]) -> tuple[Listener, ...]:
    if len(items) > LISTENERS_MAX:
        raise ValueError(f"has {len(items)} listeners, at most {LISTENERS_MAX} are allowed")
    listeners: list[Listener] = []
    for item in items:
        match = _LISTENER.fullmatch(item)
        if match is None:
            raise ValueError(f'"{item}" must look like PLAINTEXT://127.0.0.1:9092')
        host, port = parse_address(match["address"])
        listener = Listener(match["name"].upper(), host, port)
        if any(other.name == listener.name for other in listeners):
            raise ValueError(f"has two listeners named {listener.name}: each name may be used once")
        if port and any((other.host, other.port) == (host, port) for other in listeners):
            raise ValueError(f"has two listeners at {address_text(host, port)}")
        listeners.append(listener)
    return tuple(listeners)


def parse_protocol_map(items: tuple[str, ...]) -> Mapping[str, str]:
    protocols: dict[str, str] = {}
    for item in items:
        name, colon, protocol = item.partition(":")
        if not colon or protocol.upper() not in SECURITY_PROTOCOLS:
            raise ValueError(f'"{item}" must be NAME:PROTOCOL, with one of {", ".join(SECURITY_PROTOCOLS)}')
        protocols[name.strip().upper()] = protocol.upper()
    return protocols


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def listeners_error(text: str) -> str | None:
    try:
        parse_listeners(_items(text))
    except ValueError as wrong:
        return str(wrong)
    return None


def protocol_map_error(text: str) -> str | None:
    try:
        parse_protocol_map(_items(text))
    except ValueError as wrong:
        return str(wrong)
    return None


def address_error(text: str) -> str | None:
    """Check a config that is one HOST:PORT or empty."""
    try:
        if text:
            parse_address(text)
    except ValueError as wrong:
        return str(wrong)
    return None


def overrides_error(text: str) -> str | None:
    """Check a comma-separated list of ADDRESS:COUNT."""
    for item in filter(None, map(str.strip, text.split(","))):
        address, colon, count = item.rpartition(":")
        if not colon or not (count.isascii() and count.isdecimal()):
            return f'"{item}" must look like 10.0.0.1:100'
        try:
            ip_address(address.removeprefix("[").removesuffix("]"))
        except ValueError:
            return f'"{address}" is no IP address: names of hosts are not resolved'
    return None
