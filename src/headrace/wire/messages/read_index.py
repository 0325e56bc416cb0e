"""ReadIndex (32027), versions 0 to 0.

Generated from wire/schemas/read_index.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import Buffer
from headrace.wire.primitives.readers import skip_tags
from headrace.wire.primitives.writers import NO_TAGS, Write

API_KEY = 32027
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_HQ = Struct(">hq")
_HQX = Struct(">hqx")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadIndexRequest:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadIndexResponse:
    error_code: int = 0
    metadata_offset: int = 0


def _read_request_v0(body: Buffer, position: int) -> tuple[ReadIndexRequest, int]:
    position = skip_tags(body, position) if body[position] else position + 1
    message = ReadIndexRequest()
    return message, position


def _write_request_v0(write: Write, message: ReadIndexRequest) -> None:
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[ReadIndexResponse, int]:
    error_code, metadata_offset = _HQ.unpack_from(body, position)
    position += 10
    position = skip_tags(body, position) if body[position] else position + 1
    message = ReadIndexResponse(error_code=error_code, metadata_offset=metadata_offset)
    return message, position


def _write_response_v0(write: Write, message: ReadIndexResponse) -> None:
    write(_HQX.pack(message.error_code, message.metadata_offset))


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ReadIndexRequest:
    return decode(_REQUEST_READERS, "ReadIndexRequest", buffer, position, end, version)


def encode_request(message: ReadIndexRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ReadIndexRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ReadIndexResponse:
    return decode(_RESPONSE_READERS, "ReadIndexResponse", buffer, position, end, version)


def encode_response(message: ReadIndexResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ReadIndexResponse", message, version)


def begin_response(message: ReadIndexResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ReadIndexResponse", message, version)
