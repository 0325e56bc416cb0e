"""Events of the links to other nodes, for the parts of a node that follow whether its peers can be reached."""

from collections.abc import Callable
from dataclasses import dataclass

from headrace.core.peers.handshake import PeerIdentity
from headrace.model.ids import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerConnected:
    """A link is established, and both nodes have authenticated."""

    peer: PeerIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerLost:
    """A link broke. With `reset`, the peer's machine closed it, as it does when the process ends; one that became
    silent is not reset.
    """

    peer: PeerIdentity
    reset: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRefused:
    """A link was reset, and the next connection was refused: no process listens at the peer's address any more."""

    node_id: NodeId


PeerEvent = PeerConnected | PeerLost | PeerRefused
PeerObserver = Callable[[PeerEvent], None]
