"""The notation of the schema tables: message, field, array, struct, versions.

A table names the fields in wire order. Versions are written as Kafka writes them: "3", "0-4", "2+", "none". A tagged
field is in the tagged section of a flexible version, and only when it differs from its default.
"""

from dataclasses import dataclass
from types import EllipsisType
from typing import NamedTuple

VERSION_MAX = 32_767
"""The largest version an int16 can carry; the open end of "2+"."""

OWN_TAGS_FROM = 10_000
"""Tags from here on are Headrace's own fields in Kafka's messages. Other software skips them."""

Default = bool | int | float | str | None | EllipsisType
"""A field's default; `...` stands for the zero of its type (0, "", no bytes, no items, false)."""


class Versions(NamedTuple):
    first: int
    last: int

    def covers(self, version: int) -> bool:
        return self.first <= version <= self.last


NO_VERSIONS = Versions(0, -1)
ALL_VERSIONS = Versions(0, VERSION_MAX)


def versions_of(text: str) -> Versions:
    """Parse "3", "0-4", "2+" or "none"."""
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return Versions(int(text[:-1]), VERSION_MAX)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


@dataclass(frozen=True, slots=True, kw_only=True)
class Primitive:
    """A type of the wire: its name, its Python type, and its struct format if its size is fixed."""

    name: str
    python: str
    zero: str
    format: str = ""
    size: int = 0


BOOL = Primitive(name="bool", python="bool", zero="False", format="?", size=1)
INT8 = Primitive(name="int8", python="int", zero="0", format="b", size=1)
INT16 = Primitive(name="int16", python="int", zero="0", format="h", size=2)
UINT16 = Primitive(name="uint16", python="int", zero="0", format="H", size=2)
INT32 = Primitive(name="int32", python="int", zero="0", format="i", size=4)
UINT32 = Primitive(name="uint32", python="int", zero="0", format="I", size=4)
INT64 = Primitive(name="int64", python="int", zero="0", format="q", size=8)
FLOAT64 = Primitive(name="float64", python="float", zero="0.0", format="d", size=8)
UUID = Primitive(name="uuid", python="bytes", zero="ZERO_UUID", format="16s", size=16)
STRING = Primitive(name="string", python="str", zero='""')
BYTES = Primitive(name="bytes", python="bytes", zero='b""')
RECORDS = Primitive(name="records", python="Buffer", zero='b""')
"""Record batches: read as a view of the received bytes, never copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct:
    """A group of fields; `name` is appended to the message's name to form the class name."""

    name: str
    fields: "tuple[Field, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    name: str
    type: Primitive | Struct
    repeated: bool
    versions: Versions
    nullable: Versions
    default: Default
    tag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A request or a response of one API."""

    api_key: int
    api_name: str
    kind: str
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]

    @property
    def name(self) -> str:
        return self.api_name + self.kind


def request(api_key: int, api_name: str, *, versions: str, flexible: str, fields: list[Field]) -> Message:
    return _message(api_key, api_name, "Request", versions, flexible, fields)


def response(api_key: int, api_name: str, *, versions: str, flexible: str, fields: list[Field]) -> Message:
    return _message(api_key, api_name, "Response", versions, flexible, fields)


def _message(api_key: int, api_name: str, kind: str, versions: str, flexible: str, fields: list[Field]) -> Message:
    return Message(
        api_key=api_key,
        api_name=api_name,
        kind=kind,
        versions=versions_of(versions),
        flexible=versions_of(flexible),
        fields=tuple(fields),
    )


def field(
    name: str,
    type: Primitive,
    versions: str = "0+",
    *,
    nullable: str = "none",
    default: Default = ...,
    tag: int | None = None,
) -> Field:
    """One value of a primitive type."""
    return Field(
        name=name,
        type=type,
        repeated=False,
        versions=versions_of(versions),
        nullable=versions_of(nullable),
        default=default,
        tag=tag,
    )


def array(
    name: str,
    of: Primitive | list[Field],
    versions: str = "0+",
    *,
    nullable: str = "none",
    default: Default = ...,
    tag: int | None = None,
    named: str = "",
) -> Field:
    """Any number of primitives or structs; `named` names the element where the singular of `name` would be wrong."""
    if of in (BOOL, FLOAT64):
        raise ValueError(
            f"{name}: Kafka has no array of {BOOL.name} or {FLOAT64.name}, and the generator does not support it"
        )
    return Field(
        name=name,
        type=of if isinstance(of, Primitive) else Struct(name=named or class_name(singular(name)), fields=tuple(of)),
        repeated=True,
        versions=versions_of(versions),
        nullable=versions_of(nullable),
        default=default,
        tag=tag,
    )


def struct(
    name: str,
    of: list[Field],
    versions: str = "0+",
    *,
    nullable: str = "none",
    default: Default = ...,
    tag: int | None = None,
    named: str = "",
) -> Field:
    """One struct, written in place; `named` lets several fields share a class."""
    return Field(
        name=name,
        type=Struct(name=named or class_name(name), fields=tuple(of)),
        repeated=False,
        versions=versions_of(versions),
        nullable=versions_of(nullable),
        default=default,
        tag=tag,
    )


def singular(name: str) -> str:
    """Return the singular: topics -> topic, entries -> entry."""
    if name.endswith("ies"):
        return name[:-3] + "y"
    if name.endswith("s") and not name.endswith("ss"):
        return name[:-1]
    return name


def class_name(name: str) -> str:
    """Return the CamelCase form of a snake_case name."""
    return "".join(word.capitalize() for word in name.split("_"))
