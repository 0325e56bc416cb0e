"""RaftMessages (32021): messages for this node's replica of the metadata log. They have no response."""

from headrace.broker.net.connection import Connection
from headrace.broker.services import RaftServices
from headrace.wire.messages.raft_messages import decode_request


def handle(
    services: RaftServices,
    connection: Connection,
    frame: memoryview,
    position: int,
    end: int,
    version: int,
    _correlation_id: int,
) -> None:
    assert connection.peer is not None
    assert connection.peer.identity is not None
    source = connection.peer.identity.node_id
    for message in decode_request(frame, position, end, version).messages:
        services.deliver_raft(source, message)
