"""Ready-made serializers: text, JSON and MessagePack, untyped by their names or for one type.

Producer(key_serializer="str", value_serializer="json")
Consumer("orders", value_deserializer=typed_json(Order))
"""

from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

Serialize = Callable[[Any], bytes | None]
Deserialize = Callable[[bytes], Any]


def _text(value: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"a string is needed, not {type(value).__name__}")
    return value.encode()


SERIALIZERS: dict[str, Serialize] = {
    "str": _text,
    "json": msgspec.json.encode,
    "msgpack": msgspec.msgpack.encode,
}
DESERIALIZERS: dict[str, Deserialize] = {
    "str": bytes.decode,
    "json": msgspec.json.decode,
    "msgpack": msgspec.msgpack.decode,
}


@overload
def typed_json(kind: type[T]) -> Callable[[bytes], T]: ...
@overload
def typed_json(kind: Any) -> Deserialize: ...
def typed_json(kind: Any) -> Deserialize:
    """JSON that must be of this type: a msgspec.Struct, a dataclass, a TypedDict or any other type that msgspec
    supports.
    """
    return msgspec.json.Decoder(kind).decode


@overload
def typed_msgpack(kind: type[T]) -> Callable[[bytes], T]: ...
@overload
def typed_msgpack(kind: Any) -> Deserialize: ...
def typed_msgpack(kind: Any) -> Deserialize:
    """MessagePack that must be of this type."""
    return msgspec.msgpack.Decoder(kind).decode


def serializer(chosen: str | Serialize | None) -> Serialize | None:
    """Return the serializer that a config names; its names were checked before."""
    return SERIALIZERS[chosen] if isinstance(chosen, str) else chosen


def deserializer(chosen: str | Deserialize | None) -> Deserialize | None:
    return DESERIALIZERS[chosen] if isinstance(chosen, str) else chosen
