"""ListConfigResources (74), versions 0 to 1.

Generated from wire/schemas/list_config_resources.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT8, Buffer
from headrace.wire.primitives.readers import read_compact_array, read_compact_numbers, read_compact_string, skip_tags
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_compact_array,
    write_compact_numbers,
    write_compact_string,
)

API_KEY = 74
MIN_VERSION = 0
MAX_VERSION = 1
FLEXIBLE_FROM = 0

_BX = Struct(">bx")
_IH = Struct(">ih")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListConfigResourcesRequest:
    resource_types: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListConfigResourcesResponseConfigResource:
    resource_name: str = ""
    resource_type: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ListConfigResourcesResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: tuple[ListConfigResourcesResponseConfigResource, ...] = ()


def _read_request_v0(body: Buffer, position: int) -> tuple[ListConfigResourcesRequest, int]:
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListConfigResourcesRequest()
    return message, position


def _write_request_v0(write: Write, message: ListConfigResourcesRequest) -> None:
    write(NO_TAGS)


def _read_request_v1(body: Buffer, position: int) -> tuple[ListConfigResourcesRequest, int]:
    resource_types, position = read_compact_numbers(body, position, INT8)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListConfigResourcesRequest(resource_types=resource_types)
    return message, position


def _write_request_v1(write: Write, message: ListConfigResourcesRequest) -> None:
    write_compact_numbers(write, message.resource_types, INT8)
    write(NO_TAGS)


def _read_response_config_resource_v0(
    body: Buffer, position: int
) -> tuple[ListConfigResourcesResponseConfigResource, int]:
    resource_name, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListConfigResourcesResponseConfigResource(resource_name=resource_name)
    return message, position


def _write_response_config_resource_v0(write: Write, message: ListConfigResourcesResponseConfigResource) -> None:
    write_compact_string(write, message.resource_name)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[ListConfigResourcesResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    config_resources, position = read_compact_array(body, position, 2, _read_response_config_resource_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListConfigResourcesResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        config_resources=config_resources,
    )
    return message, position


def _write_response_v0(write: Write, message: ListConfigResourcesResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_array(write, message.config_resources, _write_response_config_resource_v0)
    write(NO_TAGS)


def _read_response_config_resource_v1(
    body: Buffer, position: int
) -> tuple[ListConfigResourcesResponseConfigResource, int]:
    resource_name, position = read_compact_string(body, position)
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListConfigResourcesResponseConfigResource(resource_name=resource_name, resource_type=resource_type)
    return message, position


def _write_response_config_resource_v1(write: Write, message: ListConfigResourcesResponseConfigResource) -> None:
    write_compact_string(write, message.resource_name)
    write(_BX.pack(message.resource_type))


def _read_response_v1(body: Buffer, position: int) -> tuple[ListConfigResourcesResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    config_resources, position = read_compact_array(body, position, 3, _read_response_config_resource_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListConfigResourcesResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        config_resources=config_resources,
    )
    return message, position


def _write_response_v1(write: Write, message: ListConfigResourcesResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_array(write, message.config_resources, _write_response_config_resource_v1)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ListConfigResourcesRequest:
    return decode(_REQUEST_READERS, "ListConfigResourcesRequest", buffer, position, end, version)


def encode_request(message: ListConfigResourcesRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ListConfigResourcesRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ListConfigResourcesResponse:
    return decode(_RESPONSE_READERS, "ListConfigResourcesResponse", buffer, position, end, version)


def encode_response(message: ListConfigResourcesResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ListConfigResourcesResponse", message, version)


def begin_response(message: ListConfigResourcesResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ListConfigResourcesResponse", message, version)
