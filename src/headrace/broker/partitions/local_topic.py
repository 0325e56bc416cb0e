"""One topic of the cluster as this node sees it: the replicas that it holds of its partitions."""

from headrace.broker.partitions.replica import Replica
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicId


class LocalTopic:
    """The partitions of one topic by index; None for one that is still being opened or could not be opened."""

    __slots__ = ("closed", "deleted", "name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: TopicId) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[Replica | None] = []
        self.closed: dict[int, ErrorCode] = {}
        """Partitions that could not be opened, with the error that clients get."""
        self.deleted = False

    def partition(self, index: int) -> Replica | ErrorCode:
        """Return the partition if it can be used, else the error that clients get."""
        if not 0 <= index < len(self.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition = self.partitions[index]
        if partition is None:
            return self.closed.get(index, ErrorCode.LEADER_NOT_AVAILABLE)
        return partition if partition.serves else partition.refusal
