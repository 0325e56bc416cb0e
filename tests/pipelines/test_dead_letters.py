"""Dead letters that are sent again: which are left, the effect of a rewind, and headers that any writer may set."""

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.client import Producer
from headrace.client.blocking.whole_topics import read_topic
from headrace.client.errors import ClientError
from headrace.spark.pipelines.dead_letters import REPLAYED_HEADER, DeadLetters, ReplayResult, reason_of
from headrace.testing import EmbeddedBroker

pytestmark = pytest.mark.process

TIME_MS = 1_700_000_000_000
REASONS = ("the value is null", "field user_id is missing", "field amount is missing")
PIPELINE = """\
name: shop
source: {topic: orders, format: json, schema: "id INT"}
bad_records: {topic: dead}
sink: {topic: clean}
"""


def has_reason(text: str, letter: Any) -> bool:
    return text in reason_of(letter)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as started:
        yield started


@pytest.fixture
def settings(broker: EmbeddedBroker) -> Iterator[dict[str, Any]]:
    """A broker with empty topics `orders` and `dead`."""
    for topic in ("orders", "dead"):
        broker.create_topic(topic, partitions=2)
    yield {"bootstrap.servers": broker.bootstrap_servers}
    for topic in ("orders", "dead"):
        broker.delete_topic(topic)


