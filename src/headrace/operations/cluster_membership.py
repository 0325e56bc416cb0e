"""Joining of a cluster by an invitation: asks the inviting node for the cluster key, and stores it for the broker."""

import socket

from headrace.core.peers.invitation import JOIN_NONCE_BYTES, Invitation, join_proof, read_token
from headrace.core.peers.seals import BadSeal, NoCryptography, unseal
from headrace.log.cluster_key import ClusterKey, read_cluster_key, write_cluster_key
from headrace.model.configs.listeners import address_text
from headrace.operations.errors import OperationError
from headrace.ports.real.disk import RealDisk
from headrace.ports.real.entropy import RealEntropy
from headrace.wire.apis import ApiKey
from headrace.wire.errors import ProtocolError
from headrace.wire.frames import SIZE_BYTES, read_response_header, request_frame
from headrace.wire.messages.join_cluster import (
    JoinClusterRequest,
    JoinClusterResponse,
    decode_response,
    encode_request,
)

JOIN_TIMEOUT_S = 10
RESPONSE_BYTES_MAX = 4 << 10


def join_cluster(token: str, home: str) -> str:
    """Get the cluster key with a token of `headrace cluster invite`, store it in the home directory of a broker, and
    return the cluster id. A directory that already has a key is not changed, so that a restart may pass the same token
    again.
    """
    disk = RealDisk()
    known = read_cluster_key(disk, home)
    if known is not None:
        return known.cluster_id
    invitation = read_token(token)
    nonce = RealEntropy().random_bytes(JOIN_NONCE_BYTES)
    response = _ask(invitation, nonce)
    where = address_text(invitation.host, invitation.port)
    if response.error_code:
        raise OperationError(f"{where} does not accept the token: {response.error_message}")
    try:
        shared = unseal(
            invitation.one_time_key, response.sealed, invitation_id=invitation.invitation_id, join_nonce=nonce
        )
        key = ClusterKey(shared.cluster_id, shared.secret)
    except (BadSeal, NoCryptography) as error:
        raise OperationError(str(error)) from error
    write_cluster_key(disk, home, key)
    return key.cluster_id


def _ask(invitation: Invitation, nonce: bytes) -> JoinClusterResponse:
    proof = join_proof(invitation.one_time_key, invitation.invitation_id, nonce)
    request = JoinClusterRequest(invitation_id=invitation.invitation_id, nonce=nonce, proof=proof)
    frame = request_frame(ApiKey.JOIN_CLUSTER, 0, 0, "headrace-join", encode_request(request, 0))
    where = address_text(invitation.host, invitation.port)
    try:
        with socket.create_connection((invitation.host, invitation.port), JOIN_TIMEOUT_S) as connection:
            connection.settimeout(JOIN_TIMEOUT_S)
            connection.sendall(frame)
            size = int.from_bytes(_receive(connection, SIZE_BYTES))
            if size > RESPONSE_BYTES_MAX:
                raise ProtocolError(f"a response of {size} bytes")
            response = _receive(connection, size)
        _number, position = read_response_header(response, 0, size, api_key=ApiKey.JOIN_CLUSTER, api_version=0)
        return decode_response(response, position, size, 0)
    except (OSError, ProtocolError) as error:
        raise OperationError(
            f"{where}, the address in the token, cannot be used ({error}); check that the node which gave the token "
            "runs, and that its cluster listener can be reached from here"
        ) from error


def _receive(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        part = connection.recv(count - len(received))
        if not part:
            raise ConnectionResetError("the connection was closed")
        received += part
    return received
