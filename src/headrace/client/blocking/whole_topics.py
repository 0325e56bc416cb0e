"""Read a topic from its beginning to its current end, and then stop."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.client.blocking.admin import Admin
from headrace.client.blocking.consumer import Consumer
from headrace.client.errors import BrokerError, ClientError
from headrace.client.types import EARLIEST, ConsumerRecord
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition

QUIET_SECONDS_MAX = 30.0
"""Time without a record, before the end of the topic is reached, after which reading fails."""
POLL_MS = 200
POLL_RECORDS_MAX = 10_000


def read_topic(settings: Mapping[str, Any], topic: str) -> Iterator[ConsumerRecord]:
    """Yield all committed records; none if the topic does not exist."""
    with Admin(config=settings) as admin:
        (described,) = admin.topics([topic])
    if described.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return
    if described.error is not ErrorCode.NONE:
        raise BrokerError(described.error, f'topic "{topic}" cannot be read')
    places = [TopicPartition(topic, each.partition) for each in described.partitions]
    with Consumer(config={**settings, "isolation.level": "read_committed"}) as consumer:
        consumer.assign(places)
        for place in places:
            consumer.seek(place, EARLIEST)
        ends = consumer.end_offsets(places)
        deadline = time.monotonic() + QUIET_SECONDS_MAX
        while any(consumer.position(place) < end for place, end in ends.items()):
            records = consumer.poll(timeout_ms=POLL_MS, max_records=POLL_RECORDS_MAX)
            if records:
                deadline = time.monotonic() + QUIET_SECONDS_MAX
            elif time.monotonic() > deadline:
                raise ClientError(
                    f'topic "{topic}" could not be read to its end: no record arrived in '
                    f"{QUIET_SECONDS_MAX:g} s; check that its brokers are running"
                )
            yield from (record for record in records if record.offset < ends[TopicPartition(topic, record.partition)])
