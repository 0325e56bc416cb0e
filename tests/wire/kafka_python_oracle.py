"""kafka-python as an oracle: its own message classes, filled from ours."""

import pkgutil
from importlib import import_module
from typing import Any
from uuid import UUID

import kafka.protocol
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.schemas.fields.codecs import BitField

from headrace.wire.schemas.notation import INT32, Field, Message, Struct
from headrace.wire.schemas.notation import UUID as UUID_TYPE


def _message_classes() -> dict[str, Any]:
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name and "generate_stubs" not in module.name:
            import_module(module.name)
    return {cls.__name__: cls for cls in ApiMessage.__subclasses__()}


CLASSES = _message_classes()


def versions_of(message: Message) -> range:
    """The versions kafka-python's message definition is valid for."""
    cls = CLASSES.get(message.name)
    return range(0) if cls is None else range(cls.valid_versions[0], cls.valid_versions[1] + 1)


def encode(message: Message, value: object, version: int) -> bytes:
    cls = CLASSES[message.name]
    encoded: bytes = cls(version=version, **_fields(cls._struct, message.fields, value, version)).encode()
    return encoded


def decode(message: Message, body: bytes, version: int) -> Any:
    """Past the special case of ApiVersionsResponse, which reads an error as version 0."""
    return ApiMessage.decode.__func__(CLASSES[message.name], body, version=version)


def equal(message: Message, value: object, decoded: Any, version: int) -> bool:
    """Return whether what kafka-python decoded holds our values."""
    return _same_fields(message.fields, value, decoded, version)


def _same_fields(fields: tuple[Field, ...], ours: object, theirs: Any, version: int) -> bool:
    return all(
        _same(field, getattr(ours, field.name), getattr(theirs, _their_name(theirs._struct, field)), version)
        for field in fields
        if field.versions.covers(version)
    )


def _same(field: Field, ours: Any, theirs: Any, version: int) -> bool:
    if field.repeated and ours is not None and theirs is not None:
        return len(ours) == len(theirs) and all(
            _same_single(field, mine, other, version) for mine, other in zip(ours, theirs, strict=True)
        )
    return _same_single(field, ours, theirs, version)


def _same_single(field: Field, ours: Any, theirs: Any, version: int) -> bool:
    if isinstance(field.type, Struct) and theirs is not None:
        return ours is not None and _same_fields(field.type.fields, ours, theirs, version)
    if isinstance(field.type, Struct) and field.tag is not None:
        return bool(ours == type(ours)())  # a tagged struct that was left out
    if field.type is INT32 and not field.repeated and not isinstance(theirs, int):
        return _bits(ours) == ({31} if theirs is None else theirs)
    if field.type is UUID_TYPE:
        theirs = bytes(16) if theirs is None else theirs.bytes
    return bool(ours == theirs)


def _their_name(struct: Any, field: Field) -> str:
    """kafka-python renames two fields."""
    return field.name if field.name in struct.fields else "authorized_operations"


def _bits(value: int) -> set[int]:
    """Authorized operations, which kafka-python handles as a set of bit numbers."""
    return {bit for bit in range(32) if value >> bit & 1}


def _fields(struct: Any, fields: tuple[Field, ...], value: object, version: int) -> dict[str, object]:
    filled = {}
    for field in fields:
        own = getattr(value, field.name)
        if not field.versions.covers(version) or (field.tag is not None and own == _default(field, value)):
            continue
        name = _their_name(struct, field)
        filled[name] = _converted(struct.fields[name], field, own, version)
    return filled


def _default(field: Field, value: Any) -> object:
    return type(value).__dataclass_fields__[field.name].default


def _converted(theirs: Any, field: Field, value: Any, version: int) -> object:
    if value is None:
        return None
    if field.repeated:
        return [_single(theirs, field, element, version) for element in value]
    return _single(theirs, field, value, version)


def _single(theirs: Any, field: Field, value: Any, version: int) -> object:
    if isinstance(field.type, Struct):
        return theirs.data_class(version=version, **_fields(theirs, field.type.fields, value, version))
    if getattr(theirs, "_type", None) is BitField:
        return _bits(value)
    if field.type is UUID_TYPE:
        return UUID(bytes=value)
    return value
