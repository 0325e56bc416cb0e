"""The topic in which runs tell what they do, as a place to write to and to read from."""

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
"""A run that cannot tell of itself goes on with its work after this long."""


def make_topic(admin: Admin) -> None:
    """The topic is there when this returns; several may ask at once."""
    outcome = admin.create_topics([NewTopic(TOPIC, partitions=1, replication_factor=-1, configs=TOPIC_CONFIGS)])[TOPIC]
    if outcome.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        raise BrokerError(outcome.error, f"the topic {TOPIC} cannot be made", outcome.message)


def exists(admin: Admin) -> bool:
    return admin.topics([TOPIC])[0].error is ErrorCode.NONE


class Bulletin:
    """Records so far are in `ledger`; `follow` brings the newer ones."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.ledger = Ledger()
        self._producer = Producer(config={**settings, "max.block.ms": BLOCK_MS_MAX, "linger.ms": 0})
        self._consumer = Consumer(
            config={**settings, "auto.offset.reset": "earliest", "max.poll.records": 10_000, **EXISTING_TOPICS}
        )
        self._consumer.assign([PARTITION])
        self._consumer.seek(PARTITION, EARLIEST)

    def tell(self, message: tuple[str, bytes]) -> Delivery:
        """Handed over and not waited for; what is told again soon may get lost."""
        key, value = message
        return self._producer.send(TOPIC, value, key=key.encode())

    def tell_now(self, message: tuple[str, bytes]) -> None:
        """In the topic when this returns."""
        key, value = message
        self._producer.send(TOPIC, value, key=key.encode()).result(timeout_ms=BLOCK_MS_MAX)

    def follow(self, timeout_ms: float) -> None:
        """Wait for new records, at most so long."""
        for record in self._consumer.poll(timeout_ms=timeout_ms):
            self.ledger.apply(record.timestamp, record.value)

    def catch_up(self) -> Ledger:
        """Read on to what is the end now."""
        end = self._consumer.end_offsets([PARTITION])[PARTITION]
        deadline = time.monotonic() + READ_SECONDS_MAX
        while self._consumer.position(PARTITION) < end:
            if time.monotonic() > deadline:
                raise ClientError(f"the topic {TOPIC} was not read to its end in {READ_SECONDS_MAX:g} s")
            self.follow(100)
        return self.ledger

    def close(self) -> None:
        try:
            self._producer.close(timeout_ms=BLOCK_MS_MAX)
        finally:
            self._consumer.close()


@contextmanager
def opened(settings: Mapping[str, Any]) -> Iterator[Bulletin]:
    bulletin = Bulletin(settings)
    try:
        yield bulletin
    finally:
        bulletin.close()
