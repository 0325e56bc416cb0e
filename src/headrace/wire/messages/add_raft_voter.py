"""AddRaftVoter (80), versions 0 to 1.

Generated from wire/schemas/add_raft_voter.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, UINT16, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    read_compact_array,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    uuid,
    write_compact_array,
    write_compact_nullable_string,
    write_compact_string,
)

API_KEY = 80
MIN_VERSION = 0
MAX_VERSION = 1
FLEXIBLE_FROM = 0

_FX = Struct(">?x")
_IH = Struct(">ih")
_IIT = Struct(">ii16s")
_UX = Struct(">Hx")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRaftVoterRequestListener:
    name: str = ""
    host: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRaftVoterRequest:
    cluster_id: str | None = ""
    timeout_ms: int = 0
    voter_id: int = 0
    voter_directory_id: bytes = ZERO_UUID
    listeners: tuple[AddRaftVoterRequestListener, ...] = ()
    ack_when_committed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRaftVoterResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""


def _read_request_listener_v0(body: Buffer, position: int) -> tuple[AddRaftVoterRequestListener, int]:
    name, position = read_compact_string(body, position)
    host, position = read_compact_string(body, position)
    (port,) = UINT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddRaftVoterRequestListener(name=name, host=host, port=port)
    return message, position


def _write_request_listener_v0(write: Write, message: AddRaftVoterRequestListener) -> None:
    write_compact_string(write, message.name)
    write_compact_string(write, message.host)
    write(_UX.pack(message.port))


def _read_request_v0(body: Buffer, position: int) -> tuple[AddRaftVoterRequest, int]:
    cluster_id, position = read_compact_nullable_string(body, position)
    timeout_ms, voter_id, voter_directory_id = _IIT.unpack_from(body, position)
    position += 24
    listeners, position = read_compact_array(body, position, 5, _read_request_listener_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=timeout_ms,
        voter_id=voter_id,
        voter_directory_id=voter_directory_id,
        listeners=listeners,
    )
    return message, position


def _write_request_v0(write: Write, message: AddRaftVoterRequest) -> None:
    write_compact_nullable_string(write, message.cluster_id)
    write(_IIT.pack(message.timeout_ms, message.voter_id, uuid(message.voter_directory_id)))
    write_compact_array(write, message.listeners, _write_request_listener_v0)
    write(NO_TAGS)


def _read_request_v1(body: Buffer, position: int) -> tuple[AddRaftVoterRequest, int]:
    cluster_id, position = read_compact_nullable_string(body, position)
    timeout_ms, voter_id, voter_directory_id = _IIT.unpack_from(body, position)
    position += 24
    listeners, position = read_compact_array(body, position, 5, _read_request_listener_v0)
    (ack_when_committed,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=timeout_ms,
        voter_id=voter_id,
        voter_directory_id=voter_directory_id,
        listeners=listeners,
        ack_when_committed=ack_when_committed,
    )
    return message, position


def _write_request_v1(write: Write, message: AddRaftVoterRequest) -> None:
    write_compact_nullable_string(write, message.cluster_id)
    write(_IIT.pack(message.timeout_ms, message.voter_id, uuid(message.voter_directory_id)))
    write_compact_array(write, message.listeners, _write_request_listener_v0)
    write(_FX.pack(message.ack_when_committed))


def _read_response_v0(body: Buffer, position: int) -> tuple[AddRaftVoterResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddRaftVoterResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
    )
    return message, position


def _write_response_v0(write: Write, message: AddRaftVoterResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> AddRaftVoterRequest:
    return decode(_REQUEST_READERS, "AddRaftVoterRequest", buffer, position, end, version)


def encode_request(message: AddRaftVoterRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "AddRaftVoterRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> AddRaftVoterResponse:
    return decode(_RESPONSE_READERS, "AddRaftVoterResponse", buffer, position, end, version)


def encode_response(message: AddRaftVoterResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "AddRaftVoterResponse", message, version)


def begin_response(message: AddRaftVoterResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "AddRaftVoterResponse", message, version)
