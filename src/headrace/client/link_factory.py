"""Create the links of a client from its config; the same for every front."""

from collections.abc import Callable

from headrace.client.addresses import parse_bootstrap
from headrace.client.config import ClientConfig
from headrace.client.core.cluster import Cluster
from headrace.client.core.link import PLAINTEXT, Security
from headrace.client.core.links import Links
from headrace.ports.clock import Clock
from headrace.ports.entropy import Entropy
from headrace.ports.network import Network

CONNECT_MS_MAX = 10_000


def make_links(
    config: ClientConfig,
    cluster: Cluster,
    *,
    network: Network,
    clock: Clock,
    entropy: Entropy,
    security: Security = PLAINTEXT,
    tell: Callable[[str], object] | None = None,
) -> Links:
    return Links(
        network=network,
        clock=clock,
        bootstrap=parse_bootstrap(config.bootstrap_servers),
        client_id=config.client_id,
        cluster=cluster,
        request_timeout_ms=config.request_timeout_ms,
        connect_timeout_ms=min(config.request_timeout_ms, CONNECT_MS_MAX),
        choose=entropy.below,
        tell=tell,
        security=security,
    )
