"""Bodies of requests that produce: one record or many as JSON, one per line (NDJSON), or the bytes of one value.

msgspec parses them with the values left as they are: `{"value": {"id": 1}}` stores the bytes `{"id": 1}`.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.manager.limits import RECORDS_PER_REQUEST_MAX
from headrace.manager.problems import ApiProblem
from headrace.manager.writers import WrittenRecord

JSON, NDJSON, BYTES = "application/json", "application/x-ndjson", "application/octet-stream"
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
FORMS = f"send {JSON}, {NDJSON}, or any other media type for the bytes of one value"
NO_RAW = msgspec.Raw()
PAIRS_BEGIN = b'{"records"'
"""The start of nearly every body with many records."""


class PostedHeader(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    value: str | msgspec.UnsetType | None = msgspec.UNSET
    value_base64: str | msgspec.UnsetType = msgspec.UNSET


class PostedRecord(msgspec.Struct, forbid_unknown_fields=True):
    value: msgspec.Raw = NO_RAW
    value_base64: str | None = None
    key: msgspec.Raw = NO_RAW
    key_base64: str | None = None
    headers: list[PostedHeader] = []
    partition: int | None = None
    timestamp: int | None = None


class PostedPair(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A record that has a value and perhaps a key, as nearly all have."""

    value: msgspec.Raw
    key: msgspec.Raw = NO_RAW


class PostedPairs(msgspec.Struct, forbid_unknown_fields=True):
    records: list[PostedPair]


class PostedRecords(msgspec.Struct, forbid_unknown_fields=True):
    records: list[PostedRecord]


_pairs = msgspec.json.Decoder(PostedPairs)
_many = msgspec.json.Decoder(PostedRecords)
_one = msgspec.json.Decoder(PostedRecord)
_text = msgspec.json.Decoder(str)


