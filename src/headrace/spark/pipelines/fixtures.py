"""Test records as lines of JSON: the input of a topic, and the expected output of one."""

import base64
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from headrace.model.nearest_names import guess
from headrace.spark.pipelines.nodes import read_text
from headrace.spark.pipelines.output_rows import DEAD_PREFIX, QUARANTINE_PREFIX
from headrace.spark.pipelines.problems import DefinitionError, Problem

KEYS = ("key", "value", "value_base64", "headers", "timestamp", "partition")
RECORDS_MAX = 10_000
STEADY_HEADERS = (f"{DEAD_PREFIX}reason", f"{QUARANTINE_PREFIX}expectation")
"""Headers that say why a record was rejected, the same in every run."""


class Fixture(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int | None
    partition: int | None


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the objects of a file, one per line."""
    found, problems = [], []
    for number, line in enumerate(read_text(file).splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise ValueError('a record must be an object: {"key": ..., "value": ...}')
        except ValueError as error:
            problems.append(Problem(file, number, f"the line is not a JSON record: {error}"))
            continue
        problems += [
            Problem(file, number, f'"{key}" is not known: {guess(key, KEYS)}') for key in entry if key not in KEYS
        ]
        found.append(entry)
    if len(found) > RECORDS_MAX:
        problems.append(Problem(file, 0, f"more than {RECORDS_MAX} records"))
    if problems:
        raise DefinitionError(problems)
    return found


def fixture_of(entry: Mapping[str, Any]) -> Fixture:
    value = entry.get("value")
    if "value_base64" in entry:
        encoded: bytes | None = base64.b64decode(entry["value_base64"])
    else:
        encoded = None if value is None else _bytes(value)
    return Fixture(
        key=None if entry.get("key") is None else _bytes(entry["key"]),
        value=encoded,
        headers=tuple((name, _bytes(text)) for name, text in (entry.get("headers") or {}).items()),
        timestamp_ms=_milliseconds(entry.get("timestamp")),
        partition=entry.get("partition"),
    )


def _bytes(value: object) -> bytes:
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def _milliseconds(text: object) -> int | None:
    if text is None or isinstance(text, int):
        return text
    moment = datetime.fromisoformat(str(text))
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def shown(key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]]) -> dict[str, Any]:
    """Return an output record in the form in which one is expected."""
    return {
        "key": None if key is None else key.decode(errors="replace"),
        "value": _readable(value),
        "headers": {name: (text or b"").decode(errors="replace") for name, text in headers},
    }


def _readable(value: bytes | None) -> object:
    if value is None:
        return None
    text = value.decode(errors="replace")
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, dict | list) else text


def expected_text(entries: Iterable[Mapping[str, Any]]) -> str:
    """Return the lines of a file of expected records, in a fixed order.

    Headers with the position and time of a record are left out, because they differ between runs.
    """
    return "".join(sorted(f"{json.dumps(_steady(entry), ensure_ascii=False, default=str)}\n" for entry in entries))


def _steady(entry: Mapping[str, Any]) -> dict[str, Any]:
    headers = {
        name: text
        for name, text in entry.get("headers", {}).items()
        if name in STEADY_HEADERS or not name.startswith((DEAD_PREFIX, QUARANTINE_PREFIX))
    }
    found = {
        name: value for name, value in entry.items() if name != "headers" and (name == "value" or value is not None)
    }
    return {**found, "headers": headers} if headers else found


def differences(expected: Iterable[Mapping[str, Any]], actual: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the missing and the unexpected records; the order does not matter, and only expected fields are
    compared.
    """
    left = list(actual)
    missing = []
    for wanted in expected:
        found = next((each for each in left if _fits(wanted, each)), None)
        if found is None:
            missing.append(f"missing: {json.dumps(wanted, ensure_ascii=False)}")
        else:
            left.remove(found)
    return missing + [f"not expected: {json.dumps(each, ensure_ascii=False, default=str)}" for each in left]


def _fits(wanted: Mapping[str, Any], actual: Mapping[str, Any]) -> bool:
    for key, value in wanted.items():
        if key == "headers":
            if any(actual.get("headers", {}).get(name) != text for name, text in value.items()):
                return False
        elif actual.get(key) != value:
            return False
    return True
