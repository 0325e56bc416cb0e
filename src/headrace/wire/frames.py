"""The bytes before a message: the size of the frame, then the header of the request or the response.

Flexible versions have a tagged section at the end of the header, with one exception that clients depend on: the
response of ApiVersions, which a client must be able to read before it knows the broker's versions (KIP-511).
"""

from struct import Struct
from typing import NamedTuple

from headrace.wire.apis import ApiKey, is_flexible
from headrace.wire.errors import ProtocolError
from headrace.wire.primitives.layouts import INT32, Buffer
from headrace.wire.primitives.readers import MALFORMED, malformed, read_nullable_string, skip_tags
from headrace.wire.primitives.writers import NO_TAGS, write_nullable_string

SIZE_BYTES = 4
"""The length of a frame is in its first four bytes and does not count itself."""

_REQUEST = Struct(">hhi")
_SIZED_CORRELATION = Struct(">ii")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


def read_request_header(buffer: Buffer, position: int, end: int) -> RequestHeader:
    """Return the header of the request in `buffer[position:end]` (without its size), and where its body begins.

    The header of an unknown request is read as if it were not flexible: key, version and correlation id come first in
    every form, so it can be refused by name.
    """
    if not 0 <= position <= end <= len(buffer):
        raise ProtocolError(f"bytes {position} to {end} are outside a buffer of {len(buffer)}")
    frame = buffer if end == len(buffer) else memoryview(buffer)[:end]
    try:
        api_key, api_version, correlation_id = _REQUEST.unpack_from(frame, position)
        client_id, position = read_nullable_string(frame, position + _REQUEST.size)
        if is_flexible(api_key, api_version):
            position = skip_tags(frame, position)
    except MALFORMED as error:
        raise malformed(error) from error
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def response_header(correlation_id: int, api_key: int, api_version: int) -> bytes:
    """Return the header of a response, without the size of the frame."""
    header = INT32.pack(correlation_id)
    return header + NO_TAGS if _has_flexible_response_header(api_key, api_version) else header


def response_frame(api_key: int, api_version: int, correlation_id: int, body: Buffer) -> bytes:
    """Return a whole response with its size."""
    tags = NO_TAGS if _has_flexible_response_header(api_key, api_version) else b""
    size = INT32.size + len(tags) + len(body)
    return b"".join((_SIZED_CORRELATION.pack(size, correlation_id), tags, body))


def request_frame(api_key: int, api_version: int, correlation_id: int, client_id: str | None, body: Buffer) -> bytes:
    """Return a whole request with its size."""
    parts: list[Buffer] = [_REQUEST.pack(api_key, api_version, correlation_id)]
    write_nullable_string(parts.append, client_id)
    if is_flexible(api_key, api_version):
        parts.append(NO_TAGS)
    parts.append(body)
    size = sum(len(part) for part in parts)
    return b"".join((INT32.pack(size), *parts))


def read_response_header(buffer: Buffer, position: int, end: int, *, api_key: int, api_version: int) -> tuple[int, int]:
    """Return the correlation id of the response in `buffer[position:end]` (without its size), and where its body
    begins.
    """
    if not 0 <= position <= end <= len(buffer):
        raise ProtocolError(f"bytes {position} to {end} are outside a buffer of {len(buffer)}")
    frame = buffer if end == len(buffer) else memoryview(buffer)[:end]
    try:
        (correlation_id,) = INT32.unpack_from(frame, position)
        position += INT32.size
        if _has_flexible_response_header(api_key, api_version):
            position = skip_tags(frame, position)
    except MALFORMED as error:
        raise malformed(error) from error
    return correlation_id, position


def _has_flexible_response_header(api_key: int, api_version: int) -> bool:
    return api_key != ApiKey.API_VERSIONS and is_flexible(api_key, api_version)
