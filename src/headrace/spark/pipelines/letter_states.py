"""The replayed dead letters: the offset below which none is left, and a bitmap of those replayed above it.

The offset is the committed one of the replay's group. Dead letters that a replay did not select stay, so others above
the offset may be replayed already: those are bits of a map, with a record for each chunk of offsets in a compacted
topic. Both are written in the transaction that sends the dead letters.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.client import Admin, NewTopic, TopicPartition
from headrace.client.blocking.whole_topics import read_topic
from headrace.client.errors import BrokerError
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicId

CHUNK_OFFSETS = 10_000
"""Offsets of one partition whose bits share a record: at most 2.5 KB of text."""
TOPIC_CONFIGS = {"cleanup.policy": "compact"}


def topic_of(pipeline: str) -> str:
    """Return the topic of this pipeline alone: an open transaction of another one would hide the newest records."""
    return f"__headrace_letters.{pipeline}"


class ReplayedLetters:
    """The replayed dead letters of one topic that follow others which were not replayed."""

    def __init__(self, pipeline: str, topic_id: TopicId) -> None:
        self.topic = topic_of(pipeline)
        self._topic_id = str(topic_id)
        self._bits: dict[tuple[TopicPartition, int], int] = {}
        self._has_topic = False

    def load(self, settings: Mapping[str, Any]) -> None:
        """Read the bitmaps; those of a topic that was deleted and created again under the same name are ignored."""
        for record in read_topic(settings, self.topic):
            self._has_topic = True
            topic_id, topic, partition, chunk = json.loads(record.key or b"[]")
            if topic_id == self._topic_id:
                self._bits[TopicPartition(topic, partition), chunk] = int(record.value or b"0", 16)

    def has(self, place: TopicPartition, offset: int) -> bool:
        chunk, bit = divmod(offset, CHUNK_OFFSETS)
        return bool(self._bits.get((place, chunk), 0) >> bit & 1)

    def changes(
        self, sent: Mapping[TopicPartition, list[int]], left: Mapping[TopicPartition, int]
    ) -> list[tuple[bytes, bytes | None]]:
        """Note dead letters as replayed; return the records to write, without those below `left`."""
        touched: set[tuple[TopicPartition, int]] = set()
        for place, offsets in sent.items():
            for offset in offsets:
                chunk, bit = divmod(offset, CHUNK_OFFSETS)
                self._bits[place, chunk] = self._bits.get((place, chunk), 0) | 1 << bit
                if offset >= left[place]:
                    touched.add((place, chunk))
        return [*self._written(touched), *self._removed(left)]

    def _written(self, touched: set[tuple[TopicPartition, int]]) -> Iterator[tuple[bytes, bytes]]:
        for place, chunk in sorted(touched):
            yield self._key(place, chunk), f"{self._bits[place, chunk]:x}".encode()

    def _removed(self, left: Mapping[TopicPartition, int]) -> Iterator[tuple[bytes, None]]:
        """Yield the chunks that lie completely below the offset; without the topic there are none."""
        for place, chunk in sorted(self._bits):
            if (chunk + 1) * CHUNK_OFFSETS <= left.get(place, 0):
                del self._bits[place, chunk]
                if self._has_topic:
                    yield self._key(place, chunk), None

    def _key(self, place: TopicPartition, chunk: int) -> bytes:
        return json.dumps([self._topic_id, place.topic, place.partition, chunk]).encode()

    def make_topic(self, settings: Mapping[str, Any]) -> None:
        """Create the topic if it does not exist."""
        if self._has_topic:
            return
        with Admin(config=dict(settings)) as admin:
            wanted = NewTopic(self.topic, partitions=1, replication_factor=-1, configs=TOPIC_CONFIGS)
            outcome = admin.create_topics([wanted])[self.topic]
        if outcome.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise BrokerError(outcome.error, f"the topic {self.topic} cannot be created", outcome.message)
        self._has_topic = True
