"""ForwardRequest (32022), versions 0 to 0.

Generated from wire/schemas/forward_request.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT16, INT64, Buffer
from headrace.wire.primitives.readers import (
    end_tag,
    read_bool,
    read_compact_bytes,
    read_compact_nullable_string,
    read_compact_string,
    read_tag,
    read_tag_count,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_compact_bytes,
    write_compact_nullable_string,
    write_compact_string,
    write_tags,
)

API_KEY = 32022
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardRequestRequest:
    principal_type: str = ""
    principal_name: str = ""
    client_address: str = ""
    listener_name: str = ""
    frame: bytes = b""
    by_token: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardRequestResponse:
    error_code: int = 0
    error_message: str | None = None
    metadata_offset: int = -1
    frame: bytes = b""


def _read_request_v0(body: Buffer, position: int) -> tuple[ForwardRequestRequest, int]:
    principal_type, position = read_compact_string(body, position)
    principal_name, position = read_compact_string(body, position)
    client_address, position = read_compact_string(body, position)
    listener_name, position = read_compact_string(body, position)
    frame, position = read_compact_bytes(body, position)
    by_token: bool = False
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            by_token, position = read_bool(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = ForwardRequestRequest(
        principal_type=principal_type,
        principal_name=principal_name,
        client_address=client_address,
        listener_name=listener_name,
        frame=frame,
        by_token=by_token,
    )
    return message, position


def _write_request_v0(write: Write, message: ForwardRequestRequest) -> None:
    write_compact_string(write, message.principal_type)
    write_compact_string(write, message.principal_name)
    write_compact_string(write, message.client_address)
    write_compact_string(write, message.listener_name)
    write_compact_bytes(write, message.frame)
    tagged: list[tuple[int, bytes]] = []
    if message.by_token:
        parts: list[Buffer] = []
        parts.append(BOOL.pack(message.by_token))
        tagged.append((0, b"".join(parts)))
    write_tags(write, tagged)


def _read_response_v0(body: Buffer, position: int) -> tuple[ForwardRequestResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    (metadata_offset,) = INT64.unpack_from(body, position)
    position += 8
    frame, position = read_compact_bytes(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ForwardRequestResponse(
        error_code=error_code,
        error_message=error_message,
        metadata_offset=metadata_offset,
        frame=frame,
    )
    return message, position


def _write_response_v0(write: Write, message: ForwardRequestResponse) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(INT64.pack(message.metadata_offset))
    write_compact_bytes(write, message.frame)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ForwardRequestRequest:
    return decode(_REQUEST_READERS, "ForwardRequestRequest", buffer, position, end, version)


def encode_request(message: ForwardRequestRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ForwardRequestRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ForwardRequestResponse:
    return decode(_RESPONSE_READERS, "ForwardRequestResponse", buffer, position, end, version)


def encode_response(message: ForwardRequestResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ForwardRequestResponse", message, version)


def begin_response(message: ForwardRequestResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ForwardRequestResponse", message, version)
