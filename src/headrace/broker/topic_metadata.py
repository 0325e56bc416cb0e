"""Topics as clients see them: the state of every partition, and the encoded topics of Metadata responses."""

from collections.abc import Set

from headrace.broker.services import MetadataSource, PartitionLookup
from headrace.core.controller.names import INTERNAL_TOPICS
from headrace.core.controller.records import Endpoint
from headrace.core.controller.topic_image import TopicImage
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, NodeId
from headrace.wire.metadata import PartitionMetadata, encode_topic, topic_layout


class TopicMetadata:
    """Describes topics from the committed metadata; of this broker's own replicas it also knows which are unusable.

    Encoded topics are kept until the metadata image changes or a partition goes offline or online. Clients that refresh
    a thousand topics then cost little.
    """

    def __init__(self, partitions: PartitionLookup, metadata: MetadataSource, node_id: NodeId) -> None:
        self._partitions = partitions
        self._metadata = metadata
        self._node_id = node_id
        self._encoded: dict[tuple[str, str, int, int], bytes] = {}
        self._lost: set[NodeId] = set()

    def clear(self) -> None:
        """Forget the encoded topics."""
        self._encoded.clear()

    def peer_lost(self, node_id: NodeId) -> None:
        """Name no leader for what this broker leads: the link to it was reset, and it may be dead.

        A client that is sent to a dead leader again looks for another one a second later, or much later. One that hears
        of no leader asks again at once.
        """
        self._lost.add(node_id)
        self.clear()

    def peer_returned(self, node_id: NodeId) -> None:
        """Trust the metadata image again."""
        if node_id in self._lost:
            self._lost.discard(node_id)
            self.clear()

    def brokers(self, listener_name: str) -> list[tuple[NodeId, Endpoint]]:
        """Return the addresses for clients. A broker that was lost just now stays, though it may be fenced already.

        librdkafka may drop the new leader of a partition that hears in one response that its broker is gone.
        """
        image = self._metadata.image
        found = image.endpoints(listener_name)
        listed = {node_id for node_id, _ in found}
        for node_id in sorted(self._lost - listed):
            broker = image.brokers.get(node_id)
            if broker is not None and listener_name in broker.endpoints:
                found.append((node_id, broker.endpoints[listener_name]))
        return found

    def encoded(self, topic: TopicImage, listener_name: str, version: int, authorized_operations: int) -> bytes:
        key = (topic.name, listener_name, topic_layout(version), authorized_operations)
        found = self._encoded.get(key)
        if found is None:
            found = self._encoded[key] = encode_topic(
                version,
                error_code=ErrorCode.NONE,
                name=topic.name,
                topic_id=topic.topic_id,
                is_internal=topic.name in INTERNAL_TOPICS,
                partitions=self.partition_states(topic, listener_name),
                authorized_operations=authorized_operations,
            )
        return found

    def partition_states(
        self, topic: TopicImage, listener_name: str, first: int = 0, count: int | None = None
    ) -> list[PartitionMetadata]:
        """Describe `count` partitions from `first` on, all of them by default.

        A partition has a leader if clients can reach it: it is live and has this listener.
        """
        local = self._partitions.by_name.get(topic.name.encode())
        live = frozenset(node_id for node_id, _ in self._metadata.image.endpoints(listener_name)) - self._lost
        end = len(topic.partitions) if count is None else min(first + count, len(topic.partitions))
        described = []
        for index in range(first, end):
            state = topic.partitions[index]
            usable = live if local is None or local.is_usable(index) else live - {self._node_id}
            offline = () if usable.issuperset(state.replicas) else _outside(state.replicas, usable)
            is_led = state.leader in usable
            described.append(
                PartitionMetadata(
                    ErrorCode.NONE if is_led else ErrorCode.LEADER_NOT_AVAILABLE,
                    index,
                    state.leader if is_led else NO_NODE,
                    state.leader_epoch,
                    state.replicas,
                    tuple(node for node in state.isr if node not in offline) if offline else state.isr,
                    offline,
                )
            )
        return described


def _outside(nodes: tuple[NodeId, ...], usable: Set[NodeId]) -> tuple[NodeId, ...]:
    return tuple(node for node in nodes if node not in usable)
