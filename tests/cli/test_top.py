"""`headrace top`: what it counts, what it prints, and how it looks on a terminal of 80 columns."""

import fcntl
import json
import os
import pty
import re
import selectors
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from headrace.cli.top import GROUP_COLUMNS, TOPIC_COLUMNS, _error_line, _number, shown_columns
from headrace.client import Admin, Producer
from headrace.model.ids import TopicPartition
from headrace.operations.metrics_page import histogram, parse_page, total
from headrace.operations.top_samples import GroupCount, Sample, view_of
from headrace.testing import EmbeddedBroker
from tests.cli.conftest import Headrace, caller
from tests.reserved_ports import reserved_address

pytestmark = pytest.mark.process

COLUMNS, LINES = 80, 24
WAIT_S = 60
LONG_NAME = "a-topic-with-a-name-that-is-much-longer-than-any-terminal-of-eighty-columns-has-room-for"


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(config={"headrace.metrics.listen": reserved_address()}) as running:
        running.create_topic("orders", partitions=2)
        running.create_topic(LONG_NAME)
        with Admin(running.bootstrap_servers) as admin:
            admin.commit_group_offsets("billing", {TopicPartition("orders", 0): 0})
        yield running


class Busy:
    """Records come all the time, and the group follows."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers
        self._rounds = 0
        self._over = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        with Producer(bootstrap_servers=self._servers) as producer, Admin(self._servers) as admin:
            while not self._over:
                offset = producer.send("orders", b"value", partition=0).result(timeout_ms=WAIT_S * 1000).offset
                admin.commit_group_offsets("billing", {TopicPartition("orders", 0): offset + 1})
                with self._changed:
                    self._rounds += 1
                    self._changed.notify_all()

    def wait_for_a_round(self) -> None:
        """That has begun after the call."""
        with self._changed:
            goal = self._rounds + 2
            assert self._changed.wait_for(lambda: self._rounds >= goal, WAIT_S)

    def close(self) -> None:
        self._over = True
        self._thread.join()


@pytest.fixture
def busy(broker: EmbeddedBroker) -> Iterator[Busy]:
    writing = Busy(broker.bootstrap_servers)
    yield writing
    writing.close()


def test_rates_and_lag(broker: EmbeddedBroker, busy: Busy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.cli.top.time", SimpleNamespace(sleep=lambda _seconds: busy.wait_for_a_round()))
    printed = json.loads(caller(broker)("top", "--once", "--json").stdout)
    orders = next(row for row in printed["topics"] if row["topic"] == "orders")
    assert (orders["partitions"], printed["brokers"]) == (2, 1)
    assert orders["records"] > 0
    assert orders["size_bytes"] > 0
    assert orders["in_per_second"] > 0
    assert orders["out_per_second"] > 0
    group = printed["groups"][0]
    assert (group["group"], group["state"], group["type"], group["members"]) == ("billing", "Empty", "classic", 0)
    assert group["lag"] >= 0
    assert group["read_per_second"] > 0
    assert not any(row["topic"].startswith("__") for row in printed["topics"])


def test_the_metrics_page_is_found(headrace: Headrace) -> None:
    """By the config of the broker."""
    named = json.loads(headrace("top", "--once", "--json", "--interval", "0.1").stdout)
    assert named["broker"]["connections"] >= 1
    assert named["broker"]["requests_per_second"] > 0
    assert 0 < named["broker"]["loop_p99_ms"] <= named["broker"]["loop_lag_ms"]


def test_without_a_metrics_page(headrace: Headrace) -> None:
    with EmbeddedBroker() as plain:
        printed = caller(plain)("top", "--once", "--interval", "0.1").stdout
    (advice,) = (line for line in printed.splitlines() if line.startswith("no metrics"))
    assert advice.endswith("--set headrace.metrics.listen=127.0.0.1:9644")
    assert len(advice) < COLUMNS, "a terminal of 80 columns shows all of it"
    assert "no topics" in printed
    assert "no groups" in printed


def test_a_wrong_metrics_page_is_reported(broker: EmbeddedBroker, headrace: Headrace) -> None:
    result = headrace("top", "--once", "--metrics", "127.0.0.1:1", exit_code=1)
    assert "the metrics page at 127.0.0.1:1 cannot be read" in result.stderr


def test_internal_topics_if_wanted(headrace: Headrace) -> None:
    printed = json.loads(headrace("top", "--once", "--json", "--interval", "0.1", "--internal").stdout)
    assert "__consumer_offsets" in {row["topic"] for row in printed["topics"]}


def test_on_a_terminal(broker: EmbeddedBroker, busy: Busy) -> None:
    """It redraws, fits, and Ctrl-C restores the terminal."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    command = [sys.executable, "-m", "headrace", "top", "--bootstrap", broker.bootstrap_servers, "--interval", "0.2"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(LINES)}
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    try:
        drawn = _read_until(screen, lambda text: text.count("headrace top") >= 3)
        process.send_signal(signal.SIGINT)
        drawn += _read_until(screen, lambda text: "\x1b[?1049l" in text)
        assert process.wait(WAIT_S) == 130
    finally:
        process.kill()
        process.wait()
        os.close(screen)
    assert "\x1b[?1049h" in drawn, "it has a screen of its own"
    last = drawn.rpartition("headrace top")[2].partition("\x1b[?1049l")[0]
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in last.replace("\r", "").split("\n")]
    assert len(lines) <= LINES
    assert max(len(line) for line in lines[1:]) <= COLUMNS
    assert any(line.startswith("orders ") for line in lines)
    assert any(line.startswith("billing ") for line in lines)
    assert any("…" in line and line.startswith("a-topic") for line in lines), "a long name is cut"


