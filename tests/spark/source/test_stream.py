"""Streams: every record once, in limited bites, over restarts and replays, with progress that others can see."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace.client import Admin, TopicPartition
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.source.topics import as_columns, consume, load_stream, produce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

PROGRESS_SECONDS_MAX = 300


class Collected:
    """The rows of each batch; a batch that is replayed replaces itself and is compared with what it was."""

    def __init__(self) -> None:
        self.batches: dict[int, list] = {}
        self.replayed: list[int] = []

    def take(self, rows: "DataFrame", batch_id: int) -> None:
        found = as_columns(rows.collect())
        if batch_id in self.batches:
            assert self.batches[batch_id] == found, "a replay gave other rows"
            self.replayed.append(batch_id)
        self.batches[batch_id] = found

    @property
    def rows(self) -> list:
        return sorted((row for each in self.batches.values() for row in each), key=lambda each: each[2:4])

    def sizes(self) -> list[int]:
        return [len(self.batches[each]) for each in sorted(self.batches)]


def run_available(frame: "DataFrame", checkpoint: Path, take: Callable[..., Any]) -> "StreamingQuery":
    """All that is there now, then the query ends."""
    query = (
        frame.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(PROGRESS_SECONDS_MAX)
    return query


def test_available_now_reads_all_once_in_limited_bites_and_continues_later(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    produce(broker, topic, [b"%d" % each for each in range(100)])
    frame = load_stream(spark, broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger=40, commitGroup="bites")
    seen = Collected()
    run_available(frame, tmp_path, seen.take)
    assert seen.rows == consume(broker, topic)
    assert len(seen.batches) >= 3
    assert max(seen.sizes()) <= 40
    produce(broker, topic, [b"more"] * 7)
    before = len(seen.batches)
    run_available(frame, tmp_path, seen.take)
    assert seen.rows == consume(broker, topic)
    assert sum(seen.sizes()[before:]) == 7
    with Admin(broker.bootstrap_servers) as admin:
        ends = {each: at.offset for each, at in admin.offsets(dict.fromkeys(_places(topic), -1)).items()}
        assert {each: at.offset for each, at in admin.group_offsets("bites").items()} == ends


def test_a_replayed_first_batch_that_began_at_the_end_reads_the_same(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    """Spark asks for the initial offset again at a replay, when "latest" is elsewhere."""
    produce(broker, topic, [b"before"] * 5)
    frame = load_stream(spark, broker, topic, startingOffsets="latest")
    seen = Collected()
    run_available(frame, tmp_path, seen.take)
    assert seen.rows == []
    produce(broker, topic, [b"between"] * 4)
    shutil.rmtree(tmp_path / "commits")
    run_available(frame, tmp_path, seen.take)
    assert seen.replayed == [0]
    assert [row[1] for row in seen.rows] == [b"between"] * 4


def test_any_batch_is_replayed_with_the_same_rows(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    produce(broker, topic, [b"%d" % each for each in range(60)])
    frame = load_stream(spark, broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger=25, minPartitions=3)
    seen = Collected()
    run_available(frame, tmp_path, seen.take)
    last = max(seen.batches)
    for entry in (str(last), f".{last}.crc"):
        (tmp_path / "commits" / entry).unlink()
    produce(broker, topic, [b"later"] * 5)
    run_available(frame, tmp_path, seen.take)
    assert last in seen.replayed
    assert seen.rows == consume(broker, topic)


def test_partitions_and_topics_that_are_added_are_read_from_their_beginning(
    spark: "SparkSession", broker: EmbeddedBroker, tmp_path: Path
) -> None:
    first = broker.create_topic("growing-1", partitions=1)
    produce(broker, first, [b"a"] * 3)
    frame = load_stream(spark, broker, subscribePattern="growing-.*", startingOffsets="earliest")
    seen = Collected()
    run_available(frame, tmp_path, seen.take)
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_partitions({first: 2})
    second = broker.create_topic("growing-2", partitions=1)
    produce(broker, first, [b"b"] * 2, partition=1)
    produce(broker, second, [b"c"] * 2)
    run_available(frame, tmp_path, seen.take)
    assert sorted(row[1] for row in seen.rows) == [b"a"] * 3 + [b"b"] * 2 + [b"c"] * 2
    for name in (first, second):
        broker.delete_topic(name)


def test_a_checkpoint_of_the_kafka_connector_is_continued(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    for partition in range(2):
        produce(broker, topic, [b"%d" % each for each in range(10)], partition=partition)
    frame = load_stream(spark, broker, topic, startingOffsets="earliest")
    run_available(frame, tmp_path, Collected().take)
    connectors = json.dumps({topic: {"1": 4, "0": 8}})
    for entry in (tmp_path / "offsets").iterdir():
        if entry.name.isdecimal():
            version, metadata, _offset = entry.read_text().split("\n")
            entry.write_text("\n".join((version, metadata, connectors)))
    for checksum in (tmp_path / "offsets").glob(".*.crc"):
        checksum.unlink()
    seen = Collected()
    run_available(frame, tmp_path, seen.take)
    assert [(row[2], row[3]) for row in seen.rows] == [(0, 8), (0, 9), *((1, each) for each in range(4, 10))]


def test_a_running_query_waits_for_enough_records_or_long_enough(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    frame = load_stream(spark, broker, topic, startingOffsets="earliest", minOffsetsPerTrigger=20, maxTriggerDelay="1h")
    seen = Collected()
    query = frame.writeStream.foreachBatch(seen.take).option("checkpointLocation", str(tmp_path)).start()
    try:
        query.processAllAvailable()
        produce(broker, topic, [b"few"] * 19)
        produce(broker, topic, [b"enough"])
        query.processAllAvailable()
        assert [size for size in seen.sizes() if size] == [20]
    finally:
        query.stop()


def test_bytes_limit_a_batch(spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    for _ in range(10):
        produce(broker, topic, [bytes(1000)] * 10, partition=0)
    frame = load_stream(spark, broker, topic, startingOffsets="earliest", maxBytesPerTrigger=40_000)
    seen = Collected()
    run_available(frame, tmp_path, seen.take)
    assert sum(seen.sizes()) == 100
    assert 30 <= max(seen.sizes()) <= 40


@pytest.mark.parametrize("wanted", ["startOffset", "endOffset", "latestOffset"])
def test_progress_names_offsets_as_the_connector_does(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path, wanted: str
) -> None:
    produce(broker, topic, [b"x"] * 4, partition=1)
    frame = load_stream(spark, broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger=3)
    query = run_available(frame, tmp_path, Collected().take)
    source = query.recentProgress[-1].sources[0]
    expected = {"startOffset": 3, "endOffset": 4, "latestOffset": 4}
    told = json.loads(getattr(source, wanted))
    # A listener of the connector's offsets goes through topics and their partitions: what is added has none.
    assert {name: found for name, found in told.items() if found != {}} == {topic: {"0": 0, "1": expected[wanted]}}


def _places(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, each) for each in range(2)]
