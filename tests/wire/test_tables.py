"""The tables against Kafka's own message definitions, which kafka-python carries as JSON."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.schemas import load_json

from headrace.wire.apis import APIS, NEVER, PRIVATE_FROM, ApiKey, codec
from headrace.wire.generator.__main__ import stale, tables
from headrace.wire.generator.classes import literal
from headrace.wire.schemas import notation
from headrace.wire.schemas.notation import ALL_VERSIONS, NO_VERSIONS, Field, Message, Primitive, Struct, Versions
from headrace.wire.schemas.notation import versions_of as parsed_versions
from tests.wire import samples

NOT_IN_KAFKA_PYTHON = {
    "AddRaftVoter",
    "AllocateProducerIds",
    "AlterPartition",
    "BrokerHeartbeat",
    "BrokerRegistration",
    "ConsumerGroupDescribe",
    "ConsumerGroupHeartbeat",
    "CreateDelegationToken",
    "DescribeDelegationToken",
    "ExpireDelegationToken",
    "RemoveRaftVoter",
    "RenewDelegationToken",
    "UnregisterBroker",
}
DEFINED = [
    pytest.param(message, id=name)
    for name, message in samples.MESSAGES.items()
    if message.api_name not in NOT_IN_KAFKA_PYTHON and message.api_key < PRIVATE_FROM
]


PRIMITIVES = {found.name: found for found in vars(notation).values() if isinstance(found, Primitive)}


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def ours(fields: tuple[Field, ...], version: int, path: str = "") -> Iterator[tuple[object, ...]]:
    """(path, type, repeated, nullable, tag, default) of each field that the version has, in wire order."""
    for field in fields:
        if not field.versions.covers(version):
            continue
        is_struct = isinstance(field.type, Struct)
        kind = "struct" if isinstance(field.type, Struct) else field.type.name
        default = None if is_struct and not field.repeated else literal(field.type, field.repeated, field.default)
        name = f"{path}.{field.name}"
        yield name, kind, field.repeated, field.nullable.covers(version), field.tag, default
        if isinstance(field.type, Struct):
            yield from ours(field.type.fields, version, name)


def theirs(fields: list[dict[str, Any]], version: int, path: str = "") -> Iterator[tuple[object, ...]]:
    for field in fields:
        if not parsed_versions(field["versions"]).covers(version):
            continue
        kind = field["type"].removeprefix("[]")
        repeated = kind != field["type"]
        is_struct = kind[0].isupper()
        tag = field["tag"] if parsed_versions(field.get("taggedVersions", "none")).covers(version) else None
        nullable = parsed_versions(field.get("nullableVersions", "none")).covers(version)
        default = None if is_struct and not repeated else their_default(kind, repeated, field)
        name = f"{path}.{snake(field['name'])}"
        yield name, "struct" if is_struct else kind, repeated, nullable, tag, default
        if is_struct:
            yield from theirs(field["fields"], version, name)


def their_default(kind: str, repeated: bool, field: dict[str, Any]) -> str:
    default = field.get("default", ...)
    if default == "null":
        return "None"
    if repeated or default is ... or default == "":
        return literal(PRIMITIVES.get(kind), repeated, ...)
    if kind == "bool":
        return str(default).capitalize()
    return str(int(str(default), 0))


@pytest.mark.parametrize("message", DEFINED)
def test_fields_are_those_of_the_definition(message: Message) -> None:
    definition = load_json(message.name)
    valid = parsed_versions(definition["validVersions"])
    assert definition["apiKey"] == message.api_key
    assert parsed_versions(definition["flexibleVersions"]) == message.flexible
    fields = samples.kafkas(message).fields
    for version in samples.versions_of(message):
        # Definitions keep saying which fields the dropped versions had, so these are compared as well.
        assert list(ours(fields, version)) == list(theirs(definition["fields"], version)), version
    assert message.versions.last == valid.last or message.api_name == "DescribeLogDirs"


def test_generated_modules_are_what_the_generator_gives() -> None:
    assert stale() == []


def test_the_registry_agrees_with_the_tables() -> None:
    assert sorted(api.module for api in APIS.values()) == tables()
    for message in samples.MESSAGES.values():
        api = APIS[message.api_key]
        module = codec(message.api_key)
        first_flexible = message.flexible.first if message.flexible.last >= 0 else NEVER
        assert api.module == snake(message.api_name) == ApiKey(message.api_key).name.lower()
        assert (message.api_key, api.version_min) == (module.API_KEY, module.MIN_VERSION)
        assert api.version_max == module.MAX_VERSION
        assert message.versions == Versions(api.version_min, api.version_max)
        assert first_flexible == api.flexible_from == module.FLEXIBLE_FROM


@pytest.mark.parametrize(
    ("text", "versions"),
    [("0+", ALL_VERSIONS), ("none", NO_VERSIONS), ("3", Versions(3, 3)), ("2-7", Versions(2, 7))],
)
def test_versions_are_written_as_kafka_writes_them(text: str, versions: Versions) -> None:
    assert parsed_versions(text) == versions
