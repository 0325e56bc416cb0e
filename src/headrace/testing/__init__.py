"""A real broker inside your tests: the embedded broker and the pytest plugin.

from headrace.testing import EmbeddedBroker

with EmbeddedBroker() as broker:
    broker.create_topic("orders", partitions=4)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
"""

from headrace.testing.embedded import EmbeddedBroker

__all__ = ["EmbeddedBroker"]
