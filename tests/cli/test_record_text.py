"""Lines to records and records to lines."""

import json

import pytest

from headrace.cli import record_text
from headrace.cli.record_text import LineError, input_records, record_json, record_line
from headrace.client.types import ConsumerRecord


def record(
    key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...] = ()
) -> ConsumerRecord:
    return ConsumerRecord("orders", 3, 42, 1_700_000_000_123, key, value, headers)


def test_a_line_is_a_value() -> None:
    assert list(input_records([b"one\n", b"two\r\n", b"\n", b"last"], None)) == [
        (None, b"one"),
        (None, b"two"),
        (None, b""),
        (None, b"last"),
    ]


def test_a_separator_splits_once() -> None:
    assert list(input_records([b"k=v=w\n", b"=v\n", b"k=\n"], b"=")) == [(b"k", b"v=w"), (b"", b"v"), (b"k", b"")]
    with pytest.raises(LineError, match='line 2 has no "::" between key and value'):
        list(input_records([b"a::b\n", b"a:b\n"], b"::"))


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_text, "LINE_LENGTH_MAX", 5)
    with pytest.raises(LineError, match="line 1 has 7 bytes, at most 5"):
        list(input_records([b"1234567"], None))


def test_a_record_is_its_value_or_key_and_value() -> None:
    assert record_line(record(b"k", b"\xff"), None) == b"\xff"
    assert record_line(record(b"k", b"v"), b"\t") == b"k\tv"
    assert record_line(record(None, None), b"\t") == b"\t"


def test_a_record_as_json() -> None:
    assert json.loads(record_json(record(b"k", "\u00e9\n".encode(), (("trace", b"1"), ("none", None))))) == {
        "topic": "orders",
        "partition": 3,
        "offset": 42,
        "timestamp": 1_700_000_000_123,
        "time": "2023-11-14T22:13:20.123Z",
        "key": "k",
        "value": "\u00e9\n",
        "headers": [{"name": "trace", "value": "1"}, {"name": "none", "value": None}],
    }


def test_bytes_that_are_no_text_are_base64() -> None:
    shown = json.loads(record_json(record(None, b"\xff\x00")))
    assert shown["key"] is None
    assert shown["value_base64"] == "/wA="
    assert "value" not in shown
    assert "\n" not in record_json(record(b"\n", b"\n"))
