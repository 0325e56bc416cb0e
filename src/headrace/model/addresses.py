"""Host addresses: whether they reach only this machine, and whether they are names."""

import re

_NUMERIC = re.compile(r"[0-9]+(\.[0-9]+){3}|[0-9a-fA-F.]*:[0-9a-fA-F.:]*(%.+)?")
_LOOPBACK = re.compile(r"localhost|(::ffff:)?127(\.[0-9]{1,3}){3}|::1", re.IGNORECASE)


def needs_resolver(host: str) -> bool:
    """Return whether a connection to the host begins with a question to the resolver: neither an address nor
    localhost.
    """
    return host != "localhost" and _NUMERIC.fullmatch(host) is None


def is_loopback(host: str) -> bool:
    """Return whether a host name or an address (IPv6 with or without brackets) is reachable only from its own
    machine.
    """
    return _LOOPBACK.fullmatch(host.removeprefix("[").removesuffix("]")) is not None
