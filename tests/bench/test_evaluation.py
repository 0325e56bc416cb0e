"""Evaluation runs while brokers go away, records are odd, and nothing comes."""

import threading
from pathlib import Path

import pytest

from headrace.bench import evaluation
from headrace.bench.errors import BenchError
from headrace.bench.evaluation import ProducerOutcome, run_consumers, run_producers
from headrace.bench.topics import create_topics
from headrace.client import Producer, TopicPartition
from headrace.testing import EmbeddedBroker

pytestmark = pytest.mark.process

DELIVERY_TIMEOUT_MS = 1_000
WAIT_S_MAX = 60.0
MESSAGES = 200


def test_producers_end_and_tell_of_the_gap_when_their_broker_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message was once waited for as long as the client tries, for every message that was due."""
    monkeypatch.setattr(evaluation, "DELIVERY_TIMEOUT_MS", DELIVERY_TIMEOUT_MS)
    monkeypatch.setattr("headrace.client.blocking.producer.CLOSE_TIMEOUT_MS", 100)
    is_acknowledged, is_gone, send = threading.Event(), threading.Event(), evaluation._Sender._send

    def send_while_it_goes(sender: evaluation._Sender, producer: Producer, topic: str, number: int) -> bool:
        assert number < MESSAGES // 2 or is_gone.wait(WAIT_S_MAX), "half of them are for after its end"
        if is_sent := send(sender, producer, topic, number):
            is_acknowledged.set()
        return is_sent

    monkeypatch.setattr(evaluation._Sender, "_send", send_while_it_goes)
    found: list[ProducerOutcome] = []
    with EmbeddedBroker() as own:
        address = own.bootstrap_servers
        create_topics(address, ["gone"], partitions=1)
        arguments = {"producers": 1, "interval_ms": 1000 / MESSAGES, "seconds": 1.0}
        running = threading.Thread(target=lambda: found.extend(run_producers(address, "gone", **arguments)[0]))
        running.start()
        assert is_acknowledged.wait(WAIT_S_MAX)
    is_gone.set()
    running.join(WAIT_S_MAX)
    assert not running.is_alive()
    (outcome,) = found
    assert outcome.acknowledged >= 1
    assert 1 <= outcome.failed < MESSAGES
    assert outcome.first_failure
    assert outcome.longest_gap_ms >= DELIVERY_TIMEOUT_MS


def test_who_was_never_answered_has_no_percentiles() -> None:
    outcome = evaluation._Sender(3).outcome()
    assert (outcome.producer, outcome.acknowledged, outcome.p50_us, outcome.p99_us) == (3, 0, None, None)


def test_every_record_is_one_line(embedded: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    create_topics(embedded.bootstrap_servers, [topic], partitions=1)
    with Producer(embedded.bootstrap_servers) as producer:
        for value in (b"two\nlines", b"back\\slash", b"", None):
            producer.send(topic, value, timestamp=7)
    outcomes, is_done = run_consumers(embedded.bootstrap_servers, topic, consumers=1, folder=tmp_path, seconds=0)
    assert is_done
    assert (outcomes[0].records, outcomes[0].failures) == (4, 0)
    lines = (tmp_path / "consumer-0.txt").read_text().splitlines()
    assert lines == ["0 0 7 - two\\nlines", "0 1 7 - back\\\\slash", "0 2 7 - ", "0 3 7 - -"]


def test_a_consumer_that_waits_in_vain_ends_all(
    embedded: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topics(embedded.bootstrap_servers, [topic], partitions=2)
    monkeypatch.setattr(evaluation, "SILENCE_SECONDS_MAX", 0.3)
    monkeypatch.setattr(evaluation, "_ends", lambda *_: {TopicPartition(topic, 0): 5, TopicPartition(topic, 1): 5})
    with pytest.raises(BenchError, match="has received nothing"):
        run_consumers(embedded.bootstrap_servers, topic, consumers=2, folder=tmp_path, seconds=0)


def test_a_folder_that_cannot_be_made_is_reported(embedded: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    create_topics(embedded.bootstrap_servers, [topic], partitions=1)
    (tmp_path / "file").write_text("")
    with pytest.raises(BenchError, match="cannot be written to: Not a directory"):
        run_consumers(embedded.bootstrap_servers, topic, consumers=1, folder=tmp_path / "file" / "in", seconds=0)
