"""Host addresses: whether they reach only this machine, whether they are names, and whether two are the same."""

import re
from functools import lru_cache

CANONICAL_KEPT_MAX = 1_000
"""Addresses whose canonical form is kept."""

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


def same_host(one: str, other: str) -> bool:
    """Return whether two addresses are the same, however they are spelled: an IPv6 address may have brackets, a zone or
    zeros, and an IPv4 address may be mapped to IPv6.
    """
    return one == other or ((":" in one or ":" in other) and canonical_host(one) == canonical_host(other))


@lru_cache(CANONICAL_KEPT_MAX)
def canonical_host(host: str) -> str:
    """Return the one spelling of an address; a name is returned as it is."""
    from ipaddress import ip_address  # only clusters with IPv6 need it

    try:
        address = ip_address(host.removeprefix("[").removesuffix("]").partition("%")[0])
    except ValueError:
        return host
    mapped = address.ipv4_mapped if address.version == 6 else None
    return str(mapped or address)
