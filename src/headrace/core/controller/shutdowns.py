"""Controlled shutdowns on the active controller: when a broker may stop whose partitions others lead now. No I/O.

A broker that shuts down waits until every other broker has applied the change that took its leadership away: the new
leaders lead by then, and clients that ask any broker find them. What is kept here is forgotten with the leadership of
the controller; the next one waits again.
"""

from headrace.core.controller.image import MetadataImage
from headrace.core.controller.sessions import BrokerSession
from headrace.model.ids import NodeId


class ControlledShutdowns:
    def __init__(self) -> None:
        self._applied: dict[NodeId, tuple[int, int]] = {}
        """Broker epoch, and the last metadata offset that the broker has applied."""
        self._moved_at: dict[NodeId, tuple[int, int]] = {}
        """Broker epoch, and the metadata offset at which the partitions of a broker had moved."""

    def clear(self) -> None:
        self._applied.clear()
        self._moved_at.clear()

    def heard(self, session: BrokerSession, metadata_offset: int) -> None:
        """Note a heartbeat."""
        self._applied[session.node_id] = (session.broker_epoch, metadata_offset)

    def moved(self, session: BrokerSession, metadata_offset: int) -> None:
        """Note that the leaders of the broker's partitions have moved, at the latest at this offset."""
        known = self._moved_at.get(session.node_id)
        if known is None or known[0] != session.broker_epoch:
            self._moved_at[session.node_id] = (session.broker_epoch, metadata_offset)

    def are_moves_seen(self, session: BrokerSession, image: MetadataImage) -> bool:
        """Return whether every other broker that serves clients has applied the moves."""
        epoch, offset = self._moved_at.get(session.node_id, (None, 0))
        if epoch != session.broker_epoch:
            return False
        nothing = (-1, -1)
        return all(
            self._applied.get(broker.node_id, nothing) >= (broker.broker_epoch, offset)
            for broker in image.brokers.values()
            if broker.node_id != session.node_id and not broker.fenced
        )
