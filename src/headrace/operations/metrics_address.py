"""Address of a broker's metrics page, derived from the broker's config."""

from headrace.model.configs.listeners import parse_address

METRICS_CONFIG = "headrace.metrics.listen"
EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104
"""Listen addresses that mean all interfaces; a client cannot connect to them by that name."""


def metrics_address(broker_host: str, listen: str) -> tuple[str, int]:
    """Return the host and port of the page of a broker that clients reach at `broker_host`."""
    host, port = parse_address(listen)
    return (broker_host if host in EVERYWHERE else host), port
