"""A node's own log: levels, formats, hostile fields, and a bound on how much one event may say."""

import json
import subprocess
import sys

import pytest

from headrace.broker.logs import EVENT_LINES_PER_SECOND_MAX, FIELD_LENGTH_MAX, NodeLogger

pytestmark = pytest.mark.process


class FixedClock:
    def __init__(self) -> None:
        self.now_ms = 0.0

    def monotonic_ms(self) -> float:
        return self.now_ms

    def wall_ms(self) -> int:
        return 1_700_000_000_123


def lines_of(format: str = "json", level: str = "info") -> tuple[NodeLogger, list[str], FixedClock]:
    lines: list[str] = []
    clock = FixedClock()
    return NodeLogger(clock=clock, write=lines.append, format=format, level=level, node=7), lines, clock


def test_a_json_line_holds_event_context_and_fields() -> None:
    logger, lines, _ = lines_of()
    logger.info("topic created", topic="orders", partitions=3)
    assert json.loads(lines[0]) == {
        "timestamp": "2023-11-14T22:13:20.123Z",
        "level": "info",
        "event": "topic created",
        "node": 7,
        "topic": "orders",
        "partitions": 3,
    }


def test_a_console_line_is_one_line() -> None:
    logger, lines, _ = lines_of("console")
    logger.warning("disk is nearly full", free_bytes=10)
    assert len(lines) == 1
    assert lines[0].startswith("2023-11-14T22:13:20.123Z [warning")
    assert "disk is nearly full" in lines[0]
    assert "free_bytes=10" in lines[0]


def test_the_level_is_the_least_that_is_written() -> None:
    logger, lines, _ = lines_of(level="warning")
    logger.debug("a")
    logger.info("b")
    logger.warning("c")
    logger.error("d")
    assert [json.loads(line)["event"] for line in lines] == ["c", "d"]
    silent, nothing, _ = lines_of(level="off")
    silent.error("e", cause=ValueError("x"))
    assert nothing == []


@pytest.mark.parametrize("format", ["json", "console"])
def test_what_a_client_sent_cannot_forge_lines_or_drive_the_terminal(format: str) -> None:
    logger, lines, _ = lines_of(format)
    logger.info("bad input", client="x\n2023 [error] all is lost\x1b[2J\ud800\u2028")
    assert lines[0].count("\n") == 1
    assert "\x1b" not in lines[0]
    assert "\u2028" not in lines[0]


def test_long_fields_are_cut() -> None:
    logger, lines, _ = lines_of()
    logger.info("bad input", client="x" * 100_000)
    assert len(json.loads(lines[0])["client"]) == FIELD_LENGTH_MAX + 3


def test_one_event_cannot_fill_the_disk() -> None:
    logger, lines, clock = lines_of()
    for _ in range(1000):
        logger.info("bad input")
    logger.info("another")
    assert len(lines) == EVENT_LINES_PER_SECOND_MAX + 1
    clock.now_ms += 1000
    logger.info("bad input")
    assert json.loads(lines[-1])["lines_left_out"] == 1000 - EVENT_LINES_PER_SECOND_MAX
    logger.info("bad input")
    assert "lines_left_out" not in json.loads(lines[-1])


@pytest.mark.parametrize("format", ["json", "console"])
def test_an_error_names_its_cause(format: str) -> None:
    logger, lines, _ = lines_of(format)
    try:
        raise ValueError("of this\n2023 [error] forged\x1b")
    except ValueError as error:
        logger.error("stopped", cause=error, peer="x")
    (text,) = lines
    assert "ValueError: of this" in text
    assert "\x1b" not in text
    if format == "json":
        assert json.loads(text)["traceback"][0] == "Traceback (most recent call last):"
    else:
        first, *rest = text.splitlines()
        assert "stopped" in first
        assert len(rest) > 2
        assert all(line.startswith("    ") for line in rest)


def test_a_field_with_blanks_is_quoted_for_people() -> None:
    logger, lines, _ = lines_of("console")
    logger.info("connection closed", peer="127.0.0.1:5", reason='it said "a=b"', code=None)
    assert lines == [
        "2023-11-14T22:13:20.123Z [info     ] connection closed node=7 peer=127.0.0.1:5 "
        "reason='it said \"a=b\"' code=None\n"
    ]


def test_the_first_line_loads_nothing() -> None:
    """It may be one that a hostile client brought about, and the loop waits for it; or one of a process that has no
    file descriptor left."""
    program = (
        "import sys\nfrom headrace.broker.node import Node\nfrom headrace.broker.logs import NodeLogger\n"
        "from headrace.ports.real.clock import RealClock\n"
        "logger = NodeLogger(clock=RealClock(), write=lambda line: None)\nbefore = set(sys.modules)\n"
        "logger.error('connection closed', peer='x', cause=ValueError('x'))\n"
        "sys.exit(' '.join(sorted(set(sys.modules) - before)) or 0)"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
