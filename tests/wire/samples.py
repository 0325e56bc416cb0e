"""Messages with chosen values, made from the schema tables."""

from dataclasses import replace
from importlib import import_module
from random import Random
from types import ModuleType
from typing import Any

from headrace.wire.generator.__main__ import tables
from headrace.wire.schemas.notation import OWN_TAGS_FROM, Field, Message, Primitive, Struct

NUMBER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TEXTS = ("", "t", "orders", "größe", "トピック", "x" * 127, "y" * 130)
TIMESTAMP_MAX = 4_000_000_000_000
"""Milliseconds that every oracle can turn into a date."""

ERROR_CODE_MAX = 110
"""The largest error code that every oracle knows."""

MESSAGES: dict[str, Message] = {
    message.name: message
    for table in tables()
    for module in [import_module(f"headrace.wire.schemas.{table}")]
    for message in (module.REQUEST, module.RESPONSE)
}
MODULES: dict[str, str] = {
    f"{import_module(f'headrace.wire.schemas.{table}').REQUEST.api_name}{kind}": table
    for table in tables()
    for kind in ("Request", "Response")
}


def kafkas(message: Message) -> Message:
    """The message without the fields that only Headrace has."""
    return replace(message, fields=_kafkas_fields(message.fields))


def _kafkas_fields(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(
        replace(field, type=replace(field.type, fields=_kafkas_fields(field.type.fields)))
        if isinstance(field.type, Struct)
        else field
        for field in fields
        if field.tag is None or field.tag < OWN_TAGS_FROM
    )


def codec_of(message: Message) -> ModuleType:
    return import_module(f"headrace.wire.messages.{MODULES[message.name]}")


def encode(message: Message, value: object, version: int) -> bytes:
    encoded: bytes = getattr(codec_of(message), f"encode_{message.kind.lower()}")(value, version)
    return encoded


def decode(message: Message, body: bytes | memoryview, version: int) -> object:
    return getattr(codec_of(message), f"decode_{message.kind.lower()}")(body, 0, len(body), version)


def versions_of(message: Message) -> range:
    return range(message.versions.first, message.versions.last + 1)


def sample(message: Message, version: int, random: Random, width: int = 3) -> Any:
    """A message whose fields of this version have values and whose other fields have their defaults.

    `width` is the most elements an array may have; with 1, texts are short as well.
    """
    return _struct(message, message.name, message.fields, version, random, width)


def _struct(message: Message, name: str, fields: tuple[Field, ...], version: int, random: Random, width: int) -> object:
    values = {
        field.name: _value(message, field, version, random, width)
        for field in fields
        if field.versions.covers(version) and not (field.tag is not None and random.random() < 0.3)
    }
    return getattr(codec_of(message), name)(**values)


def _value(message: Message, field: Field, version: int, random: Random, width: int) -> object:
    if field.nullable.covers(version) and random.random() < 0.25:
        return None
    if not field.repeated:
        return _single(message, field, version, random, width)
    count = random.randrange(width + 1)
    return tuple(_single(message, field, version, random, min(width, 2)) for _ in range(count))


def _single(message: Message, field: Field, version: int, random: Random, width: int) -> object:
    if isinstance(field.type, Struct):
        return _struct(message, message.name + field.type.name, field.type.fields, version, random, width)
    return _primitive(field.type, field.name, random, short=width == 1)


def _primitive(type_: Primitive, name: str, random: Random, short: bool) -> object:
    if type_.name in NUMBER_BITS:
        return _number(NUMBER_BITS[type_.name], name, random)
    if type_.name == "uint16":
        return random.randrange(2**16)
    if type_.name == "bool":
        return random.random() < 0.5
    if type_.name == "float64":
        return random.choice((0.0, -1.5, 1e300, random.random()))
    if type_.name == "uuid":
        return random.choice((bytes(16), random.randbytes(16)))
    if type_.name == "string":
        return random.choice(TEXTS[:3] if short else TEXTS)
    return random.randbytes(random.choice((0, 1, 5) if short else (0, 1, 126, 127, 128, 300)))


def _number(bits: int, name: str, random: Random) -> int:
    if name.endswith("error_code"):
        return random.randrange(-1, ERROR_CODE_MAX)
    if bits == 64 and ("time" in name or name.endswith("_ms")):
        return random.randrange(TIMESTAMP_MAX)
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return random.choice((low, -1, 0, 1, high, random.randint(low, high)))
