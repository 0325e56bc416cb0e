"""Output of commands."""

import json
import logging
import re
import sys

import pytest

from headrace.cli.console import (
    clean,
    connection_notices,
    partitions_text,
    print_json,
    print_table,
    progress,
)
from headrace.model.ids import TopicPartition
from headrace.operations.amounts import count_text, size_text


def test_a_piped_table_is_plain_and_never_folds(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "size"), [("a", 1), ("x" * 300, 22)], right=("size",), styles={"name": lambda cell: "red"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "SIZE"]
    assert lines[1] == "a" + " " * 299 + "     1"
    assert lines[2] == "x" * 300 + "    22"


def test_an_empty_table_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name",), [], empty="no topics yet")
    assert capsys.readouterr().out == "no topics yet\n"


def test_cells_are_not_markup_and_hold_no_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name",), [("[bold]x[/bold]",), ("a\x1b[2Jb\nc",)])
    assert capsys.readouterr().out.splitlines()[1:] == ["[bold]x[/bold]", "a\\x1b[2Jb\\nc"]


def test_json_is_one_line_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([{"name": "é"}])
    out = capsys.readouterr().out
    assert out == '[{"name": "é"}]\n'
    assert json.loads(out) == [{"name": "é"}]


def test_progress_is_silent_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("working", total=2) as advance:
        advance(1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("count", "text"),
    [(-1, "unknown"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (3 << 40, "3.0 TiB")],
)
def test_sizes(count: int, text: str) -> None:
    assert size_text(count) == text


def test_counts_and_control_characters() -> None:
    assert count_text(1, "topic") == "1 topic"
    assert count_text(0, "topic") == "0 topics"
    assert clean("a\tb\ud800") == "a\\tb\\ud800"


def test_on_a_narrow_terminal_only_the_widest_column_folds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.cli.console.PIPED_WIDTH", 60)
    row = ("billing-nightly", "Stable", "m" * 80, 1_234_567)
    print_table(("group", "state", "member", "lag"), [row], right=("lag",))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["GROUP", "STATE", "MEMBER", "LAG"]
    assert lines[1].startswith("billing-nightly  Stable  mmm")
    assert lines[1].endswith("1234567")
    assert "".join(line.replace(" ", "") for line in lines[1:]).count("m") == 80
    assert all(len(line) <= 60 for line in lines)


def test_headings_that_fit_just_so_are_not_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = ("partition", "leader", "epoch", "replicas", "in sync", "start", "end", "size")
    monkeypatch.setattr("headrace.cli.console.PIPED_WIDTH", 60)
    print_table(columns, [(0, 1, 0, "1", "1", 0, 5, "307 B")])
    assert capsys.readouterr().out.splitlines()[0] == "PARTITION LEADER EPOCH REPLICAS IN SYNC START END SIZE"


def test_a_table_of_wide_columns_loses_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.cli.console.PIPED_WIDTH", 40)
    print_table(("a", "b", "c"), [("a" * 50, "b" * 50, "c" * 50)])
    out = capsys.readouterr().out
    assert (out.count("a"), out.count("b"), out.count("c")) == (50, 50, 50)


def test_a_column_that_may_be_cut_shrinks_before_others_fold(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.cli.console.PIPED_WIDTH", 40)
    print_table(("topic", "lag", "member"), [("orders-of-the-shop", 7, "m" * 80)], right=("lag",), cut=("member",))
    assert capsys.readouterr().out.splitlines()[1] == "orders-of-the-shop    7  " + "m" * 12 + "…"
    print_table(("topic", "member"), [("orders", "short")], cut=("member",))
    assert capsys.readouterr().out.splitlines()[1] == "orders  short"


def test_what_a_client_says_of_its_connections_is_shown_while_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("headrace.client")
    level, handlers = logger.level, list(logger.handlers)
    with connection_notices():
        logger.info("here:1 is gone\x1b[2J")
    logger.info("this is not shown")
    assert capsys.readouterr() == ("", "headrace: here:1 is gone\\x1b[2J\n")
    assert (logger.level, logger.handlers) == (level, handlers)


def test_partitions_by_topic() -> None:
    places = [TopicPartition("b", 10), TopicPartition("a", 3), TopicPartition("b", 2)]
    assert partitions_text(places) == "a 3; b 2, 10"
    assert partitions_text([]) == ""


def test_a_notice_has_a_line_of_its_own_beside_a_progress_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with connection_notices(), progress("sending", total=10, in_bytes=True) as advance:
        advance(5)
        logging.getLogger("headrace.client").warning("broker 1 is gone [really]")
        advance(5)
    printed = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert re.search(r"(^|[\r\n])headrace: broker 1 is gone \[really\] *\n", printed)
    assert "sending" in printed
