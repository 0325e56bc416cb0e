"""A partition leader that keeps Kafka's rules for idempotent producers, as a plain list."""

from dataclasses import dataclass, field
from typing import Any

from headrace.model.errors import ErrorCode
from headrace.wire.messages import init_producer_id, metadata, produce
from headrace.wire.records.header import BASE_SEQUENCE, PRODUCER_ID
from headrace.wire.records.reader import check_batch, records

TOPIC_ID = bytes(range(16))
CACHED_BATCHES = 5


@dataclass
class ModelPartition:
    values: list[bytes | None] = field(default_factory=list)
    next_sequence: dict[int, int] = field(default_factory=dict)
    cached: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    """Producer id -> (sequence, count, base offset) of its last batches."""

    def append(self, batch: Any) -> tuple[int, int]:
        """(error, base offset)."""
        fields = check_batch(batch)
        values = [record.value for record in records(batch)]
        producer_id, sequence = fields[PRODUCER_ID], fields[BASE_SEQUENCE]
        if producer_id >= 0:
            for known, count, base_offset in self.cached.setdefault(producer_id, []):
                if (known, count) == (sequence, len(values)):
                    return ErrorCode.NONE, base_offset
            if sequence != self.next_sequence.get(producer_id, 0):
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            self.next_sequence[producer_id] = sequence + len(values)
            self.cached[producer_id].append((sequence, len(values), len(self.values)))
            del self.cached[producer_id][:-CACHED_BATCHES]
        self.values += values
        return ErrorCode.NONE, len(self.values) - len(values)


class ModelBroker:
    """One node with one topic; `fault` says what to do instead of appending the next batch."""

    def __init__(self, partitions: int) -> None:
        self.partitions = [ModelPartition() for _ in range(partitions)]
        self.faults: list[int] = []
        self._next_producer_id = 100

    def answer(self, message: Any) -> Any:
        if isinstance(message, metadata.MetadataRequest):
            return self._metadata()
        if isinstance(message, init_producer_id.InitProducerIdRequest):
            self._next_producer_id += 1
            return init_producer_id.InitProducerIdResponse(producer_id=self._next_producer_id, producer_epoch=0)
        return self._produce(message)

    def _metadata(self) -> metadata.MetadataResponse:
        partitions = tuple(
            metadata.MetadataResponsePartition(partition_index=n, leader_id=1, leader_epoch=0)
            for n in range(len(self.partitions))
        )
        topic = metadata.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=partitions)
        broker = metadata.MetadataResponseBroker(node_id=1, host="here", port=1)
        return metadata.MetadataResponse(brokers=(broker,), topics=(topic,), controller_id=1)

    def _produce(self, request: produce.ProduceRequest) -> produce.ProduceResponse:
        answers = []
        for topic in request.topic_data:
            for partition in topic.partition_data:
                error, offset = (
                    (self.faults.pop(), -1)
                    if self.faults
                    else self.partitions[partition.index].append(partition.records)
                )
                answers.append(
                    produce.ProduceResponsePartition(index=partition.index, error_code=error, base_offset=offset)
                )
        topics = (produce.ProduceResponseTopic(name="t", topic_id=TOPIC_ID, partition_responses=tuple(answers)),)
        return produce.ProduceResponse(responses=topics)
