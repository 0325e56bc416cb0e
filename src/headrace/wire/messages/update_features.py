"""UpdateFeatures (57), versions 0 to 2.

Generated from wire/schemas/update_features.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT16, INT32, Buffer
from headrace.wire.primitives.readers import (
    read_compact_array,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_compact_array,
    write_compact_nullable_string,
    write_compact_string,
)

API_KEY = 57
MIN_VERSION = 0
MAX_VERSION = 2
FLEXIBLE_FROM = 0

_FX = Struct(">?x")
_HB = Struct(">hb")
_HBX = Struct(">hbx")
_HF = Struct(">h?")
_HFX = Struct(">h?x")
_IH = Struct(">ih")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFeaturesRequestFeatureUpdate:
    feature: str = ""
    max_version_level: int = 0
    allow_downgrade: bool = False
    upgrade_type: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFeaturesRequest:
    timeout_ms: int = 60000
    feature_updates: tuple[UpdateFeaturesRequestFeatureUpdate, ...] = ()
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFeaturesResponseResult:
    feature: str = ""
    error_code: int = 0
    error_message: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFeaturesResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: tuple[UpdateFeaturesResponseResult, ...] = ()


def _read_request_feature_update_v0(body: Buffer, position: int) -> tuple[UpdateFeaturesRequestFeatureUpdate, int]:
    feature, position = read_compact_string(body, position)
    max_version_level, allow_downgrade = _HF.unpack_from(body, position)
    position += 3
    position = skip_tags(body, position) if body[position] else position + 1
    message = UpdateFeaturesRequestFeatureUpdate(
        feature=feature,
        max_version_level=max_version_level,
        allow_downgrade=allow_downgrade,
    )
    return message, position


def _write_request_feature_update_v0(write: Write, message: UpdateFeaturesRequestFeatureUpdate) -> None:
    write_compact_string(write, message.feature)
    write(_HFX.pack(message.max_version_level, message.allow_downgrade))


def _read_request_v0(body: Buffer, position: int) -> tuple[UpdateFeaturesRequest, int]:
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    feature_updates, position = read_compact_array(body, position, 5, _read_request_feature_update_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = UpdateFeaturesRequest(timeout_ms=timeout_ms, feature_updates=feature_updates)
    return message, position


def _write_request_v0(write: Write, message: UpdateFeaturesRequest) -> None:
    write(INT32.pack(message.timeout_ms))
    write_compact_array(write, message.feature_updates, _write_request_feature_update_v0)
    write(NO_TAGS)


def _read_request_feature_update_v1(body: Buffer, position: int) -> tuple[UpdateFeaturesRequestFeatureUpdate, int]:
    feature, position = read_compact_string(body, position)
    max_version_level, upgrade_type = _HB.unpack_from(body, position)
    position += 3
    position = skip_tags(body, position) if body[position] else position + 1
    message = UpdateFeaturesRequestFeatureUpdate(
        feature=feature,
        max_version_level=max_version_level,
        upgrade_type=upgrade_type,
    )
    return message, position


def _write_request_feature_update_v1(write: Write, message: UpdateFeaturesRequestFeatureUpdate) -> None:
    write_compact_string(write, message.feature)
    write(_HBX.pack(message.max_version_level, message.upgrade_type))


def _read_request_v1(body: Buffer, position: int) -> tuple[UpdateFeaturesRequest, int]:
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    feature_updates, position = read_compact_array(body, position, 5, _read_request_feature_update_v1)
    (validate_only,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = UpdateFeaturesRequest(timeout_ms=timeout_ms, feature_updates=feature_updates, validate_only=validate_only)
    return message, position


def _write_request_v1(write: Write, message: UpdateFeaturesRequest) -> None:
    write(INT32.pack(message.timeout_ms))
    write_compact_array(write, message.feature_updates, _write_request_feature_update_v1)
    write(_FX.pack(message.validate_only))


def _read_response_result_v0(body: Buffer, position: int) -> tuple[UpdateFeaturesResponseResult, int]:
    feature, position = read_compact_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = UpdateFeaturesResponseResult(feature=feature, error_code=error_code, error_message=error_message)
    return message, position


def _write_response_result_v0(write: Write, message: UpdateFeaturesResponseResult) -> None:
    write_compact_string(write, message.feature)
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[UpdateFeaturesResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    results, position = read_compact_array(body, position, 5, _read_response_result_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = UpdateFeaturesResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        results=results,
    )
    return message, position


def _write_response_v0(write: Write, message: UpdateFeaturesResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_array(write, message.results, _write_response_result_v0)
    write(NO_TAGS)


def _read_response_v2(body: Buffer, position: int) -> tuple[UpdateFeaturesResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = UpdateFeaturesResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
    )
    return message, position


def _write_response_v2(write: Write, message: UpdateFeaturesResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v1,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v1,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> UpdateFeaturesRequest:
    return decode(_REQUEST_READERS, "UpdateFeaturesRequest", buffer, position, end, version)


def encode_request(message: UpdateFeaturesRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "UpdateFeaturesRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v2,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v2,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> UpdateFeaturesResponse:
    return decode(_RESPONSE_READERS, "UpdateFeaturesResponse", buffer, position, end, version)


def encode_response(message: UpdateFeaturesResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "UpdateFeaturesResponse", message, version)


def begin_response(message: UpdateFeaturesResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "UpdateFeaturesResponse", message, version)
