"""The connector's records are in the topic as they should be, and where this project's sink would put them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat.spark_connector.rows import FORMATS, PARTITIONS, TOPIC, reader, rows_of
from headrace.testing import EmbeddedBroker
from tests.spark.source.topics import consume

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 500
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


def made_up(spark: "SparkSession") -> "DataFrame":
    """Keys, values that may be missing, and headers."""
    return spark.range(ROWS).selectExpr(
        "cast(concat('key ', id) as binary) as key",
        "if(id % 7 = 3, null, cast(concat('value ', id) as binary)) as value",
        "array(struct('number' as key, cast(cast(id as string) as binary) as value)) as headers",
    )


def write_both(frame: Any, broker: EmbeddedBroker, **options: str) -> list[list[Any]]:
    """Into a topic of each; what a consumer finds there, without offsets and times."""
    found = []
    for form in FORMATS:
        topic = broker.create_topic(broker.unused_topic_name(f"written-{form}"), partitions=PARTITIONS)
        writer = frame.write.format(form).option("kafka.bootstrap.servers", broker.bootstrap_servers)
        writer.option("topic", topic).options(**options).mode("append").save()
        rows = consume(broker, topic, partitions=range(PARTITIONS))
        found.append(sorted((row[2], row[0], row[1] or b"", row[5]) for row in rows))
    return found


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_both_put_the_same_rows_into_the_same_partitions(
    spark: "SparkSession", broker: EmbeddedBroker, compression: str
) -> None:
    kafka, headrace = write_both(made_up(spark), broker, **{"kafka.compression.type": compression})
    assert len(kafka) == ROWS
    assert headrace == kafka


def test_a_column_chooses_the_partition(spark: "SparkSession", broker: EmbeddedBroker) -> None:
    frame = made_up(spark).selectExpr("*", f"cast(crc32(key) % {PARTITIONS} as int) as partition")
    kafka, headrace = write_both(frame, broker)
    assert len({row[0] for row in kafka}) == PARTITIONS
    assert headrace == kafka


def test_the_connector_writes_a_stream(spark: "SparkSession", broker: EmbeddedBroker, tmp_path: Path) -> None:
    whole = {"subscribe": TOPIC, "includeHeaders": "true", "kafka.isolation.level": "read_uncommitted"}
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "50", **whole}
    copied = broker.create_topic(broker.unused_topic_name("copied"), partitions=PARTITIONS)
    frame = reader(spark.readStream, "kafka", broker, options).load().select("key", "value", "headers", "partition")
    query = (
        frame.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("topic", copied)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    wanted = rows_of(reader(spark.read, "headrace", broker, whole).load())
    found = rows_of(reader(spark.read, "headrace", broker, {**whole, "subscribe": copied}).load())
    assert [(row[3], row[0], row[1], row[7]) for row in found] == [(row[3], row[0], row[1], row[7]) for row in wanted]


def test_the_connector_reads_what_headrace_wrote_exactly_once(
    spark: "SparkSession", broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """Markers and borrowed identities of batch commits do not disturb it."""
    topic = broker.create_topic(broker.unused_topic_name("batches"), partitions=PARTITIONS)
    options = {"subscribe": TOPIC, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "50"}
    frame = reader(spark.readStream, "headrace", broker, options).load().select("key", "value", "partition")
    query = (
        frame.writeStream.format("headrace")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("topic", topic)
        .option("delivery", "exactly-once")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    committed = {"kafka.isolation.level": "read_committed"}
    found = rows_of(reader(spark.read, "kafka", broker, {"subscribe": topic, **committed}).load())
    wanted = rows_of(reader(spark.read, "kafka", broker, {"subscribe": TOPIC, **committed}).load())
    assert [(row[3], row[0], row[1]) for row in found] == [(row[3], row[0], row[1]) for row in wanted]
