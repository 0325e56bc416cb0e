"""DescribeConnections (32040): the clients that are connected to this broker."""

from headrace.broker.api.context import RequestContext
from headrace.broker.net.connection import Connection
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.limits import CONNECTIONS_DESCRIBED_MAX
from headrace.wire.messages.describe_connections import (
    DescribeConnectionsRequest,
    DescribeConnectionsResponse,
    DescribeConnectionsResponseConnection,
)

NO_MORE = -1


def handle(request: DescribeConnectionsRequest, ctx: RequestContext) -> DescribeConnectionsResponse:
    if not ctx.authorized(Operation.DESCRIBE, AclResourceType.CLUSTER, CLUSTER_NAME):
        return DescribeConnectionsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if request.connections_max < 1:
        return DescribeConnectionsResponse(
            error_code=ErrorCode.INVALID_REQUEST, error_message="connections_max must be at least 1"
        )
    count_max = min(request.connections_max, CONNECTIONS_DESCRIBED_MAX)
    found = ctx.client_connections.after(request.after_connection_id, count_max)
    return DescribeConnectionsResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        connections=tuple(_described(each, ctx) for each in found),
        next_connection_id=found[-1].token if len(found) == count_max else NO_MORE,
    )


def _described(connection: Connection, ctx: RequestContext) -> DescribeConnectionsResponseConnection:
    now_ms = ctx.clock.monotonic_ms()
    name, version = connection.client_software
    topics = ctx.client_connections.topics_of(connection)
    return DescribeConnectionsResponseConnection(
        connection_id=connection.token,
        listener=connection.listener_name,
        address=connection.transport.peer_address,
        client_id=connection.client_id.decode(errors="replace"),
        software_name=name,
        software_version=version,
        principal=str(connection.principal),
        connected_ms=round(now_ms - connection.opened_ms),
        idle_ms=max(round(now_ms - connection.last_active_ms), 0),
        bytes_in=connection.bytes_in,
        bytes_out=connection.bytes_out,
        errors=connection.errors,
        topics_written=topics.written,
        topics_read=topics.read,
    )
