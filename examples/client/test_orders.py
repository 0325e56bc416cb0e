"""Test a program that uses the client against a real broker, which the fixture starts and removes."""

from collections import Counter

from headrace import Consumer, Producer
from headrace.testing import EmbeddedBroker

WAIT_MS = 10_000


def count_orders(bootstrap_servers: str, topic: str) -> Counter[str]:
    """The program: count the orders of each item, up to the current end of the topic."""
    counted: Counter[str] = Counter()
    with Consumer(
        topic,
        bootstrap_servers=bootstrap_servers,
        auto_offset_reset="earliest",
        key_deserializer="str",
        value_deserializer="json",
    ) as consumer:
        ends = consumer.end_offsets()
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for record in consumer.poll():
                counted[record.key] += record.value["count"]
    return counted


def test_orders_are_counted(headrace_broker: EmbeddedBroker) -> None:
    servers = headrace_broker.bootstrap_servers
    headrace_broker.create_topic("orders", partitions=4)
    with Producer(servers, key_serializer="str", value_serializer="json") as producer:
        for item, count in (("apple", 3), ("pear", 1), ("apple", 2)):
            producer.send("orders", {"count": count}, key=item)
        producer.flush(timeout_ms=WAIT_MS)
    assert count_orders(servers, "orders") == {"apple": 5, "pear": 1}
