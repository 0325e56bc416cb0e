"""One topic of the cluster as this node sees it: the replicas that it holds of its partitions."""

from headrace.broker.partitions.replica import Replica
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_EPOCH, TopicId


class LocalTopic:
    """It counts all partitions of the topic, so that clients learn that the others are elsewhere."""

    __slots__ = ("deleted", "name", "partition_count", "replicas", "topic_id", "unopened")

    def __init__(self, name: str, topic_id: TopicId, partition_count: int) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_count = partition_count
        """The number of partitions, wherever they are."""
        self.replicas: dict[int, Replica] = {}
        """The replicas of this node that are open, by partition."""
        self.unopened: dict[int, ErrorCode] = {}
        """The error that clients get for partitions of this node that are being opened or could not be opened."""
        self.deleted = False

    def is_usable(self, index: int) -> bool:
        """Return whether this node can use its replica of the partition. True if it holds none."""
        replica = self.replicas.get(index)
        return not replica.offline if replica is not None else index not in self.unopened

    def copy_of(self, index: int) -> Replica | None:
        """Return the replica if it copies its leader and can be read meanwhile (KIP-392)."""
        replica = self.replicas.get(index)
        return replica if replica is not None and replica.is_readable_copy else None

    def partition(self, index: int, leader_epoch: int = NO_EPOCH) -> Replica | ErrorCode:
        """Return the replica if it serves; otherwise the error for a client that knows of this leader epoch."""
        replica = self.replicas.get(index)
        if replica is not None:
            return replica if replica.serves else replica.refusal_of(leader_epoch)
        if not 0 <= index < self.partition_count:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self.unopened.get(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
