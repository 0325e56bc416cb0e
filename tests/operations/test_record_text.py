"""Lines to records and records to lines."""

import json

import pytest

from headrace.client.types import ConsumerRecord
from headrace.operations.record_text import FormatError, parse_format, record_json, record_line, unescaped


def record(
    key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...] = ()
) -> ConsumerRecord:
    return ConsumerRecord("orders", 3, 42, 1_700_000_000_123, key, value, headers)


def test_a_record_is_its_value_or_key_and_value() -> None:
    assert record_line(record(b"k", b"\xff"), None) == b"\xff"
    assert record_line(record(b"k", b"v"), b"\t") == b"k\tv"
    assert record_line(record(None, None), b"\t") == b"null\tnull"
    assert record_line(record(b"", b""), b"\t") == b"\t"
    assert record_line(record(None, None), b"\t", null_text=b"-") == b"-\t-"


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


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (r"%k %v %o\n", b"k v 42\n"),
        (r"%t[%p] at %T: %s\t%K/%S", b"orders[3] at 1700000000123: v\t1/1"),
        ("%h", b"a=1,b=null"),
        ("100%% %v", b"100% v"),
        (r"\x00\0\\n", b"\x00\x00\\n"),
        ("", b""),
    ],
)
def test_formats(text: str, printed: bytes) -> None:
    assert parse_format(text)(record(b"k", b"v", (("a", b"1"), ("b", None)))) == printed


def test_null_and_empty_look_different_in_a_format() -> None:
    line = parse_format("%k:%v:%K:%S")
    assert line(record(None, b"")) == b"null::-1:0"
    assert line(record(b"", None)) == b":null:0:-1"


@pytest.mark.parametrize(("text", "message"), [("%q", "%k"), ("%", '"%" is unknown'), (r"\q", "not an escape")])
def test_wrong_formats_are_explained(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse_format(text)


def test_escapes() -> None:
    assert unescaped(r"a\tb\x1e\\") == b"a\tb\x1e\\"
