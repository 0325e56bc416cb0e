"""Ask a leader with a newer epoch whether it still has the records that were read (KIP-320).

Records that only a former leader had are truncated when another leader takes over without them. A consumer that read
some of them is then beyond the end of their epoch.
"""

from collections.abc import Mapping

from headrace.client.core.admin.routing import by_topic
from headrace.client.core.calls import Call
from headrace.client.core.cluster import Cluster
from headrace.model.ids import TopicPartition
from headrace.wire.messages import offset_for_leader_epoch as epochs_api

_CONSUMER = -1
_OUR_EPOCH_FROM_VERSION = 2


def epoch_ends_call(cluster: Cluster, leader: int, epochs: Mapping[TopicPartition, int]) -> Call:
    """Build the call that looks up the end offsets of these epochs."""
    request = epochs_api.OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=tuple(
            epochs_api.OffsetForLeaderEpochRequestTopic(
                topic=topic,
                partitions=tuple(
                    epochs_api.OffsetForLeaderEpochRequestPartition(
                        partition=index,
                        current_leader_epoch=cluster.leader_epoch(TopicPartition(topic, index)),
                        leader_epoch=epochs[TopicPartition(topic, index)],
                    )
                    for index in indexes
                ),
            )
            for topic, indexes in by_topic(epochs).items()
        ),
    )
    return Call(epochs_api, request, leader, min_version=_OUR_EPOCH_FROM_VERSION)


def epoch_ends_in(
    response: epochs_api.OffsetForLeaderEpochResponse,
) -> dict[TopicPartition, epochs_api.OffsetForLeaderEpochResponsePartition]:
    return {
        TopicPartition(topic.topic, result.partition): result
        for topic in response.topics
        for result in topic.partitions
    }


def divergence(result: epochs_api.OffsetForLeaderEpochResponsePartition, end: int) -> int | None:
    """Return where the leader's log diverges from what was read up to `end`; `end` if it does not, None if unknown."""
    if result.leader_epoch < 0 or result.end_offset < 0:
        return None
    return min(result.end_offset, end)
