"""A stock client that minds its own business: writes a message, reads it back, notes how long that took.

Run as a process of its own, so that it waits for no other interpreter lock: `python -m tests.hostile.healthy ADDRESS`.
Every round is a line `END_NS LATENCY_NS`; trouble is a line that begins with `trouble`. It ends with its stdin.
"""

import select
import sys
import time

import confluent_kafka

TOPIC = "healthy"
ROUND_S_MAX = 30.0
PAUSE_S = 0.002


class Client:
    def __init__(self, bootstrap_servers: str) -> None:
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap_servers, "linger.ms": 0, "acks": "all", "enable.idempotence": True}
        )
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "unused",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 500,
                "check.crcs": True,
            }
        )
        self._consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
        self._trouble: list[str] = []

    def round(self, number: int) -> int:
        """Nanoseconds from the send to the message read back."""
        value = b"round %d" % number
        began_ns = time.monotonic_ns()
        self._producer.produce(TOPIC, value, on_delivery=self._delivered)
        self._producer.poll(0)
        message = self._consumer.poll(ROUND_S_MAX)
        elapsed_ns = time.monotonic_ns() - began_ns
        if message is None or message.error() is not None or message.value() != value or message.offset() != number:
            raise RuntimeError(f"round {number} read {message and (message.error(), message.value())}")
        self._producer.poll(0)
        if self._trouble:
            raise RuntimeError(self._trouble[0])
        return elapsed_ns

    def _delivered(self, error: confluent_kafka.KafkaError | None, _message: confluent_kafka.Message) -> None:
        if error is not None:
            self._trouble.append(str(error))

    def close(self) -> None:
        self._producer.flush(ROUND_S_MAX)
        self._consumer.close()


def main(bootstrap_servers: str) -> None:
    client = Client(bootstrap_servers)
    number = 0
    try:
        while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
            elapsed_ns = client.round(number)
            print(time.monotonic_ns(), elapsed_ns, flush=True)
            number += 1
    except RuntimeError as trouble:
        print("trouble", trouble, flush=True)
    client.close()


if __name__ == "__main__":
    main(sys.argv[1])
