"""Producers of the manager: one for each level of acknowledgement, shared by all requests."""

import asyncio
from collections.abc import Sequence
from typing import Literal, NamedTuple

from headrace.client.aio.producer import Delivery, Producer
from headrace.client.errors import ClientError
from headrace.client.types import RecordMetadata
from headrace.manager.limits import PRODUCE_TIMEOUT_MS, REQUEST_BODY_BYTES_MAX
from headrace.manager.metrics import ManagerMetrics

Acks = Literal["all", 1, 0]
BATCH_BYTES = 256 << 10
"""Size of a batch: requests bring many records at once."""
REQUEST_BYTES_MAX = REQUEST_BODY_BYTES_MAX + (64 << 10)
"""Size of a request to a broker: the largest body as one record, so that the topic's own limit decides."""
LINGER_MS = 1.0
MAX_BLOCK_MS = 5_000
"""Time that a record waits for an unknown topic or for space in the buffer."""


class WrittenRecord(NamedTuple):
    """A record to send; None leaves the partition and the timestamp to the producer."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


class Writers:
    def __init__(self, bootstrap: str, metrics: ManagerMetrics) -> None:
        self._bootstrap = bootstrap
        self._metrics = metrics
        self._producers: dict[Acks, Producer] = {}

    async def write(
        self, topic: str, records: Sequence[WrittenRecord], *, acks: Acks
    ) -> list[RecordMetadata | ClientError]:
        """Send the records and return the position or the error of each, in order."""
        producer = self._producer(acks)
        sent: list[Delivery | ClientError] = []
        for record in records:
            try:
                sent.append(
                    await producer.send(
                        topic, record.value, record.key, record.headers, record.partition, record.timestamp
                    )
                )
            except ClientError as error:
                sent.append(error)
                if not sent[:-1]:
                    return [error] * len(records)  # The topic or the broker, so it holds for the others.
        outcomes = [each if isinstance(each, ClientError) else await _outcome(each) for each in sent]
        self._metrics.records_produced += sum(isinstance(each, RecordMetadata) for each in outcomes)
        return outcomes

    def _producer(self, acks: Acks) -> Producer:
        found = self._producers.get(acks)
        if found is None:
            found = self._producers[acks] = Producer(
                self._bootstrap,
                client_id="headrace-manager",
                acks=acks,
                linger_ms=LINGER_MS,
                batch_size=BATCH_BYTES,
                max_request_size=REQUEST_BYTES_MAX,
                max_block_ms=MAX_BLOCK_MS,
                delivery_timeout_ms=PRODUCE_TIMEOUT_MS,
                request_timeout_ms=PRODUCE_TIMEOUT_MS,
            )
        return found

    async def close(self) -> None:
        producers, self._producers = [*self._producers.values()], {}
        await asyncio.gather(*(producer.close() for producer in producers), return_exceptions=True)


async def _outcome(delivery: Delivery) -> RecordMetadata | ClientError:
    try:
        return await delivery
    except ClientError as error:
        return error
