"""The leaders that a request missed, so that its client can go to them without asking for metadata (KIP-951)."""

from headrace.core.controller.image import MetadataImage
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, NodeId
from headrace.wire.current_leaders import CurrentLeader, LeaderEndpoint

MISSED = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))
"""The errors with which a response names the leader."""


class MissedLeaders:
    """The leaders of some partitions, and the addresses of these leaders at one listener."""

    def __init__(self, image: MetadataImage, listener_name: str) -> None:
        self._image = image
        self._listener_name = listener_name
        self._nodes: dict[NodeId, None] = {}

    def find(self, topic: str, index: int) -> CurrentLeader | None:
        """Return the leader of the partition; None if it has none or it cannot be reached."""
        state = self._image.partition(topic, index)
        if state is None or state.leader == NO_NODE or self._endpoint(state.leader) is None:
            return None
        self._nodes[state.leader] = None
        return CurrentLeader(state.leader, state.leader_epoch)

    def endpoints(self) -> list[LeaderEndpoint]:
        """Return the addresses of all leaders found so far."""
        return [endpoint for node_id in self._nodes if (endpoint := self._endpoint(node_id)) is not None]

    def _endpoint(self, node_id: NodeId) -> LeaderEndpoint | None:
        broker = self._image.brokers.get(node_id)
        endpoint = None if broker is None else broker.endpoints.get(self._listener_name)
        if broker is None or endpoint is None or broker.fenced:
            return None
        return LeaderEndpoint(node_id, endpoint.host, endpoint.port, broker.rack)
