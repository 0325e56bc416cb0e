"""AuthenticatePeer (32020), versions 0 to 0.

Generated from wire/schemas/authenticate_peer.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    read_compact_bytes,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_struct,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    uuid,
    write_compact_bytes,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_struct,
)

API_KEY = 32020
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IHH = Struct(">ihh")
_IHHX = Struct(">ihhx")
_IT = Struct(">i16s")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticatePeerRequestHello:
    nonce: bytes = b""
    node_id: int = 0
    directory_id: bytes = ZERO_UUID
    cluster_id: str = ""
    host: str = ""
    port: int = 0
    min_version: int = 0
    max_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticatePeerRequest:
    hello: AuthenticatePeerRequestHello | None = None
    proof: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticatePeerResponseChallenge:
    nonce: bytes = b""
    node_id: int = 0
    directory_id: bytes = ZERO_UUID
    cluster_id: str = ""
    host: str = ""
    port: int = 0
    min_version: int = 0
    max_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticatePeerResponse:
    error_code: int = 0
    error_message: str | None = None
    challenge: AuthenticatePeerResponseChallenge | None = None
    proof: bytes = b""


def _read_request_hello_v0(body: Buffer, position: int) -> tuple[AuthenticatePeerRequestHello, int]:
    nonce, position = read_compact_bytes(body, position)
    node_id, directory_id = _IT.unpack_from(body, position)
    position += 20
    cluster_id, position = read_compact_string(body, position)
    host, position = read_compact_string(body, position)
    port, min_version, max_version = _IHH.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = AuthenticatePeerRequestHello(
        nonce=nonce,
        node_id=node_id,
        directory_id=directory_id,
        cluster_id=cluster_id,
        host=host,
        port=port,
        min_version=min_version,
        max_version=max_version,
    )
    return message, position


def _write_request_hello_v0(write: Write, message: AuthenticatePeerRequestHello) -> None:
    write_compact_bytes(write, message.nonce)
    write(_IT.pack(message.node_id, uuid(message.directory_id)))
    write_compact_string(write, message.cluster_id)
    write_compact_string(write, message.host)
    write(_IHHX.pack(message.port, message.min_version, message.max_version))


def _read_request_v0(body: Buffer, position: int) -> tuple[AuthenticatePeerRequest, int]:
    hello, position = read_nullable_struct(body, position, _read_request_hello_v0)
    proof, position = read_compact_bytes(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AuthenticatePeerRequest(hello=hello, proof=proof)
    return message, position


def _write_request_v0(write: Write, message: AuthenticatePeerRequest) -> None:
    write_nullable_struct(write, message.hello, _write_request_hello_v0)
    write_compact_bytes(write, message.proof)
    write(NO_TAGS)


def _read_response_challenge_v0(body: Buffer, position: int) -> tuple[AuthenticatePeerResponseChallenge, int]:
    nonce, position = read_compact_bytes(body, position)
    node_id, directory_id = _IT.unpack_from(body, position)
    position += 20
    cluster_id, position = read_compact_string(body, position)
    host, position = read_compact_string(body, position)
    port, min_version, max_version = _IHH.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = AuthenticatePeerResponseChallenge(
        nonce=nonce,
        node_id=node_id,
        directory_id=directory_id,
        cluster_id=cluster_id,
        host=host,
        port=port,
        min_version=min_version,
        max_version=max_version,
    )
    return message, position


def _write_response_challenge_v0(write: Write, message: AuthenticatePeerResponseChallenge) -> None:
    write_compact_bytes(write, message.nonce)
    write(_IT.pack(message.node_id, uuid(message.directory_id)))
    write_compact_string(write, message.cluster_id)
    write_compact_string(write, message.host)
    write(_IHHX.pack(message.port, message.min_version, message.max_version))


def _read_response_v0(body: Buffer, position: int) -> tuple[AuthenticatePeerResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    challenge, position = read_nullable_struct(body, position, _read_response_challenge_v0)
    proof, position = read_compact_bytes(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AuthenticatePeerResponse(
        error_code=error_code,
        error_message=error_message,
        challenge=challenge,
        proof=proof,
    )
    return message, position


def _write_response_v0(write: Write, message: AuthenticatePeerResponse) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_nullable_struct(write, message.challenge, _write_response_challenge_v0)
    write_compact_bytes(write, message.proof)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> AuthenticatePeerRequest:
    return decode(_REQUEST_READERS, "AuthenticatePeerRequest", buffer, position, end, version)


def encode_request(message: AuthenticatePeerRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "AuthenticatePeerRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> AuthenticatePeerResponse:
    return decode(_RESPONSE_READERS, "AuthenticatePeerResponse", buffer, position, end, version)


def encode_response(message: AuthenticatePeerResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "AuthenticatePeerResponse", message, version)


def begin_response(message: AuthenticatePeerResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "AuthenticatePeerResponse", message, version)
