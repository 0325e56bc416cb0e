"""`headrace produce` and `headrace consume` against a broker."""

import json
import os
import pty
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.cli.consume import _print_records
from headrace.client import Consumer, Producer
from headrace.client.errors import BrokerUnreachable, DeadlineExceeded
from headrace.client.types import ConsumerRecord
from headrace.model.ids import TopicPartition
from headrace.testing import EmbeddedBroker
from tests.cli.conftest import Headrace

pytestmark = pytest.mark.process


def test_lines_there_and_back(headrace: Headrace, topic: str) -> None:
    sent = headrace("produce", topic, "--partition", "0", input="one\ntwo\n\nfour")
    assert sent.stderr.endswith(f'sent 4 records to topic "{topic}"\n')
    assert headrace("consume", topic, "--from-beginning").stdout == "one\ntwo\n\nfour\n"


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_compressions(compression: str, headrace: Headrace, topic: str) -> None:
    lines = "".join(f"line {number}\n" for number in range(2000))
    headrace("produce", topic, "--partition", "0", "--compression", compression, input=lines)
    assert headrace("consume", topic, "--from-beginning").stdout == lines


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(acks: str, headrace: Headrace, topic: str) -> None:
    headrace("produce", topic, "--partition", "2", "--acks", acks, input="x\n")
    assert headrace("consume", topic, "--partition", "2", "--from-beginning", "--follow", "--max", "1").stdout == "x\n"


def test_keys_choose_partitions_and_come_back(headrace: Headrace, topic: str) -> None:
    headrace("produce", topic, "--key-separator", "=", input="a=1\nb=2\na=3\n")
    records = [
        json.loads(line) for line in headrace("consume", topic, "--from-beginning", "--json").stdout.splitlines()
    ]
    assert sorted((record["key"], record["value"]) for record in records) == [("a", "1"), ("a", "3"), ("b", "2")]
    assert len({record["partition"] for record in records if record["key"] == "a"}) == 1
    shown = headrace("consume", topic, "--from-beginning", "--key-separator", ": ").stdout
    assert sorted(shown.splitlines()) == ["a: 1", "a: 3", "b: 2"]


def test_a_line_without_separator_stops_there(headrace: Headrace, topic: str) -> None:
    result = headrace("produce", topic, "--key-separator", "=", input="a=1\nb2\nc=3\n", exit_code=1)
    assert 'line 2 has no "=" between key and value' in result.stderr
    assert headrace("consume", topic, "--from-beginning").stdout == "1\n"
    assert "must not be empty" in headrace("produce", topic, "--key-separator", "", exit_code=2).stderr


def test_a_file_with_bytes_that_are_no_text(headrace: Headrace, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"\xff\x00\xfe\nplain\n")
    headrace("produce", topic, "--file", str(file), "--partition", "0")
    assert headrace("consume", topic, "--from-beginning").stdout_bytes == b"\xff\x00\xfe\nplain\n"
    first = json.loads(headrace("consume", topic, "--from-beginning", "--max", "1", "--json").stdout)
    assert first["value_base64"] == "/wD+"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--offset", "3"], "3\n4\n"),
        (["--offset", "-2"], "3\n4\n"),
        (["--offset", "-99"], "0\n1\n2\n3\n4\n"),
        (["--offset", "99"], ""),
        (["--from-beginning", "--max", "2"], "0\n1\n"),
        (["--at", "1h"], "0\n1\n2\n3\n4\n"),
        (["--at", "2999-01-01"], ""),
        (["--at", "1970-01-02", "--max", "1"], "0\n"),
        (["--from-beginning", "--partition", "1"], ""),
    ],
)
def test_where_to_begin(options: list[str], expected: str, headrace: Headrace, topic: str) -> None:
    headrace("produce", topic, "--partition", "0", input="0\n1\n2\n3\n4\n")
    assert headrace("consume", topic, *options).stdout == expected


def test_wrong_use(headrace: Headrace, topic: str) -> None:
    assert "give one of" in headrace("consume", topic, "--from-beginning", "--offset", "1", exit_code=2).stderr
    assert "is not a time: write" in headrace("consume", topic, "--at", "teatime", exit_code=2).stderr
    missing = headrace("consume", topic, "--partition", "7", "--from-beginning", exit_code=1)
    assert f'topic "{topic}" has no partition 7: it has 0 to 2' in missing.stderr
    unknown = headrace("consume", "no-such-topic", "--from-beginning", exit_code=1)
    assert "it does not exist (headrace topics list shows all)" in unknown.stderr


def test_following_sees_what_comes_and_ends_quietly(broker: EmbeddedBroker, headrace: Headrace, topic: str) -> None:
    program = "from headrace.cli.main import main; main()"
    arguments = ["consume", topic, "--from-beginning", "--follow", "--bootstrap", broker.bootstrap_servers]
    headrace("produce", topic, input="before\n")
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"before\n"
        headrace("produce", topic, input="after\n")
        assert process.stdout.readline() == b"after\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stderr.read() == b""


