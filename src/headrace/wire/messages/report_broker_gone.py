"""ReportBrokerGone (32025), versions 0 to 0.

Generated from wire/schemas/report_broker_gone.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, Buffer
from headrace.wire.primitives.readers import skip_tags
from headrace.wire.primitives.writers import Write

API_KEY = 32025
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_HX = Struct(">hx")
_IQ = Struct(">iq")
_IQX = Struct(">iqx")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportBrokerGoneRequest:
    broker_id: int = 0
    broker_epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportBrokerGoneResponse:
    error_code: int = 0


def _read_request_v0(body: Buffer, position: int) -> tuple[ReportBrokerGoneRequest, int]:
    broker_id, broker_epoch = _IQ.unpack_from(body, position)
    position += 12
    position = skip_tags(body, position) if body[position] else position + 1
    message = ReportBrokerGoneRequest(broker_id=broker_id, broker_epoch=broker_epoch)
    return message, position


def _write_request_v0(write: Write, message: ReportBrokerGoneRequest) -> None:
    write(_IQX.pack(message.broker_id, message.broker_epoch))


def _read_response_v0(body: Buffer, position: int) -> tuple[ReportBrokerGoneResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = ReportBrokerGoneResponse(error_code=error_code)
    return message, position


def _write_response_v0(write: Write, message: ReportBrokerGoneResponse) -> None:
    write(_HX.pack(message.error_code))


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ReportBrokerGoneRequest:
    return decode(_REQUEST_READERS, "ReportBrokerGoneRequest", buffer, position, end, version)


def encode_request(message: ReportBrokerGoneRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ReportBrokerGoneRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ReportBrokerGoneResponse:
    return decode(_RESPONSE_READERS, "ReportBrokerGoneResponse", buffer, position, end, version)


def encode_response(message: ReportBrokerGoneResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ReportBrokerGoneResponse", message, version)


def begin_response(message: ReportBrokerGoneResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ReportBrokerGoneResponse", message, version)
