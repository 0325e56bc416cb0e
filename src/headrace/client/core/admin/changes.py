"""Follow the changes of the cluster's metadata."""

from headrace.client.core.calls import Call, Operation
from headrace.client.errors import BrokerError, ClientError
from headrace.client.types import ChangedPartition, ChangedTopic, MetadataChanges, RegisteredBroker, TopicChangeKind
from headrace.wire.messages import list_metadata_changes as list_metadata_changes_api
from headrace.wire.messages.list_metadata_changes import ListMetadataChangesRequest, ListMetadataChangesResponse


def metadata_changes(after_version: int, wait_ms: int) -> Operation[MetadataChanges]:
    """Ask any broker for what changed after a version; it waits for a change."""
    request = ListMetadataChangesRequest(after_version=after_version, wait_ms=wait_ms)
    (reply,) = yield (Call(list_metadata_changes_api, request, wait_ms_max=wait_ms),)
    if isinstance(reply, ClientError):
        raise reply
    if reply.error_code:
        raise BrokerError(reply.error_code, reply.error_message or "the changes of the metadata could not be listed")
    return _described(reply)


def _described(response: ListMetadataChangesResponse) -> MetadataChanges:
    return MetadataChanges(
        version=response.version,
        is_complete=response.is_complete,
        topics=tuple(
            ChangedTopic(TopicChangeKind(each.change), each.name, each.topic_id, each.partition_count)
            for each in response.topics
        ),
        partitions=tuple(
            ChangedPartition(
                each.topic,
                each.partition_index,
                each.leader_id,
                each.leader_epoch,
                tuple(each.replicas),
                tuple(each.isr),
            )
            for each in response.partitions
        ),
        configs=tuple((each.resource_type, each.resource_name) for each in response.configs),
        brokers=None
        if response.brokers is None
        else tuple(RegisteredBroker(each.broker_id, each.is_fenced, each.is_stopping) for each in response.brokers),
    )
