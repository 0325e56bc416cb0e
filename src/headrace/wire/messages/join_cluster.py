"""JoinCluster (32024), versions 0 to 0.

Generated from wire/schemas/join_cluster.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, UUID, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import read_compact_bytes, read_compact_nullable_string, skip_tags
from headrace.wire.primitives.writers import NO_TAGS, Write, uuid, write_compact_bytes, write_compact_nullable_string

API_KEY = 32024
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinClusterRequest:
    invitation_id: bytes = ZERO_UUID
    nonce: bytes = b""
    proof: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinClusterResponse:
    error_code: int = 0
    error_message: str | None = None
    sealed: bytes = b""


def _read_request_v0(body: Buffer, position: int) -> tuple[JoinClusterRequest, int]:
    (invitation_id,) = UUID.unpack_from(body, position)
    position += 16
    nonce, position = read_compact_bytes(body, position)
    proof, position = read_compact_bytes(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = JoinClusterRequest(invitation_id=invitation_id, nonce=nonce, proof=proof)
    return message, position


def _write_request_v0(write: Write, message: JoinClusterRequest) -> None:
    write(UUID.pack(uuid(message.invitation_id)))
    write_compact_bytes(write, message.nonce)
    write_compact_bytes(write, message.proof)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[JoinClusterResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    sealed, position = read_compact_bytes(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = JoinClusterResponse(error_code=error_code, error_message=error_message, sealed=sealed)
    return message, position


def _write_response_v0(write: Write, message: JoinClusterResponse) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_bytes(write, message.sealed)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> JoinClusterRequest:
    return decode(_REQUEST_READERS, "JoinClusterRequest", buffer, position, end, version)


def encode_request(message: JoinClusterRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "JoinClusterRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> JoinClusterResponse:
    return decode(_RESPONSE_READERS, "JoinClusterResponse", buffer, position, end, version)


def encode_response(message: JoinClusterResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "JoinClusterResponse", message, version)


def begin_response(message: JoinClusterResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "JoinClusterResponse", message, version)
