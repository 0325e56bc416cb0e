"""kio as an oracle: its own entities, one class per version, filled from ours."""

import dataclasses
import io
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, get_args
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from headrace.wire.schemas.notation import Field, Message, Struct


def versions_of(message: Message) -> range:
    name = api_key_map.get(message.api_key)
    versions = sorted(schema_name_map[name]) if name else []
    return range(versions[0], versions[-1] + 1) if versions else range(0)


def entity_class(message: Message, version: int) -> Any:
    kind = EntityType.request if message.kind == "Request" else EntityType.response
    names: Any = schema_name_map[api_key_map[message.api_key]][version]
    module, _, name = names[kind].partition(":")
    return getattr(import_module(module), name)


def entity(message: Message, value: object, version: int) -> Any:
    return _entity(entity_class(message, version), message.fields, value, version)


def encode(message: Message, value: object, version: int) -> bytes:
    buffer = io.BytesIO()
    made = entity(message, value, version)
    entity_writer(type(made))(buffer, made)
    return buffer.getvalue()


def decode(message: Message, body: bytes, version: int) -> Any:
    decoded, _ = entity_reader(entity_class(message, version))(body, 0)
    return decoded


def _entity(cls: Any, fields: tuple[Field, ...], value: object, version: int) -> Any:
    """kio keeps the order of the definitions but not always their names (throttle_time_ms is throttle_time)."""
    present = [field for field in fields if field.versions.covers(version)]
    theirs = dataclasses.fields(cls)
    assert len(present) == len(theirs), (cls, [field.name for field in present], [field.name for field in theirs])
    return cls(
        **{
            other.name: _converted(other, field, getattr(value, field.name), version)
            for field, other in zip(present, theirs, strict=True)
        }
    )


def _converted(theirs: Any, field: Field, value: Any, version: int) -> object:
    if value is None:
        return None
    if field.repeated:
        return tuple(_single(theirs, field, element, version) for element in value)
    return _single(theirs, field, value, version)


def _single(theirs: Any, field: Field, value: Any, version: int) -> object:
    if isinstance(field.type, Struct):
        return _entity(_struct_class(theirs.type), field.type.fields, value, version)
    kind = theirs.metadata["kafka_type"]
    if kind == "uuid":
        return None if value == bytes(16) else UUID(bytes=value)
    if kind == "error_code":
        return ErrorCode(value)
    if kind.startswith("timedelta"):
        return timedelta(milliseconds=value)
    if kind == "datetime_i64":
        return datetime.fromtimestamp(value // 1000, tz=UTC) + timedelta(milliseconds=value % 1000)
    return value


def _struct_class(annotation: Any) -> Any:
    """The class inside X, X | None or tuple[X, ...]."""
    if dataclasses.is_dataclass(annotation):
        return annotation
    return next(found for argument in get_args(annotation) if (found := _struct_class(argument)))
