"""The lag of a pipeline: the number of unread records, and the age of the oldest of them."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headrace.client import LATEST, Admin, Consumer, TopicPartition
from headrace.client.config_options import EXISTING_TOPICS
from headrace.client.errors import ClientError
from headrace.model.errors import ErrorCode

LOOK_MS_MAX = 2_000
"""Time limit for reading the oldest unread records of all partitions."""
LOOK_BYTES = 1


class SourceLag(NamedTuple):
    topic: str
    partition: int
    read_to: int
    """The offset of the next record."""
    end: int
    seconds: float | None
    """The age of the oldest unread record; zero if there is none, None if it could not be read."""

    @property
    def records(self) -> int:
        return max(self.end - self.read_to, 0)


def find_lags(
    admin: Admin, settings: Mapping[str, Any], ends: Mapping[str, Mapping[str, int]], *, with_age: bool = True
) -> list[SourceLag]:
    """Compute the lags; `ends` are the positions of the pipeline: topic, partition, offset."""
    read_to = {
        TopicPartition(topic, int(number)): offset for topic, found in ends.items() for number, offset in found.items()
    }
    if not read_to:
        return []
    found = admin.offsets(dict.fromkeys(read_to, LATEST))
    newest = {place: at.offset for place, at in found.items() if at.error is ErrorCode.NONE}
    behind = [place for place, end in newest.items() if end > read_to[place]]
    ages = _ages(settings, {place: read_to[place] for place in behind}) if with_age and behind else {}
    return [
        SourceLag(
            place.topic, place.partition, read_to[place], newest[place], 0.0 if place not in behind else ages.get(place)
        )
        for place in sorted(newest)
    ]


def _ages(settings: Mapping[str, Any], places: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
    """Return the age of the first record at or after each position."""
    found: dict[TopicPartition, float] = {}
    options = {**settings, "max.partition.fetch.bytes": LOOK_BYTES, "auto.offset.reset": "earliest", **EXISTING_TOPICS}
    deadline = time.monotonic() + LOOK_MS_MAX / 1000
    try:
        with Consumer(config=options) as consumer:
            consumer.assign(places)
            for place, offset in places.items():
                consumer.seek(place, offset)
            while len(found) < len(places) and time.monotonic() < deadline:
                for record in consumer.poll(timeout_ms=100):
                    place = TopicPartition(record.topic, record.partition)
                    found.setdefault(place, max(time.time() - record.timestamp / 1000, 0.0))
    except ClientError:
        return found
    return found


def summary(lags: Sequence[SourceLag]) -> dict[str, Any]:
    """Summarise the lag for the progress record; `behind_latest` has the metric names of Spark's Kafka connector."""
    behind = [each.records for each in lags]
    ages = [each.seconds for each in lags if each.seconds is not None]
    return {
        "records": sum(each.records for each in lags),
        "seconds": round(max(ages, default=0.0), 3),
        "behind_latest": {
            "min": min(behind, default=0),
            "avg": round(sum(behind) / max(len(behind), 1), 3),
            "max": max(behind, default=0),
        },
        "partitions": [
            {"topic": each.topic, "partition": each.partition, "records": each.records, "seconds": each.seconds}
            for each in lags
        ],
    }
