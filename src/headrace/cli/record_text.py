"""Records as text: a line of input becomes key and value, a record becomes a line or a JSON object."""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from headrace.cli.times import time_text
from headrace.client.types import ConsumerRecord

LINE_LENGTH_MAX = 64 << 20
"""Bytes of one line of input."""


class LineError(ValueError):
    """A line that cannot be sent; the message has its number."""


class InputRecord(NamedTuple):
    key: bytes | None
    value: bytes


def input_records(lines: Iterable[bytes], key_separator: bytes | None) -> Iterator[InputRecord]:
    """One record per line, without its line end; with a separator, what stands before its first place is the key."""
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_LENGTH_MAX:
            raise LineError(f"line {number} has {len(line)} bytes, at most {LINE_LENGTH_MAX} are allowed")
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        if key_separator is None:
            yield InputRecord(None, text)
            continue
        key, found, value = text.partition(key_separator)
        if not found:
            shown = key_separator.decode(errors="backslashreplace")
            raise LineError(f'line {number} has no "{shown}" between key and value; nothing from here on was sent')
        yield InputRecord(key, value)


def record_line(record: ConsumerRecord, key_separator: bytes | None) -> bytes:
    """The value as it is, after the key if a separator is given; what is absent is empty."""
    value = record.value or b""
    return value if key_separator is None else (record.key or b"") + key_separator + value


def record_json(record: ConsumerRecord) -> str:
    """One line of JSON. Bytes that are not UTF-8 are given in Base64, under a name that says so."""
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
