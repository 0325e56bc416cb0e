"""Topics that change under a query that runs: new partitions are read, a recreated topic is noticed."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

from headrace.client import Admin
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.source.test_stream import Collected
from tests.spark.source.topics import load, load_stream, produce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


def started(frame: "DataFrame", seen: Collected, folder: Path) -> "StreamingQuery":
    return frame.writeStream.foreachBatch(seen.take).option("checkpointLocation", str(folder)).start()


def test_a_topic_that_grows_and_is_created_again(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    frame = load_stream(spark, broker, topic, startingOffsets="earliest")
    seen = Collected()
    query = started(frame, seen, tmp_path)
    try:
        produce(broker, topic, [b"two"] * 4)
        query.processAllAvailable()
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_partitions({topic: 3})
        produce(broker, topic, [b"three"] * 2, partition=2)
        while len(seen.rows) < 6:
            query.processAllAvailable()
        assert [row[2:4] for row in seen.rows if row[1] == b"three"] == [(2, 0), (2, 1)]
        broker.delete_topic(topic)
        broker.create_topic(topic, partitions=3)
        with pytest.raises(StreamingQueryException, match="was deleted"):
            query.awaitTermination()
    finally:
        query.stop()


@pytest.mark.parametrize("policy", ["skip-and-report", "earliest"])
def test_a_query_continues_with_a_topic_that_was_created_again(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path, policy: str
) -> None:
    seen = Collected()
    query = started(
        load_stream(spark, broker, topic, startingOffsets="earliest", dataLossPolicy=policy), seen, tmp_path
    )
    try:
        produce(broker, topic, [b"old"] * 4, partition=0)
        query.processAllAvailable()
        broker.delete_topic(topic)
        broker.create_topic(topic, partitions=2)
        query.processAllAvailable()
        produce(broker, topic, [b"new"] * 3, partition=0)
        while sum(row[1] == b"new" for row in seen.rows) < 3:
            query.processAllAvailable()
        assert sorted(row[1] for row in seen.rows) == [b"new"] * 3 + [b"old"] * 4
    finally:
        query.stop()


def test_wrong_options_are_reported_at_load(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    for reading in (load, load_stream):
        with pytest.raises(AnalysisException, match='did you mean "startingOffsets"'):
            reading(spark, broker, topic, startingOffset="latest")
        with pytest.raises(AnalysisException, match="subscribe and assign are given"):
            reading(spark, broker, topic, assign='{"t": [0]}')
