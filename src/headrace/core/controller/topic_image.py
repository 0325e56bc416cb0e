"""A topic as the metadata image has it."""

from headrace.core.controller.partition_states import PartitionStates
from headrace.model.ids import TopicId


class TopicImage:
    """One topic; `partitions` is indexed by partition number.

    Only the image that owns a topic changes it; an image that shares it with a copy makes its own first.
    """

    __slots__ = ("name", "number", "owner", "partitions", "topic_id")

    def __init__(
        self, name: str, topic_id: TopicId, partitions: PartitionStates, *, number: int, owner: object
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions
        self.number = number
        self.owner = owner

    @property
    def replication_factor(self) -> int:
        """The number of replicas of the first partition, which configs of the topic go by."""
        return len(self.partitions[0].replicas) if len(self.partitions) else 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicImage):
            return NotImplemented
        return (self.name, self.topic_id, self.partitions) == (other.name, other.topic_id, other.partitions)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TopicImage({self.name!r}, {self.topic_id.hex()}, {self.partitions!r})"
