"""Addresses of hosts: which of them reach this machine alone."""

import re

_LOOPBACK = re.compile(r"localhost|(::ffff:)?127(\.[0-9]{1,3}){3}|::1", re.IGNORECASE)


def is_loopback(host: str) -> bool:
    """Whether a host name or an address (IPv6 with or without brackets) is reachable from its own machine only."""
    return _LOOPBACK.fullmatch(host.removeprefix("[").removesuffix("]")) is not None
