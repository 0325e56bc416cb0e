"""Send requests to the leaders of partitions: offsets by time, deletion of records, active producers."""

from collections.abc import Iterable, Mapping

from headrace.client.core.admin.routing import ask_leaders, by_topic
from headrace.client.core.calls import Call, Operation
from headrace.client.core.cluster import Cluster
from headrace.client.core.offset_lookups import list_offsets_call, offsets_in
from headrace.client.types import ActiveProducer, DeletedRecords, IsolationLevel, OffsetAt, PartitionProducers
from headrace.model.errors import ErrorCode, error_code
from headrace.model.ids import TopicPartition
from headrace.wire.messages import delete_records as delete_records_api
from headrace.wire.messages import describe_producers as describe_producers_api


def offsets(
    cluster: Cluster,
    times: Mapping[TopicPartition, int],
    *,
    timeout_ms: int,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> Operation[dict[TopicPartition, OffsetAt]]:
    """Return, for each partition, the first offset at or after the time, or the one that EARLIEST, LATEST ... stand
    for.
    """
    return ask_leaders(
        cluster,
        times,
        call=lambda leader, owned: list_offsets_call(
            cluster,
            leader,
            {partition: times[partition] for partition in owned},
            timeout_ms=timeout_ms,
            isolation=isolation,
        ),
        results=offsets_in,
        error_of=lambda found: found.error,
        failure=lambda error: OffsetAt(-1, -1, -1, error),
    )


def delete_records(
    cluster: Cluster, before: Mapping[TopicPartition, int], *, timeout_ms: int
) -> Operation[dict[TopicPartition, DeletedRecords]]:
    """Delete the records below these offsets; -1 stands for the high watermark."""

    def call(leader: int, owned: list[TopicPartition]) -> Call:
        request = delete_records_api.DeleteRecordsRequest(
            topics=tuple(
                delete_records_api.DeleteRecordsRequestTopic(
                    name=topic,
                    partitions=tuple(
                        delete_records_api.DeleteRecordsRequestPartition(
                            partition_index=partition, offset=before[TopicPartition(topic, partition)]
                        )
                        for partition in partitions
                    ),
                )
                for topic, partitions in by_topic(owned).items()
            ),
            timeout_ms=timeout_ms,
        )
        return Call(delete_records_api, request, leader)

    def results(response: delete_records_api.DeleteRecordsResponse) -> dict[TopicPartition, DeletedRecords]:
        return {
            TopicPartition(topic.name, one.partition_index): DeletedRecords(
                one.low_watermark, error_code(one.error_code)
            )
            for topic in response.topics
            for one in topic.partitions
        }

    return ask_leaders(
        cluster,
        before,
        call=call,
        results=results,
        error_of=lambda deleted: deleted.error,
        failure=lambda error: DeletedRecords(-1, error),
    )


def producers(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> Operation[dict[TopicPartition, PartitionProducers]]:
    """Return the idempotent producers that the leader of each partition remembers."""

    def call(leader: int, owned: list[TopicPartition]) -> Call:
        request = describe_producers_api.DescribeProducersRequest(
            topics=tuple(
                describe_producers_api.DescribeProducersRequestTopic(name=topic, partition_indexes=tuple(indexes))
                for topic, indexes in by_topic(owned).items()
            )
        )
        return Call(describe_producers_api, request, leader)

    return ask_leaders(
        cluster,
        partitions,
        call=call,
        results=_producers_in,
        error_of=lambda described: described.error,
        failure=_no_producers,
    )


def _no_producers(error: ErrorCode) -> PartitionProducers:
    return PartitionProducers(error=error, message=None, producers=())


def _producers_in(
    response: describe_producers_api.DescribeProducersResponse,
) -> dict[TopicPartition, PartitionProducers]:
    return {
        TopicPartition(topic.name, one.partition_index): PartitionProducers(
            error=error_code(one.error_code),
            message=one.error_message,
            producers=tuple(
                ActiveProducer(
                    producer.producer_id,
                    producer.producer_epoch,
                    producer.last_sequence,
                    producer.last_timestamp,
                    producer.coordinator_epoch,
                    producer.current_txn_start_offset,
                )
                for producer in one.active_producers
            ),
        )
        for topic in response.topics
        for one in topic.partitions
    }
