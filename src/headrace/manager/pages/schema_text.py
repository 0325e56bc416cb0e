"""Schemas of the OpenAPI document as text, for the page with the reference."""

from collections.abc import Mapping
from typing import Any, NamedTuple

JSON = "application/json"
Schema = Mapping[str, Any]


class BodyMember(NamedTuple):
    name: str
    type: str
    is_required: bool
    meaning: str


def type_text(schema: Schema) -> str:
    """Return the type of a value in a few words."""
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(type_text(each) for each in schema[several]))
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {type_text(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {type_text(schema['additionalProperties'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def body_members(operation: Schema, document: Schema) -> list[BodyMember]:
    """Return the members of a JSON body; those of the items too, if the body is a list of objects in one member."""
    schema = operation["requestBody"]["content"].get(JSON, {}).get("schema", {})
    found: list[BodyMember] = []
    for each in schema.get("anyOf", [schema]):
        found += _members(each, document, "")
    return found


def _members(schema: Schema, document: Schema, prefix: str) -> list[BodyMember]:
    schema = _resolved(schema, document)
    required = schema.get("required", ())
    found = []
    for name, member in schema.get("properties", {}).items():
        meaning = str(member.get("description", ""))
        found.append(BodyMember(prefix + name, type_text(member), name in required, meaning))
        items = _resolved(member.get("items", {}), document)
        if not prefix and "properties" in items:
            found += _members(items, document, f"{name}[].")
    return found


def _resolved(schema: Schema, document: Schema) -> Schema:
    """Return the schema that a reference names."""
    if "$ref" not in schema:
        return schema
    found: Schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found
