"""Brokers whose link to this one was reset: until more is known, clients are not sent to them.

A reset is no proof that the process is dead (ADR 0016), so it fences nothing. But a client that asks for metadata just
then has lost its connection too. Named the old leader again, librdkafka looks for another one only after 0.5 to 2 s.
"""

from collections.abc import Callable

from headrace.broker.peers.events import PeerConnected, PeerEvent, PeerLost
from headrace.broker.timers import Timers
from headrace.model.ids import NodeId

LOST_MS_MAX = 3_000
"""Time after which the metadata image alone counts again, though the link has not returned."""


class LostPeers:
    def __init__(self, timers: Timers, *, lost: Callable[[NodeId], None], returned: Callable[[NodeId], None]) -> None:
        self._timers = timers
        self._lost = lost
        self._returned = returned

    def peer_event(self, event: PeerEvent) -> None:
        match event:
            case PeerLost(peer=peer, reset=True):
                self._lost(peer.node_id)
                self._timers.after(LOST_MS_MAX, lambda: self._returned(peer.node_id))
            case PeerConnected(peer=peer):
                self._returned(peer.node_id)
