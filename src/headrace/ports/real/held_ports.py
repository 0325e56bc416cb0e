"""Reserve loopback ports for processes that are started later: the kernel gives them to no other process meanwhile."""

import socket

LOOPBACK = "127.0.0.1"


def held_port() -> socket.socket:
    """Reserves a port, without listening, until it is closed; the later listener sets SO_REUSEADDR."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((LOOPBACK, 0))
    return holder
