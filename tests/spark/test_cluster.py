"""Spark on three brokers: the source reads from all of them, and the sink commits across them exactly once."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from headrace import Admin, Producer
from headrace.testing import EmbeddedCluster

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 6
RECORDS = 3_000
BATCH_ROWS = 200


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3) as running:
        yield running


@pytest.fixture(scope="module")
def filled(cluster: EmbeddedCluster) -> str:
    """A topic with records on every broker."""
    topic = cluster.create_topic("filled", partitions=PARTITIONS)
    with Producer(cluster.bootstrap_servers) as producer:
        for number in range(RECORDS):
            producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
    with Admin(cluster.bootstrap_servers) as admin:
        (described,) = admin.topics([topic])
    assert {partition.leader for partition in described.partitions} == {1, 2, 3}
    return topic


def load(spark: "SparkSession", cluster: EmbeddedCluster, topic: str, **options: str) -> "DataFrame":
    source = spark.read.format("headrace").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    return source.option("subscribe", topic).options(**options).load()


def numbers(rows: "DataFrame") -> Counter[int]:
    return Counter(int(row.value) for row in rows.collect())


@pytest.mark.parametrize("scan", ["broker", "auto", "direct"])
def test_a_batch_has_the_rows_of_all_brokers(
    spark: "SparkSession", cluster: EmbeddedCluster, filled: str, scan: str
) -> None:
    assert numbers(load(spark, cluster, filled, scan=scan)) == Counter(range(RECORDS))


def test_a_stream_writes_every_row_exactly_once_across_brokers(
    spark: "SparkSession", cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """The driver dies after the sink has committed a batch and before Spark has noted it: the batch is replayed."""
    topic = cluster.create_topic("written", partitions=PARTITIONS)
    folder, checkpoint = tmp_path / "input", tmp_path / "checkpoint"
    folder.mkdir()
    rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json(str(folder)).repartition(2)
    for batch in range(3):
        ids = range(batch * BATCH_ROWS, (batch + 1) * BATCH_ROWS)
        (folder / f"{batch}.json").write_text("".join(f'{{"id": {number}}}\n' for number in ids))
        if batch == 2:
            (checkpoint / "commits" / "1").unlink()
            (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
        query = (
            rows.select(F.col("id").cast("string").alias("key"), F.col("id").cast("string").alias("value"))
            .writeStream.format("headrace")
            .option("kafka.bootstrap.servers", cluster.bootstrap_servers)
            .option("topic", topic)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    written = load(spark, cluster, topic, **{"kafka.isolation.level": "read_committed"})
    assert numbers(written) == Counter(range(3 * BATCH_ROWS))
    assert written.select("partition").distinct().count() == PARTITIONS
