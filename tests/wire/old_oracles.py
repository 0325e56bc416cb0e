"""The protocol classes of clients from before Kafka 4, as oracles for the versions that Kafka 4 dropped.

kafka-python keeps those of its 2.x line beside the new ones; aiokafka's are a third, independent hand.
"""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import aiokafka.protocol
import kafka.protocol.old

from headrace.wire.generator.layouts import Layout, Member, message_layout
from headrace.wire.schemas.notation import Message


def _classes(package: Any, names: tuple[str, ...]) -> dict[tuple[int, int, str], Any]:
    """(API key, version, kind) -> the class that stands for it."""
    found: dict[tuple[int, int, str], Any] = {}
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for candidate in vars(import_module(module.name)).values():
            if isinstance(candidate, type) and candidate.__module__ == module.name:
                kind = next((name for name in names if name in candidate.__name__), None)
                key, version = getattr(candidate, "API_KEY", None), getattr(candidate, "API_VERSION", None)
                if kind and isinstance(key, int) and isinstance(version, int) and hasattr(candidate, "SCHEMA"):
                    found[(key, version, kind)] = candidate
    return found


OLD_KAFKA_PYTHON = _classes(kafka.protocol.old, ("Request", "Response"))
AIOKAFKA = _classes(aiokafka.protocol, ("Request", "Response"))


WRONG_THERE = {
    ("aiokafka", 2, 4, "Request"): "the leader epoch is an int64 there; the class is marked as not used yet",
    ("aiokafka", 2, 5, "Request"): "as version 4",
    ("kafka-python 2", 35, 0, "Request"): "the partitions are one int32 there instead of an array",
}
CLIENTS = {"kafka-python 2": OLD_KAFKA_PYTHON, "aiokafka": AIOKAFKA}


def shared_versions(message: Message, client: str) -> list[int]:
    """The versions that are known there, are not flexible, and are not known to be wrong."""
    return [
        version
        for version in range(message.versions.first, message.versions.last + 1)
        if (message.api_key, version, message.kind) in CLIENTS[client]
        and not message.flexible.covers(version)
        and (client, message.api_key, version, message.kind) not in WRONG_THERE
    ]


def encode(message: Message, value: object, version: int, client: str) -> bytes:
    schema = CLIENTS[client][(message.api_key, version, message.kind)].SCHEMA
    encoded: bytes = schema.encode(_filled(schema, _members(message_layout(message, version), value)))
    return encoded


def _members(layout: Layout, value: object) -> Iterator[tuple[Member, Any]]:
    return iter([(member, getattr(value, member.name)) for member in layout.members])


def _filled(schema: Any, members: Iterator[tuple[Member, Any]]) -> tuple[object, ...]:
    """Our values in the shape of their schema, where some fields are grouped or a struct of one field is bare."""
    filled: list[object] = []
    for theirs in schema.fields:
        if hasattr(theirs, "fields"):
            filled.append(_filled(theirs, members))
        else:
            filled.append(_shaped(theirs, *next(members)))
    assert next(members, None) is None
    return tuple(filled)


def _shaped(theirs: Any, member: Member, value: Any) -> object:
    if value is None:
        return None
    if member.repeated:
        return [_element(theirs.array_of, member, element) for element in value]
    if getattr(theirs, "__name__", "") == "BitField":
        return {bit for bit in range(32) if value >> bit & 1}
    return value


def _element(theirs: Any, member: Member, element: Any) -> object:
    if not isinstance(member.type, Layout):
        return element
    if hasattr(theirs, "fields"):
        return _filled(theirs, _members(member.type, element))
    ((only, value),) = _members(member.type, element)
    return _shaped(theirs, only, value)
