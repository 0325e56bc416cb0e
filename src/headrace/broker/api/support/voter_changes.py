"""Changes of the voters of the metadata quorum that a client asks for (KIP-853)."""

from collections.abc import Callable

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import cluster_refusal
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.raft.effects import Outcome, RequestRefusal, RequestRefused
from headrace.core.raft.ids import DirectoryId, ReplicaKey
from headrace.log.checkpoints import encode_uuid
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId

CHANGE_WAIT_MS = 30_000

_CODES = {
    RequestRefusal.ALREADY_VOTER: ErrorCode.DUPLICATE_VOTER,
    RequestRefusal.NODE_ID_IN_USE: ErrorCode.DUPLICATE_VOTER,
    RequestRefusal.NOT_VOTER: ErrorCode.VOTER_NOT_FOUND,
    RequestRefusal.LAST_VOTER: ErrorCode.INVALID_REQUEST,
    RequestRefusal.TOO_MANY_VOTERS: ErrorCode.INVALID_REQUEST,
    RequestRefusal.NOT_LEADER: ErrorCode.NOT_CONTROLLER,
    RequestRefusal.LEADERSHIP_LOST: ErrorCode.NOT_CONTROLLER,
    RequestRefusal.TRANSFER_IN_PROGRESS: ErrorCode.NOT_CONTROLLER,
}
"""Error codes of refusals; all others pass with time."""

Decided = Callable[[Outcome], None]
VoterChangeRequest = Callable[[Decided], None]
"""Asks the quorum for a change of its voters, and calls back with the outcome."""

MakeResponse = Callable[[ErrorCode, str | None], object]
"""Builds the response from an error code and message."""


def voter_key(node_id: int, directory_id: bytes) -> ReplicaKey:
    return ReplicaKey(NodeId(node_id), DirectoryId(encode_uuid(directory_id)))


def refusal_of(ctx: RequestContext, cluster_id: str | None) -> tuple[ErrorCode, str] | None:
    """Return why this client may not change the voters of this cluster; None if it may."""
    message = cluster_refusal(ctx, "voters are changed")
    if message is not None:
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message
    if cluster_id is not None and cluster_id != ctx.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID, f"this is cluster {ctx.cluster_id}, not {cluster_id}"
    if not ctx.controller.is_active:
        return ErrorCode.NOT_CONTROLLER, "this node is not the active controller"
    return None


def with_promotion(
    ctx: RequestContext, voter: ReplicaKey, change: VoterChangeRequest, *, allowed: bool
) -> VoterChangeRequest:
    """Return the change, preceded by the decision whether the node may become a voter by itself afterwards."""

    def request(decided: Decided) -> None:
        def committed(outcome: object) -> None:
            if isinstance(outcome, ProposalFailed):
                decided(RequestRefused(ticket=None, reason=RequestRefusal.LEADERSHIP_LOST))
            else:
                change(decided)

        ctx.controller.set_promotion(voter.node_id, allowed=allowed).then(committed)

    return request


def park_until_changed(ctx: RequestContext, change: VoterChangeRequest, make_response: MakeResponse) -> Parked:
    """Ask the quorum for a change, and respond when it is committed or refused."""
    parked = ctx.park(
        timeout_ms=CHANGE_WAIT_MS,
        on_timeout=lambda: make_response(
            ErrorCode.REQUEST_TIMED_OUT, "the change is not committed; its outcome is unknown"
        ),
    )

    def decided(outcome: Outcome) -> None:
        if isinstance(outcome, RequestRefused):
            code = _CODES.get(outcome.reason, ErrorCode.REQUEST_TIMED_OUT)
            parked.complete(make_response(code, outcome.reason.value))
        else:
            parked.complete(make_response(ErrorCode.NONE, None))

    change(decided)
    return parked
