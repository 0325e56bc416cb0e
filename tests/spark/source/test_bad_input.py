"""Trouble around a source: an error that names the option and the exact loss, or the policy that was chosen."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.client import Admin, TopicPartition
from headrace.testing.embedded import EmbeddedBroker
from tests.reserved_ports import reserved_address
from tests.spark.source.test_stream import Collected, run_available
from tests.spark.source.topics import consume, load, load_stream, produce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POLICIES_THAT_GO_ON = ("skip-and-report", "earliest")


@pytest.fixture
def read_once(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> Callable[[str], tuple["DataFrame", Collected]]:
    """A query that has read ten records of the first partition and ended."""

    def begun(policy: str) -> tuple["DataFrame", Collected]:
        produce(broker, topic, [b"old %d" % each for each in range(10)], partition=0)
        frame = load_stream(spark, broker, topic, startingOffsets="earliest", dataLossPolicy=policy)
        seen = Collected()
        run_available(frame, tmp_path, seen.take)
        assert len(seen.rows) == 10
        return frame, seen

    return begun


def values(seen: Collected) -> list:
    return sorted(row[1] for row in seen.rows if not row[1].startswith(b"old"))


def test_a_topic_that_does_not_exist_is_named(spark: "SparkSession", broker: EmbeddedBroker, tmp_path: Path) -> None:
    wanted = r'option "subscribe" names "no-such-topic", which does not exist'
    with pytest.raises(Exception, match=wanted):
        load(spark, broker, "no-such-topic").collect()
    with pytest.raises(Exception, match=wanted):
        run_available(load_stream(spark, broker, "no-such-topic"), tmp_path, Collected().take)


def test_partitions_that_do_not_exist_are_named(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    with pytest.raises(Exception, match=f'option "assign" names "{topic}-7"'):
        load(spark, broker, assign=json.dumps({topic: [0, 7]})).collect()
    with pytest.raises(Exception, match=f'option "startingOffsets" lacks {topic}-1'):
        load(spark, broker, topic, startingOffsets=json.dumps({topic: {"0": 0}})).collect()
    ends = json.dumps({topic: {"0": 0, "1": 0, "9": 0}})
    with pytest.raises(Exception, match=f'option "endingOffsets" names {topic}-9'):
        load(spark, broker, topic, endingOffsets=ends).collect()


def test_offsets_that_contradict_each_other(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    produce(broker, topic, [b"v"] * 5, partition=0)
    beyond = json.dumps({topic: {"0": 50, "1": 0}})
    with pytest.raises(Exception, match='"startingOffsets" and "endingOffsets" contradict each other'):
        load(spark, broker, topic, startingOffsets=beyond).collect()
    with pytest.raises(Exception, match='"startingOffsets" cannot be latest'):
        load(spark, broker, topic, startingOffsets="latest").collect()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"endingOffsets": "latest"}, 'option "endingOffsets" is only for batch reads'),
        ({"scan": "direct"}, r'option "scan" \(direct\) is only for batch reads'),
        ({"pushdown": True}, 'option "pushdown" is only for batch reads'),
        ({"startingOffsets": "{topic: {'0': 99}}"}, 'option "startingOffsets"'),
    ],
)
def test_a_stream_says_what_is_wrong_with_its_options(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path, options: dict, words: str
) -> None:
    with pytest.raises(Exception, match=words):
        run_available(load_stream(spark, broker, topic, **options), tmp_path, Collected().take)


def test_a_start_behind_the_end_is_named(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    start = json.dumps({topic: {"0": 99, "1": 0}})
    frame = load_stream(spark, broker, topic, startingOffsets=start)
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(Exception, match=f'option "startingOffsets" starts {topic}-0 at offset 99'):
        query.processAllAvailable()


def test_a_schema_of_the_users_own_is_refused(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    reader = spark.read.format("headrace").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    with pytest.raises(Exception, match='use option "schema"'):
        reader.option("subscribe", topic).schema("a INT").load().collect()


def test_lost_records_are_named_exactly(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    produce(broker, topic, [b"%d" % each for each in range(30)], partition=0)
    _delete(broker, topic, 12)
    start = json.dumps({topic: {"0": 5, "1": 0}})
    with pytest.raises(Exception, match=rf"lost before they were read: {topic}-0 offsets 5 to 11 .*dataLossPolicy"):
        load(spark, broker, topic, startingOffsets=start).collect()
    for policy in POLICIES_THAT_GO_ON:
        found = load(spark, broker, topic, startingOffsets=start, dataLossPolicy=policy).collect()
        assert sorted(row.offset for row in found) == list(range(12, 30))
    quiet = load(spark, broker, topic, startingOffsets=start, failOnDataLoss=False).collect()
    assert len(quiet) == 18


def test_retention_passes_a_stopped_query(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, read_once: Callable
) -> None:
    frame, seen = read_once("fail")
    produce(broker, topic, [b"new %d" % each for each in range(10)], partition=0)
    _delete(broker, topic, 13)
    with pytest.raises(Exception, match=f"{topic}-0 offsets 10 to 12"):
        run_available(frame, tmp_path, seen.take)


def test_a_deleted_topic(broker: EmbeddedBroker, topic: str, tmp_path: Path, read_once: Callable) -> None:
    frame, seen = read_once("fail")
    broker.delete_topic(topic)
    with pytest.raises(Exception, match=f"{topic}-0 from offset 10 on, .* cannot be read any more, because .* deleted"):
        run_available(frame, tmp_path, seen.take)


@pytest.mark.parametrize(("policy", "expected"), [("fail", None), ("skip-and-report", []), ("earliest", [b"new"] * 12)])
def test_a_topic_that_was_created_again(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, read_once: Callable, policy: str, expected: list | None
) -> None:
    frame, seen = read_once(policy)
    broker.delete_topic(topic)
    broker.create_topic(topic, partitions=2)
    produce(broker, topic, [b"new"] * 12, partition=0)
    if expected is None:
        with pytest.raises(Exception, match=f'topic "{topic}" was deleted and created again.*from offset 10 on'):
            run_available(frame, tmp_path, seen.take)
        return
    run_available(frame, tmp_path, seen.take)
    assert values(seen) == expected
    produce(broker, topic, [b"later"], partition=0)
    run_available(frame, tmp_path, seen.take)
    assert values(seen) == [b"later", *expected]


def test_a_checkpoint_of_another_query_is_reported(broker: EmbeddedBroker, tmp_path: Path, read_once: Callable) -> None:
    frame, seen = read_once("fail")
    for entry in (tmp_path / "offsets").iterdir():
        if entry.name.startswith("."):
            entry.unlink()
        elif entry.name.isdecimal():
            version, metadata, _offset = entry.read_text().split("\n")
            entry.write_text("\n".join((version, metadata, "17")))
    with pytest.raises(Exception, match="checkpoint of another query"):
        run_available(frame, tmp_path, seen.take)


def test_a_checkpoint_that_cannot_be_written_is_named(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(Exception, match=r"not a directory: file:.*/file"):
        run_available(load_stream(spark, broker, topic), tmp_path / "file" / "checkpoint", Collected().take)


def test_a_broker_that_comes_back_is_waited_for(spark: "SparkSession", tmp_path: Path) -> None:
    folder, config = str(tmp_path / "data"), {"listeners": f"PLAINTEXT://{reserved_address()}"}
    with EmbeddedBroker(data_dir=folder, config=config) as first:
        topic = first.create_topic("waited-for", partitions=2)
        produce(first, topic, [b"before"] * 5)
        frame = load_stream(spark, first, topic, startingOffsets="earliest")
        seen = Collected()
        query = frame.writeStream.foreachBatch(seen.take).option("checkpointLocation", str(tmp_path / "c")).start()
        query.processAllAvailable()
    try:
        assert query.isActive
        with EmbeddedBroker(data_dir=folder, config=config) as second:
            produce(second, topic, [b"after"] * 5)
            query.processAllAvailable()
            assert seen.rows == consume(second, topic)
            query.stop()
    finally:
        query.stop()


def test_a_broker_that_stays_away_is_reported(spark: "SparkSession", broker: EmbeddedBroker) -> None:
    reader = spark.read.format("headrace").option("kafka.bootstrap.servers", "127.0.0.1:9")
    with pytest.raises(Exception, match=r"cannot reach 127\.0\.0\.1:9"):
        reader.option("subscribe", "t").option("kafkaConsumer.pollTimeoutMs", "500").load().collect()


def _delete(broker: EmbeddedBroker, topic: str, below: int) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        assert not admin.delete_records({TopicPartition(topic, 0): below})[TopicPartition(topic, 0)].error
