"""A task's records under a lent identity, and what readers of committed records make of them."""

import time

from headrace.client import Consumer, TopicPartition
from headrace.client.batch_commits import BatchWriter
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import produce
from headrace.wire.records.builder import NewRecord, build_batch
from tests.broker_process.raw_connection import RawConnection

PRODUCE_VERSION = 12
"""From here on the first record adds its partition to the transaction."""

READ_S_MAX = 60.0
TIMESTAMP = 1_700_000_000_000


def write(
    connection: RawConnection, writer: BatchWriter, topic: str, *values: bytes, partition: int = 0, sequence: int = 0
) -> ErrorCode:
    batch = build_batch(
        [NewRecord(TIMESTAMP, None, value) for value in values],
        producer_id=writer.producer_id,
        producer_epoch=writer.producer_epoch,
        base_sequence=sequence,
        transactional=True,
    )
    request = produce.ProduceRequest(
        transactional_id=writer.transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=(
            produce.ProduceRequestTopic(
                name=topic, partition_data=(produce.ProduceRequestPartition(index=partition, records=batch),)
            ),
        ),
    )
    answer = connection.call(ApiKey.PRODUCE, PRODUCE_VERSION, request)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def committed_values(bootstrap_servers: str, topic: str, count: int, *, partition: int = 0) -> list[bytes]:
    """Return `count` committed values in order, and those after them that are there already."""
    with Consumer(
        bootstrap_servers=bootstrap_servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.assign([TopicPartition(topic, partition)])
        found: list[bytes] = []
        deadline = time.monotonic() + READ_S_MAX
        while len(found) < count and time.monotonic() < deadline:
            found += [record.value or b"" for record in consumer.poll(timeout_ms=200)]
        found += [record.value or b"" for record in consumer.poll(timeout_ms=50)]
        return found
