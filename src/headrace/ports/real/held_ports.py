"""Ports of loopback for what is started later: the kernel gives them to nobody else meanwhile."""

import socket

LOOPBACK = "127.0.0.1"


def held_port() -> socket.socket:
    """Holds a port, without listening there, until it is closed; what listens there sets SO_REUSEADDR."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((LOOPBACK, 0))
    return holder
