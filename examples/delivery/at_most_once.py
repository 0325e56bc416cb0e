"""Copy a topic, each message at most once: what has been read is committed first, then it is written.

A copy that dies in between loses what it had read. Right for readings of a sensor, wrong for orders.

    python examples/delivery/at_most_once.py localhost:9092 orders copies
"""

import sys
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, Message, Producer

READ_AT_ONCE = 500


def copy(bootstrap: str, source: str, target: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"copy-{source}-at-most-once",
            "group.instance.id": "one",  # the same member when it starts again, without waiting for the old one's end
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": False, "retries": 0})
    consumer.subscribe([source])
    while True:
        messages = [checked(message) for message in consumer.consume(READ_AT_ONCE, timeout=1.0)]
        if messages:
            consumer.commit(asynchronous=False)
            for message in messages:
                producer.produce(target, message.value(), key=message.key())
            producer.flush()


def checked(message: Message) -> Message:
    if message.error() is not None:
        raise KafkaException(message.error())
    return message


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python at_most_once.py HOST:PORT SOURCE TARGET")
    with suppress(KeyboardInterrupt):
        copy(*sys.argv[1:])
