"""Copy a topic, each message at least once: it is written first, and what has been read is committed when that arrived.

A copy that dies in between writes what it had read again. Right where writing twice does no harm.

    python examples/delivery/at_least_once.py localhost:9092 orders copies
"""

import sys
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

READ_AT_ONCE = 500


def copy(bootstrap: str, source: str, target: str) -> None:
    failures: list[KafkaError] = []
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"copy-{source}-at-least-once",
            "group.instance.id": "one",  # the same member when it starts again, without waiting for the old one's end
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,  # retries by the client leave no duplicates; a new life of the copy does
            "on_delivery": lambda error, _message: failures.append(error) if error is not None else None,
        }
    )
    consumer.subscribe([source])
    while True:
        messages = [checked(message) for message in consumer.consume(READ_AT_ONCE, timeout=1.0)]
        if messages:
            for message in messages:
                producer.produce(target, message.value(), key=message.key())
            producer.flush()
            if failures:
                raise KafkaException(failures[0])  # not committed, so the next life begins here again
            consumer.commit(asynchronous=False)


def checked(message: Message) -> Message:
    if message.error() is not None:
        raise KafkaException(message.error())
    return message


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python at_least_once.py HOST:PORT SOURCE TARGET")
    with suppress(KeyboardInterrupt):
        copy(*sys.argv[1:])
