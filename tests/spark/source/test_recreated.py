"""A topic that is deleted and created again between the planning of a batch and its reading: without Spark."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import BinaryType, StructField, StructType

from headrace.spark import stream_planner
from headrace.spark.batch_reader import batch_reader
from headrace.spark.data_loss import DataLost
from headrace.spark.range_reader import close_fetchers
from headrace.spark.source_options import parse_source_options
from headrace.spark.stream_reader import StreamReader
from headrace.spark.topic_view import TopicView
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.source.topics import produce

pytestmark = pytest.mark.process

SCHEMA = StructType([StructField("value", BinaryType())])
Read = Callable[[], list[Any]]
PLANS = ("stream", "broker", "auto", "direct")


@pytest.fixture(autouse=True)
def fetchers() -> Iterator[None]:
    yield
    close_fetchers()


def planned(broker: EmbeddedBroker, topic: str, kind: str, policy: str) -> Read:
    """A batch of all that there is, planned now and read when it is called."""
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, "columns": "value"}
    given |= {"dataLossPolicy": policy, "startingOffsets": "earliest"}
    if kind == "stream":
        stream = StreamReader(parse_source_options(given), SCHEMA)
        begin = stream.initialOffset()
        pieces = stream.partitions(begin, stream.latestOffset(begin, ReadAllAvailable()))
        stream.stop()
        reading = stream.read
    else:
        batch = batch_reader(parse_source_options({**given, "scan": kind}), SCHEMA)
        pieces, reading = batch.partitions(), batch.read
    return lambda: [value for piece in pieces for rows in reading(piece) for value in rows.column("value").to_pylist()]


def recreate(broker: EmbeddedBroker, topic: str, value: bytes) -> None:
    broker.delete_topic(topic)
    broker.create_topic(topic, partitions=2)
    produce(broker, topic, [value] * 5, partition=1)


@pytest.mark.parametrize("kind", ["stream", "broker", "auto"])
def test_another_topic_of_the_same_name_never_stands_in(
    broker: EmbeddedBroker, topic: str, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    produce(broker, topic, [b"old"] * 5, partition=1)
    strict, lenient = (planned(broker, topic, kind, policy) for policy in ("fail", "earliest"))
    recreate(broker, topic, b"new")
    with pytest.raises(DataLost, match=rf"{topic}-1 offsets 0 to 4 \(the topic was deleted and created again while"):
        strict()
    assert lenient() == []
    assert f"{topic}-1 offsets 0 to 4" in capsys.readouterr().err


def test_files_that_are_lent_are_those_of_the_older_topic(broker: EmbeddedBroker, topic: str) -> None:
    produce(broker, topic, [b"old"] * 5, partition=1)
    read = planned(broker, topic, "direct", "fail")
    recreate(broker, topic, b"new")
    assert read() == [b"old"] * 5


@pytest.mark.parametrize("kind", PLANS)
def test_a_worker_that_knows_the_older_topic_reads_the_newer(broker: EmbeddedBroker, topic: str, kind: str) -> None:
    produce(broker, topic, [b"old"] * 5, partition=1)
    assert planned(broker, topic, "broker", "fail")() == [b"old"] * 5
    recreate(broker, topic, b"new")
    assert planned(broker, topic, kind, "fail")() == [b"new"] * 5


@pytest.mark.parametrize("policy", ["fail", "earliest"])
def test_a_topic_created_again_while_a_batch_is_planned_is_reported_as_such(
    broker: EmbeddedBroker,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    policy: str,
) -> None:
    """The brokers' answer about the topics is the old one's, and the offsets are the new one's."""
    monkeypatch.setattr(stream_planner, "BACKWARDS_PAUSE_MS", 0)
    produce(broker, topic, [b"old"] * 9, partition=1)
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, "columns": "value"}
    options = parse_source_options({**given, "dataLossPolicy": policy, "startingOffsets": "earliest"})
    stream = StreamReader(options, SCHEMA)
    before = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    usual, old = TopicView.topics, [stream._planning()._view.topics()]
    recreate(broker, topic, b"new")
    monkeypatch.setattr(TopicView, "topics", lambda view: old.pop() if old else usual(view))
    told = f'topic "{topic}" was deleted and created again'
    if policy == "fail":
        with pytest.raises(DataLost, match=told):
            stream.latestOffset(before, ReadAllAvailable())
    else:
        pieces = stream.partitions(before, stream.latestOffset(before, ReadAllAvailable()))
        values = [
            value for piece in pieces for rows in stream.read(piece) for value in rows.column("value").to_pylist()
        ]
        assert values == [b"new"] * 5
        assert told in capsys.readouterr().err
    stream.stop()
