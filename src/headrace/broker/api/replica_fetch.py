"""Fetch (1) of a follower, on the CONTROLLER listener: decodes the request and passes it to the served fetches."""

from headrace.broker.net.connection import Connection
from headrace.broker.services import ReplicaFetchServices
from headrace.wire.replica_fetch import decode_request


def handle(
    services: ReplicaFetchServices,
    connection: Connection,
    frame: memoryview,
    position: int,
    end: int,
    version: int,
    correlation_id: int,
) -> None:
    services.served_fetches.begin(connection, decode_request(frame, position, end, version), correlation_id)
