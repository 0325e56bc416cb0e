"""What Metadata and DescribeTopicPartitions both tell of a topic: its partitions' state, and who may do what."""

from typing import TYPE_CHECKING

from headrace.broker.api.context import RequestContext
from headrace.core.controller.image import TopicImage
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.wire.metadata import PartitionMetadata

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

TOPIC_OPERATIONS = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)


def authorized_operations(
    ctx: RequestContext, operations: tuple[Operation, ...], resource_type: ResourceType, name: str
) -> int:
    """The bit field of those of `operations` that the caller may do."""
    return sum(1 << operation for operation in operations if ctx.authorized(operation, resource_type, name))


def partition_states(
    broker: "Broker", topic: TopicImage, first: int = 0, count: int | None = None
) -> list[PartitionMetadata]:
    """`count` partitions from `first` on, all of them by default; one that is not open has no leader."""
    led = broker.partitions.by_name.get(topic.name.encode())
    end = len(topic.partitions) if count is None else min(first + count, len(topic.partitions))
    described = []
    for index in range(first, end):
        state = topic.partitions[index]
        partition = led.partitions[index] if led is not None and index < len(led.partitions) else None
        offline = partition is None or partition.offline
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