def parse_records(content_type: str, body: bytes, parameters: Mapping[str, str]) -> list[WrittenRecord]:
    """Return the records of a request. `parameters` are those of the query, for the record of a raw body."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == JSON:
        pairs = _parsed_pairs(body)
        if pairs:
            return pairs
        posted = _parsed(body)
    elif media_type == NDJSON:
        posted = [_line(line, number) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    elif media_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        raise ApiProblem(415, f"{media_type} is not supported, which is also curl's default for --data: {FORMS}")
    else:
        return [_raw(body, parameters)]
    if not posted:
        raise ApiProblem(400, "the request has no records: send at least one")
    if len(posted) > RECORDS_PER_REQUEST_MAX:
        raise ApiProblem(413, f"a request may have {RECORDS_PER_REQUEST_MAX} records, this one has {len(posted)}")
    return [_record(each, number) for number, each in enumerate(posted)]


def _parsed_pairs(body: bytes) -> list[WrittenRecord]:
    """Return the records if all of them are pairs of plain JSON; otherwise none, and the body is parsed in full."""
    if not body.startswith(PAIRS_BEGIN):
        return []
    try:
        posted = _pairs.decode(body).records
        str(body, "utf-8")  # Raw values are not checked one by one.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    if len(posted) > RECORDS_PER_REQUEST_MAX:
        return []
    if b"\\" in body:
        return [_pair(_content(bytes(each.value), None, number, "value"),
                      _content(bytes(each.key), None, number, "key"), (), None, None)
                for number, each in enumerate(posted)]  # fmt: skip
    return [_pair(_unescaped(bytes(each.value)), _unescaped(bytes(each.key)), (), None, None) for each in posted]


def _unescaped(plain: bytes) -> bytes | None:
    """Return the bytes to store of JSON without escapes."""
    if plain[:1] == b'"':
        return plain[1:-1]
    return None if not plain or plain == b"null" else plain


def _pair(*members: Any) -> WrittenRecord:
    return tuple.__new__(WrittenRecord, members)  # half the time of WrittenRecord(...)


def _parsed(body: bytes) -> list[PostedRecord]:
    """Return the records of a JSON document: `{"records": [...]}`, or one record."""
    try:
        if body.startswith(PAIRS_BEGIN):
            return _many.decode(body).records
        try:
            return [_one.decode(body)]
        except msgspec.ValidationError:
            if b'"records"' not in body[:1_000]:
                raise
            return _many.decode(body).records
    except (msgspec.DecodeError, RecursionError) as wrong:
        raise ApiProblem(400, f'{_reason(wrong)}: send {{"value": ...}} or {{"records": [{{"value": ...}}]}}') from None


def _line(line: bytes, number: int) -> PostedRecord:
    try:
        return _one.decode(line)
    except (msgspec.DecodeError, RecursionError) as wrong:
        raise ApiProblem(
            400, f'line {number}: {_reason(wrong)}: each line is a record such as {{"value": ...}}'
        ) from None


def _reason(wrong: Exception) -> str:
    return str(wrong) or "the body is not valid JSON"


def _record(posted: PostedRecord, number: int) -> WrittenRecord:
    if posted.partition is not None or posted.timestamp is not None:
        _in_range(posted.partition, INT32_MAX, number, "partition")
        _in_range(posted.timestamp, INT64_MAX, number, "timestamp")
    value = bytes(posted.value)
    if not value and posted.value_base64 is None:
        raise ApiProblem(400, f'record {number} has no value: give "value" or "value_base64"; null stores a tombstone')
    return WrittenRecord(
        _content(value, posted.value_base64, number, "value"),
        _content(bytes(posted.key), posted.key_base64, number, "key"),
        tuple([(each.name, _header(each, number)) for each in posted.headers]) if posted.headers else (),
        posted.partition,
        posted.timestamp,
    )


def _content(plain: bytes, encoded: str | None, number: int, name: str) -> bytes | None:
    """Return the bytes to store: those of a text, none for null, other JSON as it is, or the decoded Base64."""
    if encoded is not None:
        if plain:
            raise ApiProblem(400, f'record {number} has both "{name}" and "{name}_base64": leave one out')
        return _decoded(encoded, number, f"{name}_base64")
    if plain[:1] == b'"':
        try:
            return _text.decode(plain).encode()
        except (msgspec.DecodeError, UnicodeEncodeError) as wrong:
            raise ApiProblem(400, f"record {number}: {name}: {_reason(wrong)}") from None
    return None if not plain or plain == b"null" else plain


def _header(header: PostedHeader, number: int) -> bytes | None:
    has_text, has_bytes = header.value is not msgspec.UNSET, header.value_base64 is not msgspec.UNSET
    if has_text is has_bytes:
        raise ApiProblem(400, f'record {number}: header "{header.name}" needs one of "value" and "value_base64"')
    if isinstance(header.value_base64, str):
        return _decoded(header.value_base64, number, f'value_base64 of header "{header.name}"')
    return header.value.encode() if isinstance(header.value, str) else None


def _decoded(encoded: str, number: int, name: str) -> bytes:
    try:
        return b64decode(encoded, validate=True)
    except (Base64Error, ValueError) as wrong:
        raise ApiProblem(400, f"record {number}: {name} is not Base64: {wrong}") from None


def _in_range(value: int | None, maximum: int, number: int, name: str) -> None:
    if value is not None and not 0 <= value <= maximum:
        raise ApiProblem(400, f"record {number}: {name} must be a whole number from 0 to {maximum}, not {value}")


def _raw(body: bytes, parameters: Mapping[str, str]) -> WrittenRecord:
    """Return the record of a body that is not JSON; key, partition and timestamp are parameters of the query."""
    key = parameters.get("key")
    return WrittenRecord(
        body,
        None if key is None else key.encode(),
        (),
        _number(parameters, "partition", INT32_MAX),
        _number(parameters, "timestamp", INT64_MAX),
    )


def _number(parameters: Mapping[str, str], name: str, maximum: int) -> int | None:
    text = parameters.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= maximum):
        raise ApiProblem(400, f'{name} must be a whole number from 0 to {maximum}, not "{text}"')
    return int(text)