def _read_until(screen: int, reached: Callable[[str], bool]) -> str:
    text = ""
    deadline = time.monotonic() + WAIT_S
    with selectors.DefaultSelector() as selector:
        selector.register(screen, selectors.EVENT_READ)
        while not reached(text):
            ready = selector.select(max(deadline - time.monotonic(), 0))
            assert ready, f"nothing more came after {text[-2000:]!r}"
            text += os.read(screen, 65_536).decode(errors="replace")
    return text


def test_what_was_there_before_does_not_count_as_written() -> None:
    part = TopicPartition("t", 0)
    group = GroupCount("Stable", "classic", 1, {part: 40}, 60)
    now = Sample(12.0, 1, {"t": 1}, {part: 10}, {part: 100}, {"t": 1_000}, {"g": group}, None)
    empty = Sample(10.0, 1, {}, {}, {}, {}, {}, None)
    view = view_of(empty, now)
    assert (view.topics[0].in_per_second, view.topics[0].records, view.groups[0].read_per_second) == (0, 90, 0)
    before = now._replace(at_seconds=10.0, ends={part: 80}, groups={"g": group._replace(committed={part: 30})})
    view = view_of(before, now)
    assert (view.topics[0].in_per_second, view.topics[0].out_per_second, view.groups[0].lag) == (10, 5, 60)


def test_errors_are_named_with_their_rates() -> None:
    before = parse_page(
        'headrace_request_errors_total{api="produce"} 5\nheadrace_request_errors_total{api="metadata"} 1\n'
        'headrace_produce_errors_total{error="CORRUPT_MESSAGE"} 5\n'
    )
    later = parse_page(
        'headrace_request_errors_total{api="produce"} 9\nheadrace_request_errors_total{api="metadata"} 2\n'
        'headrace_request_errors_total{api="fetch"} 6\nheadrace_produce_errors_total{error="CORRUPT_MESSAGE"} 9\n'
        'headrace_fetch_errors_total{error="OFFSET_OUT_OF_RANGE"} 6\n'
    )
    first = Sample(10.0, 1, {}, {}, {}, {}, {}, before)
    node = view_of(first, first._replace(at_seconds=12.0, metrics=later)).node
    assert node is not None
    assert node.errors_per_second == 5.5
    assert node.errors == {"fetch OFFSET_OUT_OF_RANGE": 3, "produce CORRUPT_MESSAGE": 2, "metadata": 0.5}
    shown = "errors: fetch OFFSET_OUT_OF_RANGE 3/s, produce CORRUPT_MESSAGE 2/s, metadata 0.5/s"
    assert _error_line(node) == shown
    assert _error_line(node._replace(errors={})) == "no request failed"


def test_pages_are_read_back() -> None:
    page = parse_page(
        '# HELP x y\na{api="Produce",q="1\\"2"} 3\na{api="Fetch"} 4\nb 2.5\nc_bucket{le="+Inf"} 7\nnot one'
    )
    assert (total(page, "a"), total(page, "b"), total(page, "missing")) == (7, 2.5, 0)
    assert page["a"][0][0] == {"api": "Produce", "q": '1\\"2'}
    assert histogram(page, "c") == [(float("inf"), 7)]


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (0.25, "0.2"), (12.7, "13"), (999_999, "999,999"), (1_200_000, "1.2M"), (3.4e12, "3.4T")],
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert _number(number) == text


@pytest.mark.parametrize(
    ("width", "topics", "groups"),
    [
        (80, list(TOPIC_COLUMNS), list(GROUP_COLUMNS)),
        (50, ["topic", "size", "records", "in/s", "out/s"], ["group", "state", "members", "lag", "read/s"]),
        (30, ["topic", "in/s", "out/s"], ["group", "state", "lag"]),
        (5, ["topic", "in/s"], ["group", "lag"]),
    ],
)
def test_a_narrow_screen_leaves_out_what_matters_least(width: int, topics: list[str], groups: list[str]) -> None:
    topic_row = ("orders", "4", "468.4 KiB", "1.2M", "532", "1,063")
    group_row = ("billing", "Stable", "classic", "100", "345", "91")
    assert [TOPIC_COLUMNS[place] for place in shown_columns(TOPIC_COLUMNS, [topic_row], width)] == topics
    assert [GROUP_COLUMNS[place] for place in shown_columns(GROUP_COLUMNS, [group_row], width)] == groups
