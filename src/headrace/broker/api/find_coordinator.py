"""FindCoordinator (10): the broker that coordinates a group or a transactional id.

The first request for groups creates their internal topic and is answered when that can be used; the same holds for
transactional ids.
"""

from typing import Any

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import ask_each, known, when_each_known
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.coordinators.topic import CoordinatedTopic
from headrace.core.transactions.names import owner_of
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE
from headrace.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)

GROUP, TRANSACTION = range(2)
NO_PORT = -1
FIND_COORDINATOR_KEYS_MAX = 10_000
"""Keys of one FindCoordinator request that are answered. The others get INVALID_REQUEST: the client must request
them separately.
"""
_SEVERAL_KEYS_FROM = 4
_MESSAGES = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "the coordinator is not available: retry later",
    ErrorCode.INVALID_REQUEST: "this coordinator type is not supported (share groups are not served): "
    "use group (0) or transaction (1)",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "not authorized to see this group",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "not authorized to see this transactional id",
}


def handle(request: FindCoordinatorRequest, ctx: RequestContext) -> object:
    topic = _topic(request, ctx)
    keys = request.coordinator_keys if ctx.version >= _SEVERAL_KEYS_FROM else (request.key,)
    # Only a client that may see a coordinator has the internal topic created.
    is_needed = topic is not None and any(
        _error(request, ctx, key) is ErrorCode.NONE for key in keys[:FIND_COORDINATOR_KEYS_MAX]
    )

    def find(key: str) -> Proposal[Any]:
        return known(_coordinator(request, ctx, key))

    def respond(found: list[FindCoordinatorResponseCoordinator]) -> FindCoordinatorResponse:
        return _response(ctx, found)

    if topic is None or not is_needed or topic.open_here():
        return ask_each(ctx, keys, find, _result, respond, items_max=FIND_COORDINATOR_KEYS_MAX)
    parked = ctx.park()
    topic.when_created(
        lambda: when_each_known(
            ctx,
            keys,
            find,
            _result,
            lambda found: parked.complete(respond(found)),
            items_max=FIND_COORDINATOR_KEYS_MAX,
        )
    )
    return parked


def _topic(request: FindCoordinatorRequest, ctx: RequestContext) -> CoordinatedTopic[Any, Any] | None:
    """Return the internal topic of the coordinator type."""
    if request.key_type == TRANSACTION:
        return ctx.transactions.topic
    return ctx.groups.topic if request.key_type == GROUP else None


def _response(ctx: RequestContext, found: list[FindCoordinatorResponseCoordinator]) -> FindCoordinatorResponse:
    if ctx.version >= _SEVERAL_KEYS_FROM:
        return FindCoordinatorResponse(throttle_time_ms=ctx.throttle_time_ms, coordinators=tuple(found))
    only = found[0]
    return FindCoordinatorResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _result(
    key: str, outcome: FindCoordinatorResponseCoordinator | ProposalFailed
) -> FindCoordinatorResponseCoordinator:
    return _failed(key, outcome.code, outcome.message) if isinstance(outcome, ProposalFailed) else outcome


def _failed(key: str, error: ErrorCode, message: str) -> FindCoordinatorResponseCoordinator:
    return FindCoordinatorResponseCoordinator(
        key=key, node_id=NO_NODE, host="", port=NO_PORT, error_code=error, error_message=message
    )


def _coordinator(request: FindCoordinatorRequest, ctx: RequestContext, key: str) -> FindCoordinatorResponseCoordinator:
    error = _error(request, ctx, key)
    topic = _topic(request, ctx) if error is ErrorCode.NONE else None
    state = None if topic is None else topic.state_of(owner_of(key) if request.key_type == TRANSACTION else key)
    if state is not None:
        for node_id, endpoint in ctx.image.endpoints(ctx.listener_name):
            if node_id == state.leader:
                return FindCoordinatorResponseCoordinator(
                    key=key, node_id=node_id, host=endpoint.host, port=endpoint.port, error_message=None
                )
    error = error or ErrorCode.COORDINATOR_NOT_AVAILABLE
    return _failed(key, error, _MESSAGES[error])


def _error(request: FindCoordinatorRequest, ctx: RequestContext, key: str) -> ErrorCode:
    if request.key_type == TRANSACTION:
        if not ctx.authorized(Operation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, key):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return ErrorCode.NONE
    if request.key_type != GROUP:
        return ErrorCode.INVALID_REQUEST  # a client of share groups (KIP-932) would repeat a retriable error for ever
    if not ctx.authorized(Operation.DESCRIBE, AclResourceType.GROUP, key):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE
