"""Check that the values of a config have the types that its fields declare, with messages for users."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from headrace.client.errors import InvalidArgument
from headrace.client.telemetry import Telemetry
from headrace.model.secrets import is_secret_name

_WORDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    NoneType: "None",
    Callable: "a function",
    Sequence: "several texts",
    Telemetry: "telemetry such as headrace.otel.OpenTelemetry()",
}
_KINDS: dict[type[Any], dict[str, tuple[Any, ...]]] = {}


def check_types(config: Any) -> None:
    for name, kinds in _kinds(config).items():
        value = getattr(config, name)
        if not any(_fits(value, kind) for kind in kinds):
            words = " or ".join(dict.fromkeys(_words(kind) for kind in kinds))
            shown = type(value).__name__ if is_secret_name(name) else repr(value)
            raise InvalidArgument(f"{name} is {words}, not {shown}")


def _kinds(config: Any) -> dict[str, tuple[Any, ...]]:
    """Return the accepted types of each field, with unions split; computed once per kind of config."""
    found = _KINDS.get(type(config))
    if found is None:
        hints = get_type_hints(type(config))
        found = _KINDS[type(config)] = {field.name: _alternatives(hints[field.name]) for field in fields(config)}
    return found


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) not in (Union, UnionType):
        return (hint,)
    return tuple(each for part in get_args(hint) for each in _alternatives(part))


def _fits(value: object, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin is Literal:
        return type(value) in {
            type(choice) for choice in get_args(kind)
        }  # The config itself checks which of them are allowed.
    if origin is Callable:
        return callable(value)
    if origin is Sequence:
        return isinstance(value, Sequence) and all(isinstance(each, str) for each in value)
    if kind in (int, float):
        return isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
    return isinstance(value, kind)


def _words(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return "one of " + ", ".join(str(choice) for choice in get_args(kind))
    return _WORDS[origin or kind]
