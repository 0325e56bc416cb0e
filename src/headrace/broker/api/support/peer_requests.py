"""Requests of other nodes of the cluster to the active controller."""

from collections.abc import Callable
from typing import TypeVar

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.model.errors import ErrorCode

Outcome = TypeVar("Outcome")

PEER_WAIT_MS = 10_000
"""Longest wait for a commit: the peer has asked again before, perhaps another controller."""


def is_sender(ctx: RequestContext, node_id: int) -> bool:
    """Tell whether the request comes from the node that it is about: a node speaks for itself alone."""
    peer = ctx.connection.peer
    return peer is not None and peer.identity is not None and peer.identity.node_id == node_id


def park_until_decided(
    ctx: RequestContext, proposal: Proposal[Outcome], respond: Callable[[Outcome | ProposalFailed], object]
) -> Parked:
    """Respond to the outcome as soon as it is committed, whatever the partitions of this node wait for."""
    too_late = ProposalFailed(ErrorCode.REQUEST_TIMED_OUT, "the change was not committed in time")
    parked = ctx.park(timeout_ms=PEER_WAIT_MS, on_timeout=lambda: respond(too_late))
    proposal.then(lambda outcome: parked.complete(respond(outcome)))
    return parked