def test_a_reader_that_goes_away_is_no_error(broker: EmbeddedBroker, headrace: Headrace, topic: str) -> None:
    headrace("produce", topic, input="x" * 100 + "\n" + "y\n" * 50_000)
    program = "from headrace.cli.main import main; main()"
    arguments = ["consume", topic, "--from-beginning", "--bootstrap", broker.bootstrap_servers]
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 0


def test_records_as_json_there_and_back(broker: EmbeddedBroker, headrace: Headrace, topic: str) -> None:
    """Keys, values, headers, times and partitions of one topic are those of its copy, null and binary ones too."""
    with Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, b"plain", partition=0, timestamp=1_700_000_000_123)
        producer.send(topic, None, key=b"tombstone", partition=1)
        producer.send(topic, b"", key=b"", partition=1)
        producer.send(topic, b"\xff\x00", key=b"\xfe", headers=[("a", b"\xfd"), ("b", None), ("a", b"2")], partition=2)
        producer.send(topic, "\u00e9\n\u2028".encode(), partition=2)
    printed = headrace("consume", topic, "--from-beginning", "--json").stdout
    copy = broker.create_topic(broker.unused_topic_name(topic), partitions=3)
    assert "sent 5 records" in headrace("produce", copy, "--json", input=printed).stderr
    copied = headrace("consume", copy, "--from-beginning", "--json").stdout

    def without_place(lines: str) -> list[dict[str, Any]]:
        rows = [{**json.loads(line), "topic": ""} for line in lines.split("\n") if line]
        return sorted(rows, key=lambda row: (row["partition"], row["offset"]))

    assert without_place(copied) == without_place(printed)
    assert len(without_place(copied)) == 5
    broker.delete_topic(copy)


def test_wrong_json_names_its_line(headrace: Headrace, topic: str) -> None:
    refused = headrace("produce", topic, "--json", input='{"value": "v"}\n{"valeu": "v"}\n', exit_code=1)
    assert "line 2 is not a record" in refused.stderr
    assert 'did you mean "value"?' in refused.stderr
    assert "1 record before it were sent" in refused.stderr
    assert "leave out" in headrace("produce", topic, "--json", "--key", "k", exit_code=2).stderr


def test_headers_keys_nulls_and_delimiters(headrace: Headrace, topic: str) -> None:
    headrace(
        "produce", topic, "--header", "a=1", "--header", "b=x=y", "--key", "k", "--delimiter", r"\0", input=b"1\n2\0003"
    )
    headrace("produce", topic, "--key-separator", "=", "--null-value", "NIL", input="k=NIL\nNIL=v\n=\n")
    printed = headrace("consume", topic, "--from-beginning", "--format", r"%k|%v|%h|%S;").stdout
    assert sorted(printed.split(";")) == sorted(
        ["k|1\n2|a=1,b=x=y|3", "k|3|a=1,b=x=y|1", "k|null||-1", "null|v||1", "|||0", ""]
    )
    shown = headrace(
        "consume", topic, "--from-beginning", "--key-separator", "=", "--null-value", "-", "--delimiter", ";"
    )
    assert sorted(shown.stdout.split(";")) == sorted(["k=1\n2", "k=3", "k=-", "-=v", "=", ""])
    assert "name=value" in headrace("produce", topic, "--header", "a", exit_code=2).stderr
    assert "%k" in headrace("consume", topic, "--format", "%q", exit_code=2).stderr
    assert "not an escape" in headrace("produce", topic, "--delimiter", r"\q", exit_code=2).stderr


def test_a_whole_file_is_one_record(headrace: Headrace, topic: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"a\nb")
    second.write_bytes(b"")
    files = ("--value-file", str(first), "--value-file", str(second))
    assert "sent 2 records" in headrace("produce", topic, *files, "--key", "k").stderr
    assert headrace("consume", topic, "--from-beginning", "--format", "%k:%v;").stdout == "k:a\nb;k:;"
    missing = headrace("produce", topic, "--value-file", str(tmp_path / "none"), exit_code=1)
    assert "cannot read" in missing.stderr


def test_values_go_to_all_partitions_and_long_ones_alone(headrace: Headrace, topic: str, tmp_path: Path) -> None:
    lines = [f"{number:06d}" + "x" * 60 for number in range(20_000)] + ["y" * 700_000, "z"]
    file = tmp_path / "lines"
    file.write_text("\n".join(lines))
    assert f"sent {len(lines)} records" in headrace("produce", topic, "--file", str(file)).stderr
    printed = headrace("consume", topic, "--from-beginning", "--format", r"%p %v\n").stdout.splitlines()
    assert {line[0] for line in printed} == {"0", "1", "2"}
    assert sorted(line[2:] for line in printed) == sorted(lines)


def test_ctrl_c_says_how_many_were_sent(broker: EmbeddedBroker, topic: str) -> None:
    command = [sys.executable, "-m", "headrace", "produce", topic, "--bootstrap", broker.bootstrap_servers]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        Consumer(topic, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer,
    ):
        assert process.stdin is not None
        process.stdin.write(b"one\ntwo\n")
        process.stdin.flush()
        read = [next(consumer).value for _ in range(2)]
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read().decode() == "interrupted: sent 2 records\n"
        process.stdin.close()
        assert process.wait(timeout=60) == 130
    assert read == [b"one", b"two"]


