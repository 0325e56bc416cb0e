"""Records as JSON: keys and values as text, as Base64 where they are not text, or as the JSON that they contain."""

import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from headrace.client.types import ConsumerRecord

Shown = Literal["auto", "json", "base64"]
"""auto: text, or Base64 if it is not UTF-8. json: embedded as JSON where it is JSON, else as auto."""

LINE_ENDS = re.compile(rb"[\r\n]")
View = Callable[[ConsumerRecord], dict[str, Any]]


def record_view(shown: Shown) -> View:
    """Return the function that makes a record's JSON object."""
    fields = _FIELDS[shown]

    def view(record: ConsumerRecord) -> dict[str, Any]:
        members: dict[str, Any] = {
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "size": (0 if record.key is None else len(record.key)) + (0 if record.value is None else len(record.value)),
        }
        fields(members, "key", record.key)
        fields(members, "value", record.value)
        if record.headers:
            members["headers"] = [_header(name, value) for name, value in record.headers]
        return members

    return view


def _auto(members: dict[str, Any], name: str, data: bytes | None) -> None:
    if data is None:
        members[name] = None
        return
    try:
        members[name] = str(data, "utf-8")
    except UnicodeDecodeError:
        members[f"{name}_base64"] = b64encode(data).decode()


def _embedded(members: dict[str, Any], name: str, data: bytes | None) -> None:
    if data is not None:
        try:
            msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            pass
        else:
            # One line, because lines and events end with one.
            members[name] = msgspec.Raw(msgspec.json.format(data, indent=-1) if LINE_ENDS.search(data) else data)
            return
    _auto(members, name, data)


def _encoded(members: dict[str, Any], name: str, data: bytes | None) -> None:
    members[f"{name}_base64"] = None if data is None else b64encode(data).decode()


_FIELDS: dict[Shown, Callable[[dict[str, Any], str, bytes | None], None]] = {
    "auto": _auto,
    "json": _embedded,
    "base64": _encoded,
}


def _header(name: str, value: bytes | None) -> dict[str, Any]:
    members: dict[str, Any] = {"name": name}
    _auto(members, "value", value)
    return members
