"""RaftMessages (32021), versions 0 to 0.

Generated from wire/schemas/raft_messages.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import Buffer
from headrace.wire.primitives.readers import read_compact_array, read_compact_bytes, skip_tags
from headrace.wire.primitives.writers import NO_TAGS, Write, write_compact_array, write_compact_bytes

API_KEY = 32021
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftMessagesRequest:
    messages: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftMessagesResponse:
    pass


def _read_request_v0(body: Buffer, position: int) -> tuple[RaftMessagesRequest, int]:
    messages, position = read_compact_array(body, position, 1, read_compact_bytes)
    position = skip_tags(body, position) if body[position] else position + 1
    message = RaftMessagesRequest(messages=messages)
    return message, position


def _write_request_v0(write: Write, message: RaftMessagesRequest) -> None:
    write_compact_array(write, message.messages, write_compact_bytes)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[RaftMessagesResponse, int]:
    position = skip_tags(body, position) if body[position] else position + 1
    message = RaftMessagesResponse()
    return message, position


def _write_response_v0(write: Write, message: RaftMessagesResponse) -> None:
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> RaftMessagesRequest:
    return decode(_REQUEST_READERS, "RaftMessagesRequest", buffer, position, end, version)


def encode_request(message: RaftMessagesRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "RaftMessagesRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> RaftMessagesResponse:
    return decode(_RESPONSE_READERS, "RaftMessagesResponse", buffer, position, end, version)


def encode_response(message: RaftMessagesResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "RaftMessagesResponse", message, version)


def begin_response(message: RaftMessagesResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "RaftMessagesResponse", message, version)
