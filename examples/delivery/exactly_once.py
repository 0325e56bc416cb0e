"""Copy a topic, each message exactly once: what is written and how far was read are committed in one transaction.

A copy that dies, or that an error ends, leaves an open transaction, which its next life aborts by asking for the same
transactional id. Readers with `isolation.level=read_committed` never see it.

    python examples/delivery/exactly_once.py localhost:9092 orders copies
"""

import sys
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, Message, Producer

READ_AT_ONCE = 500
TRANSACTION_S_MAX = 30.0


def copy(bootstrap: str, source: str, target: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"copy-{source}-exactly-once",
            "group.instance.id": "one",  # the same member when it starts again, without waiting for the old one's end
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"copy-{source}",
            # When its only broker is gone for a moment, librdkafka 2.16 can wait for one that it has given up itself.
            "metadata.recovery.strategy": "none",
        }
    )
    producer.init_transactions(TRANSACTION_S_MAX)
    consumer.subscribe([source])
    while True:
        messages = [checked(message) for message in consumer.consume(READ_AT_ONCE, timeout=1.0)]
        if messages:
            producer.begin_transaction()
            for message in messages:
                producer.produce(target, message.value(), key=message.key())
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), TRANSACTION_S_MAX)
            producer.commit_transaction(TRANSACTION_S_MAX)


def checked(message: Message) -> Message:
    if message.error() is not None:
        raise KafkaException(message.error())
    return message


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python exactly_once.py HOST:PORT SOURCE TARGET")
    with suppress(KeyboardInterrupt):
        copy(*sys.argv[1:])
