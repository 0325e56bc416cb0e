"""Read and write the status topic, in which runs publish their state and progress."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from headrace.client import EARLIEST, Admin, Consumer, NewTopic, Producer, TopicPartition
from headrace.client.blocking.delivery import Delivery
from headrace.client.config_options import EXISTING_TOPICS
from headrace.client.errors import BrokerError, ClientError
from headrace.model.errors import ErrorCode
from headrace.spark.pipelines.records import TOPIC, TOPIC_CONFIGS, Ledger

PARTITION = TopicPartition(TOPIC, 0)
READ_SECONDS_MAX = 30.0
BLOCK_MS_MAX = 5_000
"""Time after which a run that cannot publish its status continues with its work."""


def make_topic(admin: Admin) -> None:
    """Create the topic if it does not exist; several processes may call this at once."""
    outcome = admin.create_topics([NewTopic(TOPIC, partitions=1, replication_factor=-1, configs=TOPIC_CONFIGS)])[TOPIC]
    if outcome.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        raise BrokerError(outcome.error, f"the topic {TOPIC} cannot be created", outcome.message)


def exists(admin: Admin) -> bool:
    return admin.topics([TOPIC])[0].error is ErrorCode.NONE


class StatusTopic:
    """`ledger` has the records so far; `follow` adds newer ones."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.ledger = Ledger()
        self._producer = Producer(config={**settings, "max.block.ms": BLOCK_MS_MAX, "linger.ms": 0})
        self._consumer = Consumer(
            config={**settings, "auto.offset.reset": "earliest", "max.poll.records": 10_000, **EXISTING_TOPICS}
        )
        self._consumer.assign([PARTITION])
        self._consumer.seek(PARTITION, EARLIEST)

    def publish(self, message: tuple[str, bytes]) -> Delivery:
        """Send a record without waiting; it may be lost if it is repeated soon."""
        key, value = message
        return self._producer.send(TOPIC, value, key=key.encode())

    def publish_and_wait(self, message: tuple[str, bytes]) -> None:
        """Send a record and wait until it is in the topic."""
        key, value = message
        self._producer.send(TOPIC, value, key=key.encode()).result(timeout_ms=BLOCK_MS_MAX)

    def follow(self, timeout_ms: float) -> None:
        """Wait for new records, at most this long."""
        for record in self._consumer.poll(timeout_ms=timeout_ms):
            self.ledger.apply(record.timestamp, record.value)

    def catch_up(self) -> Ledger:
        """Read to the current end."""
        end = self._consumer.end_offsets([PARTITION])[PARTITION]
        deadline = time.monotonic() + READ_SECONDS_MAX
        while self._consumer.position(PARTITION) < end:
            if time.monotonic() > deadline:
                raise ClientError(
                    f"the topic {TOPIC} could not be read to its end in {READ_SECONDS_MAX:g} s; "
                    "check that its brokers are running"
                )
            self.follow(100)
        return self.ledger

    def close(self) -> None:
        try:
            self._producer.close(timeout_ms=BLOCK_MS_MAX)
        finally:
            self._consumer.close()


@contextmanager
def opened(settings: Mapping[str, Any]) -> Iterator[StatusTopic]:
    bulletin = StatusTopic(settings)
    try:
        yield bulletin
    finally:
        bulletin.close()
