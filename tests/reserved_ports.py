"""Ports of loopback that stay a test's own: no server answers there before its broker does, and no other gets them."""

from headrace.bench.brokers import free_ports


def reserved_port() -> int:
    """Held to the end of the process, so that a broker finds it again after any number of restarts."""
    return free_ports(1)[0]


def reserved_address() -> str:
    return f"127.0.0.1:{reserved_port()}"
