"""BrokerRegistration (62), versions 0 to 4.

Generated from wire/schemas/broker_registration.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT32, INT64, UUID, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    end_tag,
    read_bool,
    read_compact_array,
    read_compact_nullable_string,
    read_compact_string,
    read_tag,
    read_tag_count,
    read_uuid,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    uuid,
    write_compact_array,
    write_compact_nullable_string,
    write_compact_string,
    write_tags,
    write_uuid,
)

API_KEY = 62
MIN_VERSION = 0
MAX_VERSION = 4
FLEXIBLE_FROM = 0

_FX = Struct(">?x")
_HH = Struct(">hh")
_HHX = Struct(">hhx")
_IHQ = Struct(">ihq")
_IHQX = Struct(">ihqx")
_QX = Struct(">qx")
_UH = Struct(">Hh")
_UHX = Struct(">Hhx")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationRequestListener:
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationRequestFeature:
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationRequest:
    broker_id: int = 0
    cluster_id: str = ""
    incarnation_id: bytes = ZERO_UUID
    listeners: tuple[BrokerRegistrationRequestListener, ...] = ()
    features: tuple[BrokerRegistrationRequestFeature, ...] = ()
    rack: str | None = ""
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[bytes, ...] = ()
    previous_broker_epoch: int = -1
    host: str = ""
    is_controller: bool = False
    metadata_directory_id: bytes = ZERO_UUID
    boot_id: str = ""
    closed_cleanly: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    broker_epoch: int = -1
    error_message: str | None = None


def _read_request_listener_v0(body: Buffer, position: int) -> tuple[BrokerRegistrationRequestListener, int]:
    name, position = read_compact_string(body, position)
    host, position = read_compact_string(body, position)
    port, security_protocol = _UH.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = BrokerRegistrationRequestListener(name=name, host=host, port=port, security_protocol=security_protocol)
    return message, position


def _write_request_listener_v0(write: Write, message: BrokerRegistrationRequestListener) -> None:
    write_compact_string(write, message.name)
    write_compact_string(write, message.host)
    write(_UHX.pack(message.port, message.security_protocol))


def _read_request_feature_v0(body: Buffer, position: int) -> tuple[BrokerRegistrationRequestFeature, int]:
    name, position = read_compact_string(body, position)
    min_supported_version, max_supported_version = _HH.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = BrokerRegistrationRequestFeature(
        name=name,
        min_supported_version=min_supported_version,
        max_supported_version=max_supported_version,
    )
    return message, position


def _write_request_feature_v0(write: Write, message: BrokerRegistrationRequestFeature) -> None:
    write_compact_string(write, message.name)
    write(_HHX.pack(message.min_supported_version, message.max_supported_version))


def _read_request_v0(body: Buffer, position: int) -> tuple[BrokerRegistrationRequest, int]:
    (broker_id,) = INT32.unpack_from(body, position)
    position += 4
    cluster_id, position = read_compact_string(body, position)
    (incarnation_id,) = UUID.unpack_from(body, position)
    position += 16
    listeners, position = read_compact_array(body, position, 7, _read_request_listener_v0)
    features, position = read_compact_array(body, position, 6, _read_request_feature_v0)
    rack, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=listeners,
        features=features,
        rack=rack,
    )
    return message, position


def _write_request_v0(write: Write, message: BrokerRegistrationRequest) -> None:
    write(INT32.pack(message.broker_id))
    write_compact_string(write, message.cluster_id)
    write(UUID.pack(uuid(message.incarnation_id)))
    write_compact_array(write, message.listeners, _write_request_listener_v0)
    write_compact_array(write, message.features, _write_request_feature_v0)
    write_compact_nullable_string(write, message.rack)
    write(NO_TAGS)


def _read_request_v1(body: Buffer, position: int) -> tuple[BrokerRegistrationRequest, int]:
    (broker_id,) = INT32.unpack_from(body, position)
    position += 4
    cluster_id, position = read_compact_string(body, position)
    (incarnation_id,) = UUID.unpack_from(body, position)
    position += 16
    listeners, position = read_compact_array(body, position, 7, _read_request_listener_v0)
    features, position = read_compact_array(body, position, 6, _read_request_feature_v0)
    rack, position = read_compact_nullable_string(body, position)
    (is_migrating_zk_broker,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=listeners,
        features=features,
        rack=rack,
        is_migrating_zk_broker=is_migrating_zk_broker,
    )
    return message, position


def _write_request_v1(write: Write, message: BrokerRegistrationRequest) -> None:
    write(INT32.pack(message.broker_id))
    write_compact_string(write, message.cluster_id)
    write(UUID.pack(uuid(message.incarnation_id)))
    write_compact_array(write, message.listeners, _write_request_listener_v0)
    write_compact_array(write, message.features, _write_request_feature_v0)
    write_compact_nullable_string(write, message.rack)
    write(_FX.pack(message.is_migrating_zk_broker))


def _read_request_v2(body: Buffer, position: int) -> tuple[BrokerRegistrationRequest, int]:
    (broker_id,) = INT32.unpack_from(body, position)
    position += 4
    cluster_id, position = read_compact_string(body, position)
    (incarnation_id,) = UUID.unpack_from(body, position)
    position += 16
    listeners, position = read_compact_array(body, position, 7, _read_request_listener_v0)
    features, position = read_compact_array(body, position, 6, _read_request_feature_v0)
    rack, position = read_compact_nullable_string(body, position)
    (is_migrating_zk_broker,) = BOOL.unpack_from(body, position)
    position += 1
    log_dirs, position = read_compact_array(body, position, 16, read_uuid)
    position = skip_tags(body, position) if body[position] else position + 1
    message = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=listeners,
        features=features,
        rack=rack,
        is_migrating_zk_broker=is_migrating_zk_broker,
        log_dirs=log_dirs,
    )
    return message, position


def _write_request_v2(write: Write, message: BrokerRegistrationRequest) -> None:
    write(INT32.pack(message.broker_id))
    write_compact_string(write, message.cluster_id)
    write(UUID.pack(uuid(message.incarnation_id)))
    write_compact_array(write, message.listeners, _write_request_listener_v0)
    write_compact_array(write, message.features, _write_request_feature_v0)
    write_compact_nullable_string(write, message.rack)
    write(BOOL.pack(message.is_migrating_zk_broker))
    write_compact_array(write, message.log_dirs, write_uuid)
    write(NO_TAGS)


def _read_request_v3(body: Buffer, position: int) -> tuple[BrokerRegistrationRequest, int]:
    (broker_id,) = INT32.unpack_from(body, position)
    position += 4
    cluster_id, position = read_compact_string(body, position)
    (incarnation_id,) = UUID.unpack_from(body, position)
    position += 16
    listeners, position = read_compact_array(body, position, 7, _read_request_listener_v0)
    features, position = read_compact_array(body, position, 6, _read_request_feature_v0)
    rack, position = read_compact_nullable_string(body, position)
    (is_migrating_zk_broker,) = BOOL.unpack_from(body, position)
    position += 1
    log_dirs, position = read_compact_array(body, position, 16, read_uuid)
    (previous_broker_epoch,) = INT64.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=listeners,
        features=features,
        rack=rack,
        is_migrating_zk_broker=is_migrating_zk_broker,
        log_dirs=log_dirs,
        previous_broker_epoch=previous_broker_epoch,
    )
    return message, position


def _write_request_v3(write: Write, message: BrokerRegistrationRequest) -> None:
    write(INT32.pack(message.broker_id))
    write_compact_string(write, message.cluster_id)
    write(UUID.pack(uuid(message.incarnation_id)))
    write_compact_array(write, message.listeners, _write_request_listener_v0)
    write_compact_array(write, message.features, _write_request_feature_v0)
    write_compact_nullable_string(write, message.rack)
    write(BOOL.pack(message.is_migrating_zk_broker))
    write_compact_array(write, message.log_dirs, write_uuid)
    write(_QX.pack(message.previous_broker_epoch))


def _read_request_v4(body: Buffer, position: int) -> tuple[BrokerRegistrationRequest, int]:
    (broker_id,) = INT32.unpack_from(body, position)
    position += 4
    cluster_id, position = read_compact_string(body, position)
    (incarnation_id,) = UUID.unpack_from(body, position)
    position += 16
    listeners, position = read_compact_array(body, position, 7, _read_request_listener_v0)
    features, position = read_compact_array(body, position, 6, _read_request_feature_v0)
    rack, position = read_compact_nullable_string(body, position)
    (is_migrating_zk_broker,) = BOOL.unpack_from(body, position)
    position += 1
    log_dirs, position = read_compact_array(body, position, 16, read_uuid)
    (previous_broker_epoch,) = INT64.unpack_from(body, position)
    position += 8
    host: str = ""
    is_controller: bool = False
    metadata_directory_id: bytes = ZERO_UUID
    boot_id: str = ""
    closed_cleanly: bool = False
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 10000:
            host, position = read_compact_string(body, position)
        elif tag == 10001:
            is_controller, position = read_bool(body, position)
        elif tag == 10002:
            metadata_directory_id, position = read_uuid(body, position)
        elif tag == 10003:
            boot_id, position = read_compact_string(body, position)
        elif tag == 10004:
            closed_cleanly, position = read_bool(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=listeners,
        features=features,
        rack=rack,
        is_migrating_zk_broker=is_migrating_zk_broker,
        log_dirs=log_dirs,
        previous_broker_epoch=previous_broker_epoch,
        host=host,
        is_controller=is_controller,
        metadata_directory_id=metadata_directory_id,
        boot_id=boot_id,
        closed_cleanly=closed_cleanly,
    )
    return message, position


def _write_request_v4(write: Write, message: BrokerRegistrationRequest) -> None:
    write(INT32.pack(message.broker_id))
    write_compact_string(write, message.cluster_id)
    write(UUID.pack(uuid(message.incarnation_id)))
    write_compact_array(write, message.listeners, _write_request_listener_v0)
    write_compact_array(write, message.features, _write_request_feature_v0)
    write_compact_nullable_string(write, message.rack)
    write(BOOL.pack(message.is_migrating_zk_broker))
    write_compact_array(write, message.log_dirs, write_uuid)
    write(INT64.pack(message.previous_broker_epoch))
    tagged: list[tuple[int, bytes]] = []
    if message.host:
        parts: list[Buffer] = []
        write_compact_string(parts.append, message.host)
        tagged.append((10000, b"".join(parts)))
    if message.is_controller:
        parts = []
        parts.append(BOOL.pack(message.is_controller))
        tagged.append((10001, b"".join(parts)))
    if message.metadata_directory_id != ZERO_UUID:
        parts = []
        parts.append(UUID.pack(uuid(message.metadata_directory_id)))
        tagged.append((10002, b"".join(parts)))
    if message.boot_id:
        parts = []
        write_compact_string(parts.append, message.boot_id)
        tagged.append((10003, b"".join(parts)))
    if message.closed_cleanly:
        parts = []
        parts.append(BOOL.pack(message.closed_cleanly))
        tagged.append((10004, b"".join(parts)))
    write_tags(write, tagged)


def _read_response_v0(body: Buffer, position: int) -> tuple[BrokerRegistrationResponse, int]:
    throttle_time_ms, error_code, broker_epoch = _IHQ.unpack_from(body, position)
    position += 14
    position = skip_tags(body, position) if body[position] else position + 1
    message = BrokerRegistrationResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        broker_epoch=broker_epoch,
    )
    return message, position


def _write_response_v0(write: Write, message: BrokerRegistrationResponse) -> None:
    write(_IHQX.pack(message.throttle_time_ms, message.error_code, message.broker_epoch))


def _read_response_v4(body: Buffer, position: int) -> tuple[BrokerRegistrationResponse, int]:
    throttle_time_ms, error_code, broker_epoch = _IHQ.unpack_from(body, position)
    position += 14
    error_message: str | None = None
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 10000:
            error_message, position = read_compact_nullable_string(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = BrokerRegistrationResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        broker_epoch=broker_epoch,
        error_message=error_message,
    )
    return message, position


def _write_response_v4(write: Write, message: BrokerRegistrationResponse) -> None:
    write(_IHQ.pack(message.throttle_time_ms, message.error_code, message.broker_epoch))
    tagged: list[tuple[int, bytes]] = []
    if message.error_message is not None:
        parts: list[Buffer] = []
        write_compact_nullable_string(parts.append, message.error_message)
        tagged.append((10000, b"".join(parts)))
    write_tags(write, tagged)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v2,
    _read_request_v3,
    _read_request_v4,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v2,
    _write_request_v3,
    _write_request_v4,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> BrokerRegistrationRequest:
    return decode(_REQUEST_READERS, "BrokerRegistrationRequest", buffer, position, end, version)


def encode_request(message: BrokerRegistrationRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "BrokerRegistrationRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v0,
    _read_response_v0,
    _read_response_v4,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v0,
    _write_response_v0,
    _write_response_v4,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> BrokerRegistrationResponse:
    return decode(_RESPONSE_READERS, "BrokerRegistrationResponse", buffer, position, end, version)


def encode_response(message: BrokerRegistrationResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "BrokerRegistrationResponse", message, version)


def begin_response(message: BrokerRegistrationResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "BrokerRegistrationResponse", message, version)
