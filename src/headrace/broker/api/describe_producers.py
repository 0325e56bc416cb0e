"""DescribeProducers (61): the producers that write to a partition, and their state; some of them per turn."""

from collections import deque

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.partitions.replica import Replica
from headrace.log.producers import ProducerDescription
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersResponseActiveProducer,
    DescribeProducersResponsePartition,
    DescribeProducersResponseTopic,
)

PRODUCERS_PER_SLICE = 1_000
"""Producers described per turn; a partition without any counts as one."""


def handle(request: DescribeProducersRequest, ctx: RequestContext) -> DescribeProducersResponse | Parked:
    builder = _ResponseBuilder(request, ctx)
    builder.take()
    if builder.is_done:
        return builder.response()
    parked = ctx.park()
    builder.complete_in_slices(parked)
    return parked


class _ResponseBuilder:
    """A response under construction. A partition that is requested twice is described once."""

    def __init__(self, request: DescribeProducersRequest, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._found: dict[str, list[DescribeProducersResponsePartition]] = {topic.name: [] for topic in request.topics}
        self._missing = deque(
            dict.fromkeys((topic.name, index) for topic in request.topics for index in topic.partition_indexes)
        )
        self._described: list[DescribeProducersResponseActiveProducer] = []
        """Producers of the first missing partition that are described so far."""
        self._left: deque[ProducerDescription] | None = None
        """Producers of that partition that are not described yet; None before it is begun."""

    @property
    def is_done(self) -> bool:
        return not self._missing

    def complete_in_slices(self, parked: Parked) -> None:
        def step() -> None:
            if parked.abandoned():
                return
            self.take()
            if self.is_done:
                parked.complete(self.response())
            else:
                self._ctx.next_turn(step)

        self._ctx.next_turn(step)

    def take(self) -> None:
        """Describe a slice."""
        left = PRODUCERS_PER_SLICE
        while self._missing and left > 0:
            left -= 1 + self._take_some(left)

    def _take_some(self, count: int) -> int:
        """Describe some producers of the next partition, and return their number."""
        topic, index = self._missing[0]
        if self._left is None:
            partition = self._partition(topic, index)
            if isinstance(partition, ErrorCode):
                self._end(DescribeProducersResponsePartition(partition_index=index, error_code=partition))
                return 0
            self._left = deque(partition.log.producers.describe())
        taken = [self._left.popleft() for _ in range(min(count, len(self._left)))]
        self._described.extend(map(_described, taken))
        if not self._left:
            producers = tuple(self._described)
            self._end(DescribeProducersResponsePartition(partition_index=index, active_producers=producers))
        return len(taken)

    def _partition(self, topic: str, index: int) -> Replica | ErrorCode:
        if not self._ctx.authorized(Operation.READ, AclResourceType.TOPIC, topic):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        partitions = self._ctx.partitions
        return partitions.partition_of(partitions.by_name.get(topic.encode()), index)

    def _end(self, partition: DescribeProducersResponsePartition) -> None:
        topic, _ = self._missing.popleft()
        self._found[topic].append(partition)
        self._described, self._left = [], None

    def response(self) -> DescribeProducersResponse:
        return DescribeProducersResponse(
            throttle_time_ms=self._ctx.throttle_time_ms,
            topics=tuple(
                DescribeProducersResponseTopic(name=name, partitions=tuple(found))
                for name, found in self._found.items()
            ),
        )


def _described(producer: ProducerDescription) -> DescribeProducersResponseActiveProducer:
    return DescribeProducersResponseActiveProducer(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.current_transaction_start_offset,
    )
