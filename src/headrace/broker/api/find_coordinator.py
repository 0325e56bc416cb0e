"""FindCoordinator (10): says of every group and transaction that its coordinator is not available yet.

It is served because librdkafka enables LZ4 only where it is listed.
"""

from headrace.broker.api.context import RequestContext
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE
from headrace.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)

GROUP, TRANSACTION, SHARE = range(3)
NO_PORT = -1
_SEVERAL_KEYS_FROM = 4
_SHARE_FROM = 6
_MESSAGES = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "groups and transactions are not served yet",
    ErrorCode.INVALID_REQUEST: "unknown kind of coordinator: use group (0) or transaction (1)",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "not authorized to see this group",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "not authorized to see this transactional id",
}


def handle(request: FindCoordinatorRequest, ctx: RequestContext) -> FindCoordinatorResponse:
    if ctx.version >= _SEVERAL_KEYS_FROM:
        return FindCoordinatorResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            coordinators=tuple(_coordinator(request, ctx, key) for key in request.coordinator_keys),
        )
    only = _coordinator(request, ctx, request.key)
    return FindCoordinatorResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _coordinator(request: FindCoordinatorRequest, ctx: RequestContext, key: str) -> FindCoordinatorResponseCoordinator:
    error = _error(request, ctx, key)
    return FindCoordinatorResponseCoordinator(
        key=key, node_id=NO_NODE, host="", port=NO_PORT, error_code=error, error_message=_MESSAGES[error]
    )


def _error(request: FindCoordinatorRequest, ctx: RequestContext, key: str) -> ErrorCode:
    if request.key_type == TRANSACTION:
        if not ctx.authorized(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif request.key_type == GROUP or (request.key_type == SHARE and ctx.version >= _SHARE_FROM):
        if not ctx.authorized(Operation.DESCRIBE, ResourceType.GROUP, key):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
    else:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.COORDINATOR_NOT_AVAILABLE
