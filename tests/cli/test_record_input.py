"""Records that are read from lines, JSON and files."""

from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli import record_input
from headrace.cli.record_input import InputError, InputRecord, file_records, json_records, split_input, text_records
from headrace.client.types import ConsumerRecord
from headrace.operations.record_text import record_json


def pieces(text: bytes, delimiter: bytes = b"\n") -> list[bytes]:
    return [piece for group in split_input(BytesIO(text), delimiter, lambda count: None) for piece in group]


@given(st.lists(st.binary(max_size=5), max_size=20), st.sampled_from([b"\0", b"ab", b"aba"]), st.integers(1, 4))
def test_the_input_is_cut_at_every_delimiter_however_it_arrives(
    values: list[bytes], delimiter: bytes, chunk_bytes: int
) -> None:
    text = delimiter.join(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_input, "CHUNK_BYTES", chunk_bytes)
        expected = text.split(delimiter)
        assert pieces(text, delimiter) == (expected if expected[-1] else expected[:-1])


def test_a_line_is_a_value() -> None:
    records = text_records([pieces(b"one\ntwo\r\n\nlast")])
    assert [(record.key, record.value) for record in records] == [
        (None, b"one"),
        (None, b"two"),
        (None, b""),
        (None, b"last"),
    ]


def test_a_separator_splits_once() -> None:
    records = text_records([[b"k=v=w", b"=v", b"k="]], key_separator=b"=")
    assert [(record.key, record.value) for record in records] == [(b"k", b"v=w"), (b"", b"v"), (b"k", b"")]
    with pytest.raises(InputError, match='line 2 has no "::" between key and value'):
        list(text_records([[b"a::b"], [b"a:b"]], key_separator=b"::"))


def test_a_text_can_stand_for_null() -> None:
    records = text_records([[b"k=NULL", b"NULL=v", b"=NULL "]], key_separator=b"=", null_text=b"NULL")
    assert [(record.key, record.value) for record in records] == [(b"k", None), (None, b"v"), (b"", b"NULL ")]


def test_key_headers_and_partition_are_those_of_every_record() -> None:
    found = list(text_records([[b"v"]], key=b"k", headers=(("h", b"1"),), partition=3))
    assert found == [InputRecord(b"v", b"k", (("h", b"1"),), 3, None)]


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_input, "RECORD_BYTES_MAX", 5)
    with pytest.raises(InputError, match="line 2 has 7 bytes, at most 5"):
        list(text_records(split_input(BytesIO(b"1\n1234567"), b"\n", lambda count: None)))


def test_whole_files_are_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "value"
    path.write_bytes(b"a\nb\0")
    assert list(file_records([path], key=b"k")) == [InputRecord(b"a\nb\0", b"k")]
    with pytest.raises(InputError, match=r"cannot read .*none: No such file"):
        list(file_records([tmp_path / "none"], key=None))
    monkeypatch.setattr(record_input, "RECORD_BYTES_MAX", 3)
    with pytest.raises(InputError, match="more than 3 bytes"):
        list(file_records([path], key=None))


optional_bytes = st.none() | st.binary(max_size=20)


@given(
    optional_bytes,
    optional_bytes,
    st.lists(st.tuples(st.text(st.characters(exclude_categories=("Cs",)), max_size=5), optional_bytes), max_size=3),
    st.integers(0, 9),
    st.integers(0, 2**45),
)
def test_what_consume_prints_as_json_is_read_back(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], partition: int, timestamp: int
) -> None:
    line = record_json(ConsumerRecord("t", partition, 7, timestamp, key, value, tuple(headers))).encode()
    assert list(json_records([[line, b"  "]])) == [InputRecord(value, key, tuple(headers), partition, timestamp)]


def test_a_record_of_json_may_be_short_and_options_win() -> None:
    assert list(json_records([[b'{"value": "v"}']])) == [InputRecord(b"v")]
    assert list(json_records([[b'{"value": null, "timestamp": -1}']])) == [InputRecord(None)]
    line = b'{"value": "v", "partition": 1, "headers": [{"name": "a", "value": "1"}]}'
    assert list(json_records([[line]], headers=(("b", b"2"),), partition=0)) == [
        InputRecord(b"v", None, (("a", b"1"), ("b", b"2")), 0)
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "line 1 is not a record"),
        (b"[]", "Expected `object`"),
        (b'{"valeu": "v"}', 'did you mean "value"'),
        (b'{"key": "k"}', 'no "value"'),
        (b'{"value": 3}', r"\$.value"),
        (b'{"value": "v", "value_base64": "dg=="}', "keep one"),
        (b'{"value_base64": "*"}', "not Base64"),
    ],
)
def test_wrong_json_is_explained(line: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(json_records([[line]]))
