"""The address of the metrics page of a broker, as its configuration says."""

from headrace.model.configs.listeners import parse_address

METRICS_CONFIG = "headrace.metrics.listen"
EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104
"""Addresses that listen on all interfaces and name none."""


def metrics_address(broker_host: str, listen: str) -> tuple[str, int]:
    """The host and port to ask, for a broker that is reached at `broker_host`."""
    host, port = parse_address(listen)
    return (broker_host if host in EVERYWHERE else host), port
