"""`headrace transactions` against a broker."""

import json
from collections.abc import Iterator

import click
import confluent_kafka
import pytest

from headrace.cli.options import complete_groups, complete_topics, complete_transactional_ids
from headrace.cli.transactions import command
from headrace.client import Admin, TopicPartition
from headrace.client.blocking.batch_commits import BatchCommits
from headrace.operations.times import duration_text, parse_duration
from headrace.testing import EmbeddedBroker
from tests.cli.conftest import Headrace, caller, wait_for_completions

pytestmark = pytest.mark.process

WAIT_S = 30


class OpenTransaction:
    """A producer in the middle of a transaction that has written one record to partition 1."""

    def __init__(self, broker: EmbeddedBroker, topic: str) -> None:
        self.id = f"id-{topic}"
        self.producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": self.id, "log_level": 0}
        )
        self.producer.init_transactions(WAIT_S)
        self.producer.begin_transaction()
        self.producer.produce(topic, b"v", partition=1)
        self.producer.flush(WAIT_S)


@pytest.fixture
def opened(broker: EmbeddedBroker, topic: str) -> Iterator[OpenTransaction]:
    opened = OpenTransaction(broker, topic)
    yield opened
    opened.producer.purge()


def test_list(headrace: Headrace, opened: OpenTransaction) -> None:
    rows = [line.split() for line in headrace("transactions", "list", "--open").stdout.splitlines()]
    assert [opened.id, "Ongoing"] in [row[:2] for row in rows]
    (found,) = json.loads(headrace("transactions", "list", "--pattern", opened.id, "--json").stdout)
    assert (found["transactional_id"], found["state"]) == (opened.id, "Ongoing")
    by_producer = ("transactions", "list", "--producer-id", str(found["producer_id"]), "--json")
    assert json.loads(headrace(*by_producer).stdout) == [found]
    assert opened.id not in headrace("transactions", "list", "--longer-than", "1h").stdout
    assert opened.id in headrace("transactions", "list", "--longer-than", "0s").stdout
    assert opened.id not in headrace("transactions", "list", "--state", "completecommit").stdout
    both = headrace("transactions", "list", "--state", "ongoing", "--state", "empty", "--longer-than", "0s").stdout
    assert opened.id in both
    assert opened.id not in headrace("transactions", "list", "--state", "prepareabort", "--open").stdout


def test_describe(headrace: Headrace, opened: OpenTransaction, topic: str) -> None:
    header, row, where = headrace("transactions", "describe", opened.id).stdout.splitlines()
    assert header.split()[:3] == ["TRANSACTIONAL", "ID", "STATE"]
    assert row.split()[:2] == [opened.id, "Ongoing"]
    assert where == f'"{opened.id}": coordinator 1, open in {topic} 1'
    (found,) = json.loads(headrace("transactions", "describe", opened.id, "--json").stdout)
    assert (found["state"], found["partitions"], found["timeout_ms"]) == ("Ongoing", [f"{topic}-1"], 60_000)
    missing = headrace("transactions", "describe", "unknown", exit_code=1)
    assert 'cannot describe transactional id "unknown": it does not exist (headrace transactions list' in missing.stderr


def test_batch_writers(headrace: Headrace, broker: EmbeddedBroker) -> None:
    owner = broker.unused_topic_name("query")
    with BatchCommits(broker.bootstrap_servers) as batch_commits:
        batch_commits.commit_batch(owner, run="r", batch_id=4, writers=[])
        batch_commits.begin_batch_writer(owner, run="r", batch_id=5, task_attempt_id=77)
    first, header, row = headrace("transactions", "batches", owner).stdout.splitlines()
    assert first.startswith(f"{owner}: batch 4 committed, newest run r, ")
    assert header.split()[-2:] == ["LENT", "TO"]
    assert row.split()[:2] == [f"{owner}#0", "Empty"]
    assert row.endswith("attempt 77, batch 5, run r")
    assert "attempt 77, batch 5, run r" in headrace("transactions", "describe", f"{owner}#0").stdout
    (found,) = json.loads(headrace("transactions", "describe", f"{owner}#0", "--json").stdout)
    assert (found["batch_id"], found["run"], found["task_attempt_id"]) == (5, "r", 77)
    told = json.loads(headrace("transactions", "batches", owner, "--json").stdout)
    assert (told["committed_batch_id"], len(told["writers"])) == (4, 1)
    assert "unknown owner" in headrace("transactions", "batches", "unknown", exit_code=1).stderr


