"""Topics as clients see them: the state of every partition, and the encoded topics of Metadata responses."""

from headrace.broker.services import PartitionLookup
from headrace.core.controller.image import TopicImage
from headrace.core.controller.names import INTERNAL_TOPICS
from headrace.model.errors import ErrorCode
from headrace.wire.metadata import PartitionMetadata, encode_topic, topic_layout


def partition_states(
    partitions: PartitionLookup, topic: TopicImage, first: int = 0, count: int | None = None
) -> list[PartitionMetadata]:
    """Describe `count` partitions from `first` on, all of them by default; one that is not open has no leader."""
    local = partitions.by_name.get(topic.name.encode())
    end = len(topic.partitions) if count is None else min(first + count, len(topic.partitions))
    described = []
    for index in range(first, end):
        state = topic.partitions[index]
        partition = local.partitions[index] if local is not None and index < len(local.partitions) else None
        offline = partition is None or not partition.serves
        described.append(
            PartitionMetadata(
                ErrorCode.LEADER_NOT_AVAILABLE if offline else ErrorCode.NONE,
                index,
                -1 if offline else state.leader,
                state.leader_epoch,
                state.replicas,
                () if offline else state.isr,
                state.replicas if offline else (),
            )
        )
    return described


class TopicFragments:
    """Encoded topics, valid until the metadata image changes or a partition goes offline or online.

    Clients that refresh a thousand topics then cost little.
    """

    def __init__(self, partitions: PartitionLookup) -> None:
        self._partitions = partitions
        self._fragments: dict[tuple[str, int, int], bytes] = {}

    def clear(self) -> None:
        self._fragments.clear()

    def topic(self, topic: TopicImage, version: int, authorized_operations: int) -> bytes:
        key = (topic.name, topic_layout(version), authorized_operations)
        found = self._fragments.get(key)
        if found is None:
            found = self._fragments[key] = encode_topic(
                version,
                error_code=ErrorCode.NONE,
                name=topic.name,
                topic_id=topic.topic_id,
                is_internal=topic.name in INTERNAL_TOPICS,
                partitions=partition_states(self._partitions, topic),
                authorized_operations=authorized_operations,
            )
        return found
