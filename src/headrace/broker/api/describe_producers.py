"""DescribeProducers (61): who is writing to a partition, and how far each has got."""

from headrace.broker.api.context import RequestContext
from headrace.broker.partitions.leader import LedPartition, LedTopic
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersResponseActiveProducer,
    DescribeProducersResponsePartition,
    DescribeProducersResponseTopic,
)


def handle(request: DescribeProducersRequest, ctx: RequestContext) -> DescribeProducersResponse:
    topics = []
    for topic in request.topics:
        allowed = ctx.authorized(Operation.READ, ResourceType.TOPIC, topic.name)
        led = ctx.broker.partitions.by_name.get(topic.name.encode())
        results = tuple(
            _described(ctx, led, index)
            if allowed
            else DescribeProducersResponsePartition(
                partition_index=index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            for index in topic.partition_indexes
        )
        topics.append(DescribeProducersResponseTopic(name=topic.name, partitions=results))
    return DescribeProducersResponse(throttle_time_ms=ctx.throttle_time_ms, topics=tuple(topics))


def _described(ctx: RequestContext, led: LedTopic | None, index: int) -> DescribeProducersResponsePartition:
    partition = ctx.broker.partitions.partition_of(led, index)
    if isinstance(partition, ErrorCode):
        return DescribeProducersResponsePartition(partition_index=index, error_code=partition)
    return DescribeProducersResponsePartition(partition_index=index, active_producers=_producers(partition))


def _producers(partition: LedPartition) -> tuple[DescribeProducersResponseActiveProducer, ...]:
    return tuple(
        DescribeProducersResponseActiveProducer(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.current_transaction_start_offset,
        )
        for producer in partition.log.producers.describe()
    )
