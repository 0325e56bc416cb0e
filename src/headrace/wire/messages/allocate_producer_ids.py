"""AllocateProducerIds (67), versions 0 to 0.

Generated from wire/schemas/allocate_producer_ids.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import Buffer
from headrace.wire.primitives.readers import skip_tags
from headrace.wire.primitives.writers import Write

API_KEY = 67
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IHQI = Struct(">ihqi")
_IHQIX = Struct(">ihqix")
_IQ = Struct(">iq")
_IQX = Struct(">iqx")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsRequest:
    broker_id: int = 0
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id_start: int = 0
    producer_id_len: int = 0


def _read_request_v0(body: Buffer, position: int) -> tuple[AllocateProducerIdsRequest, int]:
    broker_id, broker_epoch = _IQ.unpack_from(body, position)
    position += 12
    position = skip_tags(body, position) if body[position] else position + 1
    message = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch)
    return message, position


def _write_request_v0(write: Write, message: AllocateProducerIdsRequest) -> None:
    write(_IQX.pack(message.broker_id, message.broker_epoch))


def _read_response_v0(body: Buffer, position: int) -> tuple[AllocateProducerIdsResponse, int]:
    throttle_time_ms, error_code, producer_id_start, producer_id_len = _IHQI.unpack_from(body, position)
    position += 18
    position = skip_tags(body, position) if body[position] else position + 1
    message = AllocateProducerIdsResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        producer_id_start=producer_id_start,
        producer_id_len=producer_id_len,
    )
    return message, position


def _write_response_v0(write: Write, message: AllocateProducerIdsResponse) -> None:
    write(_IHQIX.pack(message.throttle_time_ms, message.error_code, message.producer_id_start, message.producer_id_len))


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> AllocateProducerIdsRequest:
    return decode(_REQUEST_READERS, "AllocateProducerIdsRequest", buffer, position, end, version)


def encode_request(message: AllocateProducerIdsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "AllocateProducerIdsRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> AllocateProducerIdsResponse:
    return decode(_RESPONSE_READERS, "AllocateProducerIdsResponse", buffer, position, end, version)


def encode_response(message: AllocateProducerIdsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "AllocateProducerIdsResponse", message, version)


def begin_response(message: AllocateProducerIdsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "AllocateProducerIdsResponse", message, version)
