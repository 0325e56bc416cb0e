"""Distinct types for numbers, so that one kind is not mistaken for another."""

from typing import NamedTuple, NewType

Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
NodeId = NewType("NodeId", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)
Millis = NewType("Millis", int)
TopicId = NewType("TopicId", bytes)
"""The 16 bytes of a topic's UUID, as on the wire."""

NO_TOPIC_ID = TopicId(bytes(16))
NO_OFFSET = Offset(-1)
NO_EPOCH = LeaderEpoch(-1)
NO_NODE = NodeId(-1)
NO_PRODUCER_ID = ProducerId(-1)
NO_PRODUCER_EPOCH = ProducerEpoch(-1)
NO_TIMESTAMP = -1


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
