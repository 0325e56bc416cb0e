"""SaslHandshake (17), versions 0 to 1.

Generated from wire/schemas/sasl_handshake.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, Buffer
from headrace.wire.primitives.readers import read_array, read_string
from headrace.wire.primitives.writers import Write, write_array, write_string

API_KEY = 17
MIN_VERSION = 0
MAX_VERSION = 1
FLEXIBLE_FROM = 32767


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshakeRequest:
    mechanism: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshakeResponse:
    error_code: int = 0
    mechanisms: tuple[str, ...] = ()


def _read_request_v0(body: Buffer, position: int) -> tuple[SaslHandshakeRequest, int]:
    mechanism, position = read_string(body, position)
    message = SaslHandshakeRequest(mechanism=mechanism)
    return message, position


def _write_request_v0(write: Write, message: SaslHandshakeRequest) -> None:
    write_string(write, message.mechanism)


def _read_response_v0(body: Buffer, position: int) -> tuple[SaslHandshakeResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    mechanisms, position = read_array(body, position, 2, read_string)
    message = SaslHandshakeResponse(error_code=error_code, mechanisms=mechanisms)
    return message, position


def _write_response_v0(write: Write, message: SaslHandshakeResponse) -> None:
    write(INT16.pack(message.error_code))
    write_array(write, message.mechanisms, write_string)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> SaslHandshakeRequest:
    return decode(_REQUEST_READERS, "SaslHandshakeRequest", buffer, position, end, version)


def encode_request(message: SaslHandshakeRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "SaslHandshakeRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> SaslHandshakeResponse:
    return decode(_RESPONSE_READERS, "SaslHandshakeResponse", buffer, position, end, version)


def encode_response(message: SaslHandshakeResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "SaslHandshakeResponse", message, version)


def begin_response(message: SaslHandshakeResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "SaslHandshakeResponse", message, version)