def test_a_topic_that_is_created_by_writing_to_it_is_mentioned(
    headrace: Headrace, broker: EmbeddedBroker, topic: str
) -> None:
    misspelt = f"{topic}s"
    first = headrace("produce", misspelt, input="one\n")
    assert (
        first.stderr
        == f'sent 1 record to topic "{misspelt}", which was created automatically (did you mean "{topic}"?)\n'
    )
    assert headrace("produce", misspelt, input="two\n").stderr == f'sent 1 record to topic "{misspelt}"\n'
    broker.delete_topic(misspelt)
    assert headrace("produce", misspelt, input="").stderr == f'sent 0 records to topic "{misspelt}"\n'


def test_nothing_is_drawn_over_what_is_typed(broker: EmbeddedBroker, topic: str) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "headrace", "produce", topic, "--bootstrap", broker.bootstrap_servers]
    with subprocess.Popen(command, stdin=follower, stderr=follower) as process:
        os.close(follower)
        said = b""
        while b"Ctrl-D ends the input\r\n" not in said:  # what is typed sooner may be shown before the end of the line
            said += os.read(leader, 1 << 16)
        os.write(leader, b"one\n\x04")
        with suppress(OSError):  # the end of a terminal without a process
            while piece := os.read(leader, 1 << 16):
                said += piece
    os.close(leader)
    assert process.returncode == 0
    assert said.decode().splitlines() == [
        "enter one record per line; Ctrl-D ends the input",
        "one",
        f'sent 1 record to topic "{topic}"',
    ]


def test_internal_topics_are_not_written_to(headrace: Headrace, topic: str) -> None:
    headrace("groups", "reset", "first-of-all", "--topic", topic, "--to-latest", "--yes")  # makes the topic of offsets
    refused = headrace("produce", "__consumer_offsets", input="x\n", exit_code=1).stderr
    assert "it is internal: only the broker writes to it" in refused
    named = headrace("consume", "a b", "--from-beginning", exit_code=1).stderr
    assert "no topic can have this name" in named


def test_a_group_continues_where_it_committed(headrace: Headrace, topic: str) -> None:
    headrace("produce", topic, "--partition", "0", input="one\ntwo\nthree\n")
    group = ("--group", f"g-{topic}", "--from-beginning")
    assert headrace("consume", topic, *group, "--max", "2").stdout == "one\ntwo\n"
    assert headrace("consume", topic, *group).stdout == "three\n"
    headrace("produce", topic, "--partition", "0", input="four\n")
    assert headrace("consume", topic, *group).stdout == "four\n"
    assert headrace("consume", topic, *group).stdout == ""
    assert "leave out --offset" in headrace("consume", topic, *group, "--offset", "1", exit_code=2).stderr


def test_a_maximum_that_falls_into_a_batch(headrace: Headrace, broker: EmbeddedBroker, topic: str) -> None:
    """One command prints as many records as it was asked for, and the next one of the group goes on behind them."""
    sizes = (3, 40, 1, 25, 60, 7)
    with Producer(broker.bootstrap_servers, linger_ms=60_000) as producer:
        for number, size in enumerate(sizes):
            for record in range(size):
                producer.send(topic, b"%d.%d" % (number, record), partition=0)
            producer.flush(timeout_ms=60_000)
    sent = [f"{number}.{record}" for number, size in enumerate(sizes) for record in range(size)]
    assert headrace("consume", topic, "--from-beginning", "--max", "50").stdout.splitlines() == sent[:50]
    draw, seen = random.Random(0), list[str]()
    while len(seen) < len(sent):
        limit = draw.randrange(1, 70)
        shown = headrace("consume", topic, "--group", f"g-{topic}", "--from-beginning", "--max", str(limit))
        lines = shown.stdout.splitlines()
        assert 0 < len(lines) <= limit
        seen += lines
    assert seen == sent


class GoneAndBack:
    """A consumer whose broker is gone for a while, longer than the client itself is patient."""

    def __init__(self, *answers: Exception | list[Any]) -> None:
        self.answers = list(answers)

    def poll(self, *, timeout_ms: float, max_records: int) -> list[Any]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def position(self, _partition: TopicPartition) -> int:
        return 0


def test_who_follows_waits_for_a_broker_that_is_gone() -> None:
    record = ConsumerRecord("t", 0, 0, 0, None, b"v", ())
    gone = [BrokerUnreachable("gone"), DeadlineExceeded("too late")]
    shown: list[Any] = []
    _print_records(cast(Any, GoneAndBack(*gone, [record])), shown.extend, ends=None, count_max=1)
    assert shown == [record]
    with pytest.raises(BrokerUnreachable):
        _print_records(cast(Any, GoneAndBack(*gone)), shown.extend, ends={TopicPartition("t", 0): 1}, count_max=None)
