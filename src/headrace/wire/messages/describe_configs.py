"""DescribeConfigs (32), versions 0 to 4.

Generated from wire/schemas/describe_configs.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT8, INT16, INT32, Buffer
from headrace.wire.primitives.readers import (
    read_array,
    read_compact_array,
    read_compact_nullable_array,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_array,
    read_nullable_string,
    read_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_array,
    write_compact_array,
    write_compact_nullable_array,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_array,
    write_nullable_string,
    write_string,
)

API_KEY = 32
MIN_VERSION = 0
MAX_VERSION = 4
FLEXIBLE_FROM = 4

_BX = Struct(">bx")
_FBF = Struct(">?b?")
_FF = Struct(">??")
_FFF = Struct(">???")
_FFX = Struct(">??x")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsRequestResource:
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsRequest:
    resources: tuple[DescribeConfigsRequestResource, ...] = ()
    include_synonyms: bool = False
    include_documentation: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResponseSynonym:
    name: str = ""
    value: str | None = ""
    source: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResponseConfig:
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_default: bool = False
    is_sensitive: bool = False
    synonyms: tuple[DescribeConfigsResponseSynonym, ...] = ()
    config_type: int = 0
    documentation: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResponseResult:
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: tuple[DescribeConfigsResponseConfig, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResponse:
    throttle_time_ms: int = 0
    results: tuple[DescribeConfigsResponseResult, ...] = ()


def _read_request_resource_v0(body: Buffer, position: int) -> tuple[DescribeConfigsRequestResource, int]:
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_string(body, position)
    configuration_keys, position = read_nullable_array(body, position, 2, read_string)
    message = DescribeConfigsRequestResource(
        resource_type=resource_type,
        resource_name=resource_name,
        configuration_keys=configuration_keys,
    )
    return message, position


def _write_request_resource_v0(write: Write, message: DescribeConfigsRequestResource) -> None:
    write(INT8.pack(message.resource_type))
    write_string(write, message.resource_name)
    write_nullable_array(write, message.configuration_keys, write_string)


def _read_request_v0(body: Buffer, position: int) -> tuple[DescribeConfigsRequest, int]:
    resources, position = read_array(body, position, 7, _read_request_resource_v0)
    message = DescribeConfigsRequest(resources=resources)
    return message, position


def _write_request_v0(write: Write, message: DescribeConfigsRequest) -> None:
    write_array(write, message.resources, _write_request_resource_v0)


def _read_request_v1(body: Buffer, position: int) -> tuple[DescribeConfigsRequest, int]:
    resources, position = read_array(body, position, 7, _read_request_resource_v0)
    (include_synonyms,) = BOOL.unpack_from(body, position)
    position += 1
    message = DescribeConfigsRequest(resources=resources, include_synonyms=include_synonyms)
    return message, position


def _write_request_v1(write: Write, message: DescribeConfigsRequest) -> None:
    write_array(write, message.resources, _write_request_resource_v0)
    write(BOOL.pack(message.include_synonyms))


def _read_request_v3(body: Buffer, position: int) -> tuple[DescribeConfigsRequest, int]:
    resources, position = read_array(body, position, 7, _read_request_resource_v0)
    include_synonyms, include_documentation = _FF.unpack_from(body, position)
    position += 2
    message = DescribeConfigsRequest(
        resources=resources,
        include_synonyms=include_synonyms,
        include_documentation=include_documentation,
    )
    return message, position


def _write_request_v3(write: Write, message: DescribeConfigsRequest) -> None:
    write_array(write, message.resources, _write_request_resource_v0)
    write(_FF.pack(message.include_synonyms, message.include_documentation))


def _read_request_resource_v4(body: Buffer, position: int) -> tuple[DescribeConfigsRequestResource, int]:
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_compact_string(body, position)
    configuration_keys, position = read_compact_nullable_array(body, position, 1, read_compact_string)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeConfigsRequestResource(
        resource_type=resource_type,
        resource_name=resource_name,
        configuration_keys=configuration_keys,
    )
    return message, position


def _write_request_resource_v4(write: Write, message: DescribeConfigsRequestResource) -> None:
    write(INT8.pack(message.resource_type))
    write_compact_string(write, message.resource_name)
    write_compact_nullable_array(write, message.configuration_keys, write_compact_string)
    write(NO_TAGS)


def _read_request_v4(body: Buffer, position: int) -> tuple[DescribeConfigsRequest, int]:
    resources, position = read_compact_array(body, position, 4, _read_request_resource_v4)
    include_synonyms, include_documentation = _FF.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeConfigsRequest(
        resources=resources,
        include_synonyms=include_synonyms,
        include_documentation=include_documentation,
    )
    return message, position


def _write_request_v4(write: Write, message: DescribeConfigsRequest) -> None:
    write_compact_array(write, message.resources, _write_request_resource_v4)
    write(_FFX.pack(message.include_synonyms, message.include_documentation))


def _read_response_config_v0(body: Buffer, position: int) -> tuple[DescribeConfigsResponseConfig, int]:
    name, position = read_string(body, position)
    value, position = read_nullable_string(body, position)
    read_only, is_default, is_sensitive = _FFF.unpack_from(body, position)
    position += 3
    message = DescribeConfigsResponseConfig(
        name=name,
        value=value,
        read_only=read_only,
        is_default=is_default,
        is_sensitive=is_sensitive,
    )
    return message, position


def _write_response_config_v0(write: Write, message: DescribeConfigsResponseConfig) -> None:
    write_string(write, message.name)
    write_nullable_string(write, message.value)
    write(_FFF.pack(message.read_only, message.is_default, message.is_sensitive))


def _read_response_result_v0(body: Buffer, position: int) -> tuple[DescribeConfigsResponseResult, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_string(body, position)
    configs, position = read_array(body, position, 7, _read_response_config_v0)
    message = DescribeConfigsResponseResult(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource_type,
        resource_name=resource_name,
        configs=configs,
    )
    return message, position


def _write_response_result_v0(write: Write, message: DescribeConfigsResponseResult) -> None:
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)
    write(INT8.pack(message.resource_type))
    write_string(write, message.resource_name)
    write_array(write, message.configs, _write_response_config_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[DescribeConfigsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results, position = read_array(body, position, 11, _read_response_result_v0)
    message = DescribeConfigsResponse(throttle_time_ms=throttle_time_ms, results=results)
    return message, position


def _write_response_v0(write: Write, message: DescribeConfigsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.results, _write_response_result_v0)


def _read_response_synonym_v1(body: Buffer, position: int) -> tuple[DescribeConfigsResponseSynonym, int]:
    name, position = read_string(body, position)
    value, position = read_nullable_string(body, position)
    (source,) = INT8.unpack_from(body, position)
    position += 1
    message = DescribeConfigsResponseSynonym(name=name, value=value, source=source)
    return message, position


def _write_response_synonym_v1(write: Write, message: DescribeConfigsResponseSynonym) -> None:
    write_string(write, message.name)
    write_nullable_string(write, message.value)
    write(INT8.pack(message.source))


def _read_response_config_v1(body: Buffer, position: int) -> tuple[DescribeConfigsResponseConfig, int]:
    name, position = read_string(body, position)
    value, position = read_nullable_string(body, position)
    read_only, config_source, is_sensitive = _FBF.unpack_from(body, position)
    position += 3
    synonyms, position = read_array(body, position, 5, _read_response_synonym_v1)
    message = DescribeConfigsResponseConfig(
        name=name,
        value=value,
        read_only=read_only,
        config_source=config_source,
        is_sensitive=is_sensitive,
        synonyms=synonyms,
    )
    return message, position


def _write_response_config_v1(write: Write, message: DescribeConfigsResponseConfig) -> None:
    write_string(write, message.name)
    write_nullable_string(write, message.value)
    write(_FBF.pack(message.read_only, message.config_source, message.is_sensitive))
    write_array(write, message.synonyms, _write_response_synonym_v1)


def _read_response_result_v1(body: Buffer, position: int) -> tuple[DescribeConfigsResponseResult, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_string(body, position)
    configs, position = read_array(body, position, 11, _read_response_config_v1)
    message = DescribeConfigsResponseResult(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource_type,
        resource_name=resource_name,
        configs=configs,
    )
    return message, position


def _write_response_result_v1(write: Write, message: DescribeConfigsResponseResult) -> None:
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)
    write(INT8.pack(message.resource_type))
    write_string(write, message.resource_name)
    write_array(write, message.configs, _write_response_config_v1)


def _read_response_v1(body: Buffer, position: int) -> tuple[DescribeConfigsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results, position = read_array(body, position, 11, _read_response_result_v1)
    message = DescribeConfigsResponse(throttle_time_ms=throttle_time_ms, results=results)
    return message, position


def _write_response_v1(write: Write, message: DescribeConfigsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.results, _write_response_result_v1)


def _read_response_config_v3(body: Buffer, position: int) -> tuple[DescribeConfigsResponseConfig, int]:
    name, position = read_string(body, position)
    value, position = read_nullable_string(body, position)
    read_only, config_source, is_sensitive = _FBF.unpack_from(body, position)
    position += 3
    synonyms, position = read_array(body, position, 5, _read_response_synonym_v1)
    (config_type,) = INT8.unpack_from(body, position)
    position += 1
    documentation, position = read_nullable_string(body, position)
    message = DescribeConfigsResponseConfig(
        name=name,
        value=value,
        read_only=read_only,
        config_source=config_source,
        is_sensitive=is_sensitive,
        synonyms=synonyms,
        config_type=config_type,
        documentation=documentation,
    )
    return message, position


def _write_response_config_v3(write: Write, message: DescribeConfigsResponseConfig) -> None:
    write_string(write, message.name)
    write_nullable_string(write, message.value)
    write(_FBF.pack(message.read_only, message.config_source, message.is_sensitive))
    write_array(write, message.synonyms, _write_response_synonym_v1)
    write(INT8.pack(message.config_type))
    write_nullable_string(write, message.documentation)


def _read_response_result_v3(body: Buffer, position: int) -> tuple[DescribeConfigsResponseResult, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_string(body, position)
    configs, position = read_array(body, position, 14, _read_response_config_v3)
    message = DescribeConfigsResponseResult(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource_type,
        resource_name=resource_name,
        configs=configs,
    )
    return message, position


def _write_response_result_v3(write: Write, message: DescribeConfigsResponseResult) -> None:
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)
    write(INT8.pack(message.resource_type))
    write_string(write, message.resource_name)
    write_array(write, message.configs, _write_response_config_v3)


def _read_response_v3(body: Buffer, position: int) -> tuple[DescribeConfigsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results, position = read_array(body, position, 11, _read_response_result_v3)
    message = DescribeConfigsResponse(throttle_time_ms=throttle_time_ms, results=results)
    return message, position


def _write_response_v3(write: Write, message: DescribeConfigsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.results, _write_response_result_v3)


def _read_response_synonym_v4(body: Buffer, position: int) -> tuple[DescribeConfigsResponseSynonym, int]:
    name, position = read_compact_string(body, position)
    value, position = read_compact_nullable_string(body, position)
    (source,) = INT8.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeConfigsResponseSynonym(name=name, value=value, source=source)
    return message, position


def _write_response_synonym_v4(write: Write, message: DescribeConfigsResponseSynonym) -> None:
    write_compact_string(write, message.name)
    write_compact_nullable_string(write, message.value)
    write(_BX.pack(message.source))


def _read_response_config_v4(body: Buffer, position: int) -> tuple[DescribeConfigsResponseConfig, int]:
    name, position = read_compact_string(body, position)
    value, position = read_compact_nullable_string(body, position)
    read_only, config_source, is_sensitive = _FBF.unpack_from(body, position)
    position += 3
    synonyms, position = read_compact_array(body, position, 4, _read_response_synonym_v4)
    (config_type,) = INT8.unpack_from(body, position)
    position += 1
    documentation, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeConfigsResponseConfig(
        name=name,
        value=value,
        read_only=read_only,
        config_source=config_source,
        is_sensitive=is_sensitive,
        synonyms=synonyms,
        config_type=config_type,
        documentation=documentation,
    )
    return message, position


def _write_response_config_v4(write: Write, message: DescribeConfigsResponseConfig) -> None:
    write_compact_string(write, message.name)
    write_compact_nullable_string(write, message.value)
    write(_FBF.pack(message.read_only, message.config_source, message.is_sensitive))
    write_compact_array(write, message.synonyms, _write_response_synonym_v4)
    write(INT8.pack(message.config_type))
    write_compact_nullable_string(write, message.documentation)
    write(NO_TAGS)


def _read_response_result_v4(body: Buffer, position: int) -> tuple[DescribeConfigsResponseResult, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_compact_string(body, position)
    configs, position = read_compact_array(body, position, 9, _read_response_config_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeConfigsResponseResult(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource_type,
        resource_name=resource_name,
        configs=configs,
    )
    return message, position


def _write_response_result_v4(write: Write, message: DescribeConfigsResponseResult) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(INT8.pack(message.resource_type))
    write_compact_string(write, message.resource_name)
    write_compact_array(write, message.configs, _write_response_config_v4)
    write(NO_TAGS)


def _read_response_v4(body: Buffer, position: int) -> tuple[DescribeConfigsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results, position = read_compact_array(body, position, 7, _read_response_result_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeConfigsResponse(throttle_time_ms=throttle_time_ms, results=results)
    return message, position


def _write_response_v4(write: Write, message: DescribeConfigsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.results, _write_response_result_v4)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v1,
    _read_request_v3,
    _read_request_v4,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v1,
    _write_request_v3,
    _write_request_v4,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeConfigsRequest:
    return decode(_REQUEST_READERS, "DescribeConfigsRequest", buffer, position, end, version)


def encode_request(message: DescribeConfigsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeConfigsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v1,
    _read_response_v3,
    _read_response_v4,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v1,
    _write_response_v3,
    _write_response_v4,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeConfigsResponse:
    return decode(_RESPONSE_READERS, "DescribeConfigsResponse", buffer, position, end, version)


def encode_response(message: DescribeConfigsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeConfigsResponse", message, version)


def begin_response(message: DescribeConfigsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeConfigsResponse", message, version)
