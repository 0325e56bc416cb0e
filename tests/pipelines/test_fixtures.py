"""Records of tests and chunks of backfills, without Spark."""

from itertools import pairwise
from pathlib import Path

import pytest

from headrace.spark.pipelines.backfill import _cuts, _lower
from headrace.spark.pipelines.fixtures import differences, fixture_of, read_lines, shown
from headrace.spark.pipelines.problems import DefinitionError


def test_records_are_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(
        '{"key": "k", "value": {"a": 1}, "headers": {"h": "x"}, "timestamp": "2026-05-31T12:00:00Z"}\n\n{}\n'
    )
    first, empty = map(fixture_of, read_lines(file))
    assert (first.key, first.value, first.headers) == (b"k", b'{"a": 1}', (("h", b"x"),))
    assert first.timestamp_ms == 1780228800000
    assert (empty.key, empty.value) == (None, None)
    assert fixture_of({"value_base64": "AAE="}).value == b"\x00\x01"
    file.write_text('{"kee": 1}\n[]\nnonsense\n')
    with pytest.raises(DefinitionError) as caught:
        read_lines(file)
    assert [problem.line for problem in caught.value.problems] == [1, 2, 3]


def test_only_what_is_expected_is_compared_in_any_order() -> None:
    actual = [shown(b"1", b'{"a": 1}', [("x", b"y"), ("z", b"")]), shown(None, b"text", [])]
    assert differences([{"value": "text"}, {"key": "1", "value": {"a": 1}, "headers": {"x": "y"}}], actual) == []
    told = differences([{"value": "text"}, {"value": "text"}, {"key": "1", "headers": {"x": "n"}}], actual)
    assert [line.partition(":")[0] for line in told] == ["missing", "missing", "not expected"]


def test_chunks_have_every_offset_once() -> None:
    begins = {"s": {"t": {"0": 5, "1": 0}, "u": {"0": 7}}}
    ends = {"s": {"t": {"0": 25, "1": 3}, "u": {"0": 7}}}
    cuts = _cuts(begins, ends, 12)
    assert (cuts[0], cuts[-1]) == (begins, ends)
    for before, after in pairwise(cuts):
        moved = [after["s"][t][p] - before["s"][t][p] for t, p in (("t", "0"), ("t", "1"), ("u", "0"))]
        assert all(0 <= step <= 4 for step in moved)
        assert any(moved)
    assert _cuts(ends, ends, 12) == [ends]
    assert _lower({"t": {"0": 30, "1": 1}}, {"t": {"0": 25, "2": 9}}) == {"t": {"0": 25, "2": 9}}
