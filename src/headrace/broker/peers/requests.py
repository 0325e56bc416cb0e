"""Requests to other nodes of the cluster, as the parts of a broker send them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from headrace.broker.timers import Timers
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.wire.apis import ApiKey


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerFailure:
    """The reason why a request has no response. The peer may have carried it out nevertheless."""

    code: ErrorCode
    message: str
    connection_refused: bool = False
    reset: bool = False


class PeerRequests(Protocol):
    """Sends requests to peers; one connection to each peer carries all of them."""

    def send(
        self,
        node_id: NodeId,
        api_key: ApiKey,
        version: int,
        request: object,
        *,
        timeout_ms: float,
        then: Callable[[object], None],
    ) -> None:
        """Send a request message to a peer; `then` gets the decoded response, or a PeerFailure, in a later turn."""

    def post(self, node_id: NodeId, message: bytes) -> None:
        """Send a Raft message, which may be dropped."""


class NoPeers:
    """The peers of a node that has no listener for other nodes: every request fails."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers

    def send(
        self,
        node_id: NodeId,
        api_key: ApiKey,
        version: int,
        request: object,
        *,
        timeout_ms: float,
        then: Callable[[object], None],
    ) -> None:
        failure = PeerFailure(
            code=ErrorCode.NETWORK_EXCEPTION,
            message=f"node {node_id} cannot be reached: this node has no listener for other nodes of its cluster",
        )
        self._timers.next_turn(lambda: then(failure))

    def post(self, node_id: NodeId, message: bytes) -> None:
        """Drop the message."""
