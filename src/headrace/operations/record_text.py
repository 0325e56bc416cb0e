"""Records as text: the value, a line of JSON, or a format string with kcat's placeholders."""

import json
import re
from base64 import b64encode
from collections.abc import Callable

from headrace.client.types import ConsumerRecord
from headrace.operations.times import time_text

NULL_TEXT = b"null"
"""Default text of a null key or value, as in Kafka's console consumer."""

Show = Callable[[bytes], bytes]
"""Converts bytes of a record for printing."""


class FormatError(ValueError):
    """A format string is invalid; the message says what is wrong."""


def record_line(
    record: ConsumerRecord, key_separator: bytes | None, *, null_text: bytes = NULL_TEXT, show: Show = bytes
) -> bytes:
    """Return the value, preceded by the key and the separator if one is given."""
    value = null_text if record.value is None else show(record.value)
    if key_separator is None:
        return value
    return (null_text if record.key is None else show(record.key)) + key_separator + value


def record_json(record: ConsumerRecord) -> str:
    """Return a line of JSON that `produce --json` reads. Bytes that are not UTF-8 become Base64 in `NAME_base64`."""
    shown: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "time": time_text(record.timestamp),
        **_bytes_field("key", record.key),
        **_bytes_field("value", record.value),
    }
    if record.headers:
        shown["headers"] = [{"name": name, **_bytes_field("value", value)} for name, value in record.headers]
    return json.dumps(shown, ensure_ascii=False)


def _bytes_field(name: str, value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode()}


_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.?)", re.DOTALL)
_ESCAPED = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


def unescaped(text: str) -> bytes:
    """Return the bytes of a text with the C escapes \\n, \\t, \\r, \\0, \\\\ and \\xNN resolved."""
    parts: list[bytes] = []
    end = 0
    for escape in _ESCAPE.finditer(text):
        parts.append(text[end : escape.start()].encode())
        name, end = escape[1], escape.end()
        if len(name) == 3:
            parts.append(bytes([int(name[1:], 16)]))
        elif name in _ESCAPED:
            parts.append(_ESCAPED[name])
        else:
            raise FormatError(f'"\\{name}" is not an escape: use \\n, \\t, \\r, \\0, \\xNN or \\\\')
    parts.append(text[end:].encode())
    return b"".join(parts)


PLACEHOLDERS = {
    "k": "key",
    "v": "value",
    "s": "value, as in kcat",
    "o": "offset",
    "p": "partition",
    "t": "topic",
    "T": "timestamp in milliseconds",
    "h": "headers, as name=value,name=value",
    "K": "bytes of the key, -1 for null",
    "S": "bytes of the value, -1 for null",
    "%": "a percent sign",
}


def parse_format(text: str, *, null_text: bytes = NULL_TEXT, show: Show = bytes) -> Callable[[ConsumerRecord], bytes]:
    """Return the function that prints a record in a format such as `%k %v %o\\n`."""

    def shown(value: bytes | None) -> bytes:
        return null_text if value is None else show(value)

    fields: dict[str, Callable[[ConsumerRecord], bytes]] = {
        "k": lambda record: shown(record.key),
        "v": lambda record: shown(record.value),
        "s": lambda record: shown(record.value),
        "o": lambda record: b"%d" % record.offset,
        "p": lambda record: b"%d" % record.partition,
        "t": lambda record: record.topic.encode(),
        "T": lambda record: b"%d" % record.timestamp,
        "h": lambda record: b",".join(show(name.encode()) + b"=" + shown(value) for name, value in record.headers),
        "K": lambda record: b"%d" % (-1 if record.key is None else len(record.key)),
        "S": lambda record: b"%d" % (-1 if record.value is None else len(record.value)),
        "%": lambda record: b"%",
    }
    parts: list[Callable[[ConsumerRecord], bytes]] = []
    for literal, placeholder in re.findall(r"([^%]*)(%.?)?", text, re.DOTALL):
        if literal:
            parts.append(_constant(unescaped(literal)))
        if placeholder:
            if placeholder[1:] not in fields:
                known = ", ".join(f"%{name} ({meaning})" for name, meaning in PLACEHOLDERS.items())
                raise FormatError(f'"{placeholder}" is unknown; the placeholders are {known}')
            parts.append(fields[placeholder[1:]])
    return lambda record: b"".join([part(record) for part in parts])


def _constant(text: bytes) -> Callable[[ConsumerRecord], bytes]:
    return lambda _record: text