def write_letters(settings: dict[str, Any], reasons: list[str], *, pipeline: str = "shop") -> None:
    """Letter n is of offset n // 2 of partition n % 2 of `orders`, and lies in the same partition."""
    with Producer(config=settings) as producer:
        for number, reason in enumerate(reasons):
            told = {"pipeline": pipeline, "reason": reason, "topic": "orders", "partition": str(number % 2)}
            told["offset"] = str(number // 2)
            headers = [(f"hr-dead-{name}", text.encode()) for name, text in told.items()]
            producer.send("dead", b"%d" % number, headers=headers, partition=number % 2)


def sent_values(settings: dict[str, Any]) -> list[int]:
    return sorted(int(record.value or b"-1") for record in read_topic(settings, "orders"))


@pytest.mark.parametrize("seed", range(4))
def test_letters_that_are_not_chosen_stay_until_they_are(
    settings: dict[str, Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.spark.pipelines.dead_letters.LETTERS_PER_TRANSACTION", 7)
    monkeypatch.setattr("headrace.spark.pipelines.letter_states.CHUNK_OFFSETS", 8)
    numbers = random.Random(seed)
    reasons = [numbers.choice(REASONS) for _ in range(60)]
    write_letters(settings, reasons)
    left = set(range(60))
    for step in range(8):
        box = DeadLetters(settings=settings, pipeline="shop", topic="dead")
        wanted, limit = numbers.choice(REASONS), numbers.choice([None, 1, 5])
        if step == 7:
            wanted, limit = "", None
        chosen = {number for number in left if wanted in reasons[number]}
        found = box.replay(partial(has_reason, wanted), limit=limit)
        assert found.sent == (len(chosen) if limit is None else min(limit, len(chosen)))
        sent = sent_values(settings)
        assert len(sent) == len(set(sent)), "a letter was sent twice"
        left = set(range(60)) - set(sent)
        assert found.sent == 0 or not left & chosen or limit is not None
        assert {int(each.record.value or b"") for each in box.letters() if not each.is_sent} == left
    assert not left


def test_a_letter_of_another_pipeline_is_left_alone(settings: dict[str, Any]) -> None:
    write_letters(settings, [REASONS[0]] * 3, pipeline="other")
    found = DeadLetters(settings=settings, pipeline="shop", topic="dead").replay(lambda _letter: True)
    assert found == ReplayResult()
    assert DeadLetters(settings=settings, pipeline="other", topic="dead").replay(lambda _letter: True).sent == 3


def test_a_topic_that_is_made_again_has_letters_that_were_never_sent(
    broker: EmbeddedBroker, settings: dict[str, Any]
) -> None:
    for _ in range(2):
        write_letters(settings, list(REASONS) * 2)
        box = DeadLetters(settings=settings, pipeline="shop", topic="dead")
        assert box.replay(lambda letter: "user_id" in reason_of(letter)).sent == 2
        broker.delete_topic("dead")
        broker.create_topic("dead", partitions=2)


def test_the_command_lists_tries_and_sends_by_reason(settings: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text(PIPELINE)
    write_letters(settings, [REASONS[1]] * 10 + [REASONS[2]] * 50)
    call = ["pipeline", "replay-dlq", str(tmp_path), "--json", "--bootstrap", settings["bootstrap.servers"]]

    def ask(*more: str) -> Any:
        done = CliRunner().invoke(cli, [*call, *more], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    tried = {"sent": 10, "passed_over": 50, "before_rewind": 0, "reasons": {REASONS[1]: 10}}
    assert ask("--reason", "user_id", "--dry-run") == tried
    assert sent_values(settings) == []
    assert ask("--reason", "user_id") == {"sent": 10, "passed_over": 50, "before_rewind": 0}
    assert [(each["reason"], each["left"], each["letters"]) for each in ask("--list")] == [
        (REASONS[2], 50, 50), (REASONS[1], 0, 10),
    ]  # fmt: skip
    assert ask("--reason", "amount")["sent"] == 50
    assert ask() == {"sent": 0, "passed_over": 0, "before_rewind": 0}
    assert sent_values(settings) == list(range(60))


def test_a_rewind_and_a_replay_say_that_a_record_would_be_read_with_its_letter(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "pipeline.yml").write_text(PIPELINE)
    with Producer(config=settings) as producer:
        for number in range(4):
            producer.send("orders", b"%d" % number, partition=number % 2)
    write_letters(settings, [REASONS[1], REASONS[1], REASONS[2], REASONS[2]])
    more = [str(tmp_path), "--bootstrap", settings["bootstrap.servers"]]
    sent = CliRunner().invoke(cli, ["pipeline", "replay-dlq", *more, "--reason", "user_id"], catch_exceptions=False)
    assert sent.stdout == "sent 2 letters again, left 2 for later\n"
    rewound = CliRunner().invoke(cli, ["pipeline", "rewind", *more, "--to-earliest", "--yes"], catch_exceptions=False)
    assert "2 dead letters after this start were sent back to their topics" in rewound.stderr
    sent = CliRunner().invoke(cli, ["pipeline", "replay-dlq", *more], catch_exceptions=False)
    assert sent.stdout == "sent 0 letters again, left 0 for later\n"
    assert "2 letters from before the last rewind were not sent" in sent.stderr
    sent = CliRunner().invoke(cli, ["pipeline", "replay-dlq", *more, "--rewound"], catch_exceptions=False)
    assert sent.stdout == "sent 2 letters again, left 0 for later\n"
    latest = CliRunner().invoke(cli, ["pipeline", "rewind", *more, "--to-latest", "--yes"], catch_exceptions=False)
    assert "dead letter" not in latest.output


def test_before_the_first_run_there_are_no_letters() -> None:
    with EmbeddedBroker() as broker:
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        with pytest.raises(ClientError, match='no dead letters yet: the first run creates topic "orders-dead"'):
            DeadLetters(settings=settings, pipeline="shop", topic="orders-dead")


def test_headers_that_look_like_ours_hold_up_no_letter() -> None:
    with EmbeddedBroker() as broker:
        for topic in ("orders", "dead"):
            broker.create_topic(topic)
        strange = [b"", b"twice", b"\xff", b"9" * 5_000, None, b"3"]
        with Producer(broker.bootstrap_servers) as producer:
            for number, times in enumerate(strange):
                ours = [("hr-dead-topic", b"orders"), ("hr-dead-timestamp", b"%d" % TIME_MS)]
                producer.send("dead", b"%d" % number, headers=[("own", b"x"), (REPLAYED_HEADER, times), *ours])
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        found = DeadLetters(settings=settings, pipeline="p", topic="dead").replay(lambda _letter: True)
        assert found == ReplayResult(sent=len(strange))
        records = list(read_topic(settings, "orders"))
    assert [record.value for record in records] == [b"%d" % number for number in range(len(strange))]
    assert {record.timestamp for record in records} == {TIME_MS}
    counted = [dict(record.headers)[REPLAYED_HEADER] for record in records]
    assert counted == [b"1"] * (len(strange) - 1) + [b"4"]