def test_abort(headrace: Headrace, opened: OpenTransaction, topic: str) -> None:
    kept = headrace("transactions", "abort", opened.id, input="n\n", exit_code=1)
    assert "abort 1 transaction and fence its producer?" in kept.stderr
    assert headrace("transactions", "abort", opened.id, "--yes").stdout == f'aborted the transaction of "{opened.id}"\n'
    with pytest.raises(confluent_kafka.KafkaException) as fenced:
        opened.producer.commit_transaction(WAIT_S)
    assert fenced.value.args[0].fatal()
    wrong = headrace("transactions", "abort", f"{opened.id}x", "--yes", exit_code=1).stderr
    assert f'cannot abort transactional id "{opened.id}x": it does not exist, did you mean "{opened.id}"?' in wrong
    again = headrace("transactions", "abort", opened.id, "--yes", exit_code=1)
    assert "has no open transaction; its state is Empty (headrace transactions list --open" in again.stderr


def test_wrong_use_says_what_to_do(headrace: Headrace) -> None:
    assert "give transactional ids or --hanging" in headrace("transactions", "abort", exit_code=2).stderr
    assert "--topic requires --hanging" in headrace("transactions", "list", "--topic", "t", exit_code=2).stderr
    assert "only the filter --topic" in headrace("transactions", "list", "--hanging", "--open", exit_code=2).stderr
    for narrower in (("--open",), ("--longer-than", "1s")):
        told = headrace("transactions", "list", "--state", "Empty", *narrower, exit_code=2).stderr
        assert "open transactions have one of the states" in told
    assert "is not a duration: write" in headrace("transactions", "list", "--longer-than", "soon", exit_code=2).stderr
    wrong = headrace("transactions", "list", "--pattern", "(a", exit_code=2).stderr
    assert wrong == 'headrace: the broker refuses --pattern "(a": the expression ends too early\n'


def test_an_open_transaction_with_a_coordinator_does_not_hang(
    headrace: Headrace, opened: OpenTransaction, topic: str
) -> None:
    assert headrace("transactions", "list", "--hanging", "--topic", topic).stdout.startswith("no hanging transactions")
    assert headrace("transactions", "abort", "--hanging", "--topic", topic).stdout.startswith("no hanging transactions")
    opened.producer.commit_transaction(WAIT_S)


def test_what_hangs_is_found_and_aborted() -> None:
    """The coordinator has lost its topic, and with it all it knew of the transaction."""
    with EmbeddedBroker() as broker:
        topic = broker.create_topic("orders", partitions=2)
        opened = OpenTransaction(broker, topic)
        broker.delete_topic("__transaction_state")
        headrace = caller(broker)
        (found,) = json.loads(headrace("transactions", "list", "--hanging", "--json").stdout)
        assert (found["topic"], found["partition"], found["start_offset"]) == (topic, 1, 0)
        assert stable_offset(broker, topic, 1) == 0
        done = headrace("transactions", "abort", "--hanging", "--topic", topic, "--yes").stdout.splitlines()
        assert done[-1] == f"aborted the transaction of producer {found['producer_id']} in {topic}-1"
        assert stable_offset(broker, topic, 1) == 2  # the record and its marker
        assert headrace("transactions", "list", "--hanging").stdout.startswith("no hanging transactions")
        opened.producer.purge()


def stable_offset(broker: EmbeddedBroker, topic: str, partition: int) -> int:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "isolation.level": "read_committed"}
    )
    part = confluent_kafka.TopicPartition(topic, partition)
    end = consumer.get_watermark_offsets(part, timeout=WAIT_S)[1]
    consumer.close()
    return end


def test_shells_complete_ids(broker: EmbeddedBroker, opened: OpenTransaction, monkeypatch: pytest.MonkeyPatch) -> None:
    context = click.Context(command)
    argument = click.Argument(["ids"])
    context.params["bootstrap"] = broker.bootstrap_servers
    with monkeypatch.context() as patch:
        wait_for_completions(patch)
        assert complete_transactional_ids(context, argument, opened.id[:-1]) == [opened.id]
    context.params["bootstrap"] = "127.0.0.1:1"
    assert complete_transactional_ids(context, argument, "") == []


def test_shells_complete_topics_and_groups(
    broker: EmbeddedBroker, topic: str, opened: OpenTransaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_completions(monkeypatch)
    context = click.Context(command)
    argument = click.Argument(["names"])
    context.params["bootstrap"] = broker.bootstrap_servers
    with Admin(broker.bootstrap_servers) as admin:
        admin.commit_group_offsets(f"readers-of-{topic}", {TopicPartition(topic, 0): 0})
    assert complete_groups(context, argument, "readers-of-") == [f"readers-of-{topic}"]
    assert topic in complete_topics(context, argument, "")
    assert not any(name.startswith("__") for name in complete_topics(context, argument, ""))
    assert "__transaction_state" in complete_topics(context, argument, "_")


def test_durations() -> None:
    assert [parse_duration(text) for text in ("500ms", "90s", "15m", "2h", "7d")] == [
        500,
        90_000,
        900_000,
        7_200_000,
        604_800_000,
    ]
    shown = [duration_text(each) for each in (0, 999, 1_000, 90_000, 900_000, 5_400_000, 604_800_000)]
    assert shown == ["0 ms", "999 ms", "1 s", "1.5 min", "15 min", "1.5 h", "7 d"]
