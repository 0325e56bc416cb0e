"""ApiVersions (18), versions 0 to 4.

Generated from wire/schemas/api_versions.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT16, INT32, INT64, Buffer
from headrace.wire.primitives.readers import (
    end_tag,
    read_array,
    read_bool,
    read_compact_array,
    read_compact_string,
    read_number,
    read_tag,
    read_tag_count,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_array,
    write_compact_array,
    write_compact_string,
    write_tags,
)

API_KEY = 18
MIN_VERSION = 0
MAX_VERSION = 4
FLEXIBLE_FROM = 3

_HH = Struct(">hh")
_HHH = Struct(">hhh")
_HHHX = Struct(">hhhx")
_HHX = Struct(">hhx")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest:
    client_software_name: str = ""
    client_software_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponseApiKey:
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponseSupportedFeature:
    name: str = ""
    min_version: int = 0
    max_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponseFinalizedFeature:
    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponse:
    error_code: int = 0
    api_keys: tuple[ApiVersionsResponseApiKey, ...] = ()
    throttle_time_ms: int = 0
    supported_features: tuple[ApiVersionsResponseSupportedFeature, ...] = ()
    finalized_features_epoch: int = -1
    finalized_features: tuple[ApiVersionsResponseFinalizedFeature, ...] = ()
    zk_migration_ready: bool = False


def _read_request_v0(body: Buffer, position: int) -> tuple[ApiVersionsRequest, int]:
    message = ApiVersionsRequest()
    return message, position


def _write_request_v0(write: Write, message: ApiVersionsRequest) -> None:
    pass


def _read_request_v3(body: Buffer, position: int) -> tuple[ApiVersionsRequest, int]:
    client_software_name, position = read_compact_string(body, position)
    client_software_version, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ApiVersionsRequest(
        client_software_name=client_software_name,
        client_software_version=client_software_version,
    )
    return message, position


def _write_request_v3(write: Write, message: ApiVersionsRequest) -> None:
    write_compact_string(write, message.client_software_name)
    write_compact_string(write, message.client_software_version)
    write(NO_TAGS)


def _read_response_api_key_v0(body: Buffer, position: int) -> tuple[ApiVersionsResponseApiKey, int]:
    api_key, min_version, max_version = _HHH.unpack_from(body, position)
    position += 6
    message = ApiVersionsResponseApiKey(api_key=api_key, min_version=min_version, max_version=max_version)
    return message, position


def _write_response_api_key_v0(write: Write, message: ApiVersionsResponseApiKey) -> None:
    write(_HHH.pack(message.api_key, message.min_version, message.max_version))


def _read_response_v0(body: Buffer, position: int) -> tuple[ApiVersionsResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    api_keys, position = read_array(body, position, 6, _read_response_api_key_v0)
    message = ApiVersionsResponse(error_code=error_code, api_keys=api_keys)
    return message, position


def _write_response_v0(write: Write, message: ApiVersionsResponse) -> None:
    write(INT16.pack(message.error_code))
    write_array(write, message.api_keys, _write_response_api_key_v0)


def _read_response_v1(body: Buffer, position: int) -> tuple[ApiVersionsResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    api_keys, position = read_array(body, position, 6, _read_response_api_key_v0)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    message = ApiVersionsResponse(error_code=error_code, api_keys=api_keys, throttle_time_ms=throttle_time_ms)
    return message, position


def _write_response_v1(write: Write, message: ApiVersionsResponse) -> None:
    write(INT16.pack(message.error_code))
    write_array(write, message.api_keys, _write_response_api_key_v0)
    write(INT32.pack(message.throttle_time_ms))


def _read_response_api_key_v3(body: Buffer, position: int) -> tuple[ApiVersionsResponseApiKey, int]:
    api_key, min_version, max_version = _HHH.unpack_from(body, position)
    position += 6
    position = skip_tags(body, position) if body[position] else position + 1
    message = ApiVersionsResponseApiKey(api_key=api_key, min_version=min_version, max_version=max_version)
    return message, position


def _write_response_api_key_v3(write: Write, message: ApiVersionsResponseApiKey) -> None:
    write(_HHHX.pack(message.api_key, message.min_version, message.max_version))


def _read_response_supported_feature_v3(body: Buffer, position: int) -> tuple[ApiVersionsResponseSupportedFeature, int]:
    name, position = read_compact_string(body, position)
    min_version, max_version = _HH.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = ApiVersionsResponseSupportedFeature(name=name, min_version=min_version, max_version=max_version)
    return message, position


def _write_response_supported_feature_v3(write: Write, message: ApiVersionsResponseSupportedFeature) -> None:
    write_compact_string(write, message.name)
    write(_HHX.pack(message.min_version, message.max_version))


def _read_response_finalized_feature_v3(body: Buffer, position: int) -> tuple[ApiVersionsResponseFinalizedFeature, int]:
    name, position = read_compact_string(body, position)
    max_version_level, min_version_level = _HH.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = ApiVersionsResponseFinalizedFeature(
        name=name,
        max_version_level=max_version_level,
        min_version_level=min_version_level,
    )
    return message, position


def _write_response_finalized_feature_v3(write: Write, message: ApiVersionsResponseFinalizedFeature) -> None:
    write_compact_string(write, message.name)
    write(_HHX.pack(message.max_version_level, message.min_version_level))


def _read_response_v3(body: Buffer, position: int) -> tuple[ApiVersionsResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    api_keys, position = read_compact_array(body, position, 7, _read_response_api_key_v3)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    supported_features: tuple[ApiVersionsResponseSupportedFeature, ...] = ()
    finalized_features_epoch: int = -1
    finalized_features: tuple[ApiVersionsResponseFinalizedFeature, ...] = ()
    zk_migration_ready: bool = False
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            supported_features, position = read_compact_array(body, position, 6, _read_response_supported_feature_v3)
        elif tag == 1:
            finalized_features_epoch, position = read_number(body, position, INT64)
        elif tag == 2:
            finalized_features, position = read_compact_array(body, position, 6, _read_response_finalized_feature_v3)
        elif tag == 3:
            zk_migration_ready, position = read_bool(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = ApiVersionsResponse(
        error_code=error_code,
        api_keys=api_keys,
        throttle_time_ms=throttle_time_ms,
        supported_features=supported_features,
        finalized_features_epoch=finalized_features_epoch,
        finalized_features=finalized_features,
        zk_migration_ready=zk_migration_ready,
    )
    return message, position


def _write_response_v3(write: Write, message: ApiVersionsResponse) -> None:
    write(INT16.pack(message.error_code))
    write_compact_array(write, message.api_keys, _write_response_api_key_v3)
    write(INT32.pack(message.throttle_time_ms))
    tagged: list[tuple[int, bytes]] = []
    if message.supported_features:
        parts: list[Buffer] = []
        write_compact_array(parts.append, message.supported_features, _write_response_supported_feature_v3)
        tagged.append((0, b"".join(parts)))
    if message.finalized_features_epoch != -1:
        parts = []
        parts.append(INT64.pack(message.finalized_features_epoch))
        tagged.append((1, b"".join(parts)))
    if message.finalized_features:
        parts = []
        write_compact_array(parts.append, message.finalized_features, _write_response_finalized_feature_v3)
        tagged.append((2, b"".join(parts)))
    if message.zk_migration_ready:
        parts = []
        parts.append(BOOL.pack(message.zk_migration_ready))
        tagged.append((3, b"".join(parts)))
    write_tags(write, tagged)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v0,
    _read_request_v3,
    _read_request_v3,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v0,
    _write_request_v3,
    _write_request_v3,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ApiVersionsRequest:
    return decode(_REQUEST_READERS, "ApiVersionsRequest", buffer, position, end, version)


def encode_request(message: ApiVersionsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ApiVersionsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v1,
    _read_response_v3,
    _read_response_v3,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v1,
    _write_response_v3,
    _write_response_v3,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ApiVersionsResponse:
    return decode(_RESPONSE_READERS, "ApiVersionsResponse", buffer, position, end, version)


def encode_response(message: ApiVersionsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ApiVersionsResponse", message, version)


def begin_response(message: ApiVersionsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ApiVersionsResponse", message, version)
