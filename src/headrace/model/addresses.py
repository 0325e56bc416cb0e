"""Host addresses: whether they reach only this machine."""

import re

_LOOPBACK = re.compile(r"localhost|(::ffff:)?127(\.[0-9]{1,3}){3}|::1", re.IGNORECASE)


def is_loopback(host: str) -> bool:
    """Return whether a host name or an address (IPv6 with or without brackets) is reachable only from its own
    machine.
    """
    return _LOOPBACK.fullmatch(host.removeprefix("[").removesuffix("]")) is not None
