"""Ports of loopback that stay a test's own: nobody answers there before its broker does, and nobody else gets them."""

import socket

_held: list[socket.socket] = []
"""To the end of the process, so that a broker finds its port again after any number of restarts."""


def reserved_port() -> int:
    """A port that the kernel gives to nobody else. What listens there sets SO_REUSEADDR, as brokers do."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    _held.append(holder)
    port: int = holder.getsockname()[1]
    return port


def reserved_address() -> str:
    return f"127.0.0.1:{reserved_port()}"
