"""RemoveRaftVoter (81), versions 0 to 0.

Generated from wire/schemas/remove_raft_voter.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import ZERO_UUID, Buffer
from headrace.wire.primitives.readers import read_compact_nullable_string, skip_tags
from headrace.wire.primitives.writers import NO_TAGS, Write, uuid, write_compact_nullable_string

API_KEY = 81
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IH = Struct(">ih")
_IT = Struct(">i16s")
_ITX = Struct(">i16sx")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRaftVoterRequest:
    cluster_id: str | None = ""
    voter_id: int = 0
    voter_directory_id: bytes = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRaftVoterResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""


def _read_request_v0(body: Buffer, position: int) -> tuple[RemoveRaftVoterRequest, int]:
    cluster_id, position = read_compact_nullable_string(body, position)
    voter_id, voter_directory_id = _IT.unpack_from(body, position)
    position += 20
    position = skip_tags(body, position) if body[position] else position + 1
    message = RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=voter_directory_id)
    return message, position


def _write_request_v0(write: Write, message: RemoveRaftVoterRequest) -> None:
    write_compact_nullable_string(write, message.cluster_id)
    write(_ITX.pack(message.voter_id, uuid(message.voter_directory_id)))


def _read_response_v0(body: Buffer, position: int) -> tuple[RemoveRaftVoterResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = RemoveRaftVoterResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
    )
    return message, position


def _write_response_v0(write: Write, message: RemoveRaftVoterResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> RemoveRaftVoterRequest:
    return decode(_REQUEST_READERS, "RemoveRaftVoterRequest", buffer, position, end, version)


def encode_request(message: RemoveRaftVoterRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "RemoveRaftVoterRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> RemoveRaftVoterResponse:
    return decode(_RESPONSE_READERS, "RemoveRaftVoterResponse", buffer, position, end, version)


def encode_response(message: RemoveRaftVoterResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "RemoveRaftVoterResponse", message, version)


def begin_response(message: RemoveRaftVoterResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "RemoveRaftVoterResponse", message, version)
