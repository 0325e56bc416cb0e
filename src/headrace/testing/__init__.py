"""A real broker inside your tests: the embedded broker, the embedded cluster and the pytest plugin.

from headrace.testing import EmbeddedBroker

with EmbeddedBroker() as broker:
    broker.create_topic("orders", partitions=4)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
"""

from typing import TYPE_CHECKING, Any

from headrace.testing.embedded import EmbeddedBroker

if TYPE_CHECKING:
    from headrace.testing.cluster import EmbeddedCluster
    from headrace.testing.security import BrokerSecurity

__all__ = ["BrokerSecurity", "EmbeddedBroker", "EmbeddedCluster"]


def __getattr__(name: str) -> Any:
    """Import the cluster and the security when they are first used: a test with one broker does not pay for them."""
    if name == "EmbeddedCluster":
        from headrace.testing.cluster import EmbeddedCluster

        return EmbeddedCluster
    if name == "BrokerSecurity":
        from headrace.testing.security import BrokerSecurity

        return BrokerSecurity
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
