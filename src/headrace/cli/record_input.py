"""Records to send, read from lines of text, lines of JSON or whole files."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from headrace.model.nearest_names import aside

RECORD_BYTES_MAX = 64 << 20
"""Bytes of one input record, including its key."""
CHUNK_BYTES = 256 << 10
"""Bytes per read of the input."""

Headers = tuple[tuple[str, bytes | None], ...]


class InputError(ValueError):
    """An input record cannot be sent; the message names the record and the reason."""


class InputRecord(NamedTuple):
    """A record, in the order of the arguments of `Producer.send`; None leaves the choice to the producer."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp: int | None = None


def split_input(file: BinaryIO, delimiter: bytes, advance: Callable[[int], object]) -> Iterator[list[bytes]]:
    """Yield lists of pieces between delimiters as they arrive; call `advance` with the number of bytes read."""
    read = getattr(file, "read1", file.read)
    pending = bytearray()
    while chunk := read(CHUNK_BYTES):
        searched = max(0, len(pending) - len(delimiter) + 1)
        pending += chunk
        advance(len(chunk))
        if pending.find(delimiter, searched) < 0:
            if len(pending) > RECORD_BYTES_MAX:
                break
            continue
        whole = bytes(pending).split(delimiter)
        pending = bytearray(whole.pop())
        yield _without_returns(whole) if delimiter == b"\n" else whole
    if pending:
        yield _without_returns([bytes(pending)]) if delimiter == b"\n" else [bytes(pending)]


def _without_returns(lines: list[bytes]) -> list[bytes]:
    """Remove the carriage return of Windows line endings."""
    return [line.removesuffix(b"\r") for line in lines]


def text_records(
    pieces: Iterable[list[bytes]],
    *,
    key: bytes | None = None,
    key_separator: bytes | None = None,
    null_text: bytes | None = None,
    headers: Headers = (),
    partition: int | None = None,
) -> Iterator[InputRecord]:
    """Yield a record per piece: its value or, with a separator, its key and value. `null_text` stands for null."""
    for number, text in _numbered(pieces):
        value = text
        if key_separator is not None:
            key, found, value = text.partition(key_separator)
            if not found:
                shown = key_separator.decode(errors="backslashreplace")
                raise InputError(
                    f'line {number} has no "{shown}" between key and value; it and the following lines were not sent'
                )
        if null_text is None:
            yield InputRecord(value, key, headers, partition)
        else:
            yield InputRecord(
                None if value == null_text else value, None if key == null_text else key, headers, partition
            )


def _numbered(pieces: Iterable[list[bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield the pieces with their numbers, starting at 1."""
    count = 0
    for group in pieces:
        for number, piece in enumerate(group, count + 1):
            if len(piece) > RECORD_BYTES_MAX:
                raise InputError(f"line {number} has {len(piece)} bytes, at most {RECORD_BYTES_MAX} are allowed")
            yield number, piece
        count += len(group)


def file_records(
    paths: Iterable[Path], *, key: bytes | None, headers: Headers = (), partition: int | None = None
) -> Iterator[InputRecord]:
    """Yield a record per file; the value is the content of the file."""
    for path in paths:
        try:
            with path.open("rb") as file:
                value = file.read(RECORD_BYTES_MAX + 1)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        if len(value) > RECORD_BYTES_MAX:
            raise InputError(f"{path} has more than {RECORD_BYTES_MAX} bytes, which one record cannot hold")
        yield InputRecord(value, key, headers, partition)


class _JsonHeader(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    value: str | msgspec.UnsetType | None = msgspec.UNSET
    value_base64: str | msgspec.UnsetType = msgspec.UNSET


class _JsonRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The object that `consume --json` prints. Topic, offset and time describe the origin of the record."""

    value: str | msgspec.UnsetType | None = msgspec.UNSET
    value_base64: str | msgspec.UnsetType = msgspec.UNSET
    key: str | msgspec.UnsetType | None = msgspec.UNSET
    key_base64: str | msgspec.UnsetType = msgspec.UNSET
    headers: list[_JsonHeader] = []
    partition: int | None = None
    timestamp: int | None = None
    topic: str = ""
    offset: int = 0
    time: str = ""


_decode_record = msgspec.json.Decoder(_JsonRecord).decode
_FIELDS = tuple(_JsonRecord.__struct_fields__)


def json_records(
    pieces: Iterable[list[bytes]], *, headers: Headers = (), partition: int | None = None
) -> Iterator[InputRecord]:
    """Yield a record per line of JSON, in the format of `consume --json`; blank lines are skipped."""
    for number, text in _numbered(pieces):
        if text.strip():
            yield _json_record(text, number, headers, partition)


def _json_record(text: bytes, number: int, headers: Headers, partition: int | None) -> InputRecord:
    try:
        record = _decode_record(text)
        if record.value is msgspec.UNSET and record.value_base64 is msgspec.UNSET:
            raise ValueError('it has no "value" (null for a tombstone) and no "value_base64"')
        return InputRecord(
            _bytes_of("value", record.value, record.value_base64),
            _bytes_of("key", record.key, record.key_base64),
            (*((each.name, _bytes_of("value", each.value, each.value_base64)) for each in record.headers), *headers),
            record.partition if partition is None else partition,
            None if record.timestamp is None or record.timestamp < 0 else record.timestamp,
        )
    except ValueError as wrong:  # msgspec raises it as well
        raise InputError(
            f"line {number} is not a record: {_explained(str(wrong))}; it and the following lines were not sent"
        ) from None


def _bytes_of(name: str, text: str | msgspec.UnsetType | None, base64: str | msgspec.UnsetType) -> bytes | None:
    if base64 is msgspec.UNSET:
        return text.encode() if isinstance(text, str) else None
    if text is not msgspec.UNSET:
        raise ValueError(f'it has "{name}" and "{name}_base64": keep one of them')
    try:
        return b64decode(str(base64), validate=True)
    except Base64Error:
        raise ValueError(f'"{name}_base64" is not Base64') from None


def _explained(message: str) -> str:
    """Add a suggestion to msgspec's message about an unknown field, and the name of the field to others."""
    unknown = message.partition("unknown field `")[2].partition("`")[0]
    return message + aside(unknown, _FIELDS) if unknown else message
