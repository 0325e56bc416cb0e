"""Describe the clients that are connected to the brokers."""

from headrace.client.core.calls import Call, Operation
from headrace.client.core.cluster import Cluster, fetch_metadata
from headrace.client.errors import BadResponse, BrokerError, ClientError
from headrace.client.types import ClientConnection
from headrace.wire.messages import describe_connections as describe_connections_api
from headrace.wire.messages.describe_connections import (
    DescribeConnectionsRequest,
    DescribeConnectionsResponseConnection,
)

CONNECTIONS_PER_PAGE = 1_000
"""Connections in a request for one page; a broker returns fewer."""

NO_MORE = -1

CONNECTIONS_MAX = 100_000
"""Connections after which the client requests no more pages."""


def connections(cluster: Cluster) -> Operation[tuple[ClientConnection, ...]]:
    """Describe the clients of all brokers, page by page."""
    cluster.learn((yield from fetch_metadata(())))
    after = dict.fromkeys(sorted(cluster.brokers), -1)
    described: list[ClientConnection] = []
    while after and len(described) < CONNECTIONS_MAX:
        requests = [
            DescribeConnectionsRequest(after_connection_id=last, connections_max=CONNECTIONS_PER_PAGE)
            for last in after.values()
        ]
        targets = tuple(after)
        replies = yield tuple(
            Call(describe_connections_api, request, node) for request, node in zip(requests, targets, strict=True)
        )
        for node, reply in zip(targets, replies, strict=True):
            if isinstance(reply, ClientError):
                raise reply
            if reply.error_code:
                raise BrokerError(reply.error_code, f"the clients of broker {node} could not be described")
            described.extend(_connection(node, each) for each in reply.connections)
            if reply.next_connection_id == NO_MORE:
                del after[node]
            elif reply.next_connection_id <= after[node]:
                raise BadResponse(f"broker {node} returns the same page of connections repeatedly")
            else:
                after[node] = reply.next_connection_id
    return tuple(described)


def _connection(node: int, found: DescribeConnectionsResponseConnection) -> ClientConnection:
    return ClientConnection(
        node_id=node,
        connection_id=found.connection_id,
        listener=found.listener,
        address=found.address,
        client_id=found.client_id,
        software_name=found.software_name,
        software_version=found.software_version,
        principal=found.principal,
        connected_ms=found.connected_ms,
        idle_ms=found.idle_ms,
        bytes_in=found.bytes_in,
        bytes_out=found.bytes_out,
        errors=found.errors,
        topics_written=tuple(found.topics_written),
        topics_read=tuple(found.topics_read),
    )
