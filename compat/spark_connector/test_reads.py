"""The same options, the same rows: `format("kafka")` and `format("headrace")` on one broker."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat.spark_connector.rows import (
    BEGAN_MS,
    FORMATS,
    PARTITIONS,
    RECORDS,
    ROUNDS,
    STEP_MS,
    TIMED,
    TOPIC,
    read_both,
    reader,
    rows_of,
)
from headrace.testing import EmbeddedBroker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMMITTED = {"kafka.isolation.level": "read_committed"}
UNCOMMITTED = {"kafka.isolation.level": "read_uncommitted"}
MIDDLE_MS = BEGAN_MS + ROUNDS * RECORDS * STEP_MS // 2
ALL_PARTITIONS = range(PARTITIONS)


def by_partition(*numbers: int, topic: str = TOPIC) -> str:
    return json.dumps({topic: {str(partition): number for partition, number in enumerate(numbers)}})


def test_both_have_the_same_columns(spark: "SparkSession", broker: EmbeddedBroker) -> None:
    for options in ({"subscribe": TOPIC}, {"subscribe": TOPIC, "includeHeaders": "true"}):
        kafka, headrace = (reader(spark.read, each, broker, options).load().schema for each in FORMATS)
        assert [(field.name, field.dataType) for field in kafka] == [(field.name, field.dataType) for field in headrace]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"subscribe": TOPIC, **UNCOMMITTED}, id="a whole topic, uncommitted"),
        pytest.param({"subscribe": TOPIC, **COMMITTED}, id="a whole topic, committed"),
        pytest.param({"subscribe": TOPIC, "includeHeaders": "true", **COMMITTED}, id="headers"),
        pytest.param({"subscribePattern": "ro.s", **COMMITTED}, id="a pattern of topics"),
        pytest.param({"assign": json.dumps({TOPIC: [0, 2]}), **COMMITTED}, id="some partitions"),
        pytest.param({"subscribe": TOPIC, "minPartitions": "7", **COMMITTED}, id="more tasks than partitions"),
        pytest.param(
            {
                "subscribe": TOPIC,
                "startingOffsets": by_partition(3, -2, 20),
                "endingOffsets": by_partition(30, 41, -1),
                **UNCOMMITTED,
            },
            id="offsets",
        ),
        pytest.param(
            {
                "subscribe": TIMED,
                "startingTimestamp": str(BEGAN_MS + 20 * STEP_MS),
                "endingTimestamp": str(MIDDLE_MS),
                **UNCOMMITTED,
            },
            id="times",
        ),
        pytest.param(
            {
                "subscribe": TIMED,
                "startingOffsetsByTimestamp": by_partition(
                    *(MIDDLE_MS + each * STEP_MS for each in ALL_PARTITIONS), topic=TIMED
                ),
                "endingOffsetsByTimestamp": by_partition(
                    *(MIDDLE_MS + 60 * STEP_MS for _ in ALL_PARTITIONS), topic=TIMED
                ),
                **UNCOMMITTED,
            },
            id="times of each partition",
        ),
        pytest.param(
            {
                "subscribe": TIMED,
                "startingTimestamp": str(BEGAN_MS * 2),
                "startingOffsetsByTimestampStrategy": "latest",
                **UNCOMMITTED,
            },
            id="a time behind the end",
        ),
    ],
)
def test_a_batch_read_gives_the_same_rows(
    spark: "SparkSession", broker: EmbeddedBroker, options: dict[str, str], request: pytest.FixtureRequest
) -> None:
    found = read_both(spark, broker, options)
    assert found.headrace == found.kafka
    assert bool(found.kafka) == ("behind the end" not in request.node.name)


def test_only_committed_rows_are_read_when_that_is_asked_for(spark: "SparkSession", broker: EmbeddedBroker) -> None:
    everything = read_both(spark, broker, {"subscribe": TOPIC, **UNCOMMITTED}).kafka
    committed = read_both(spark, broker, {"subscribe": TOPIC, **COMMITTED}).kafka
    aborted_rounds = len(range(2, ROUNDS, 3))
    assert len(everything) == ROUNDS * RECORDS
    assert len(committed) == (ROUNDS - aborted_rounds) * RECORDS


def stream_into(frame: "DataFrame", folder: Path, checkpoint: Path) -> list[dict[str, Any]]:
    """All that is there, in micro-batches, as Parquet; the progress of each that had rows."""
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(str(folder))
    )
    assert query.awaitTermination(120)
    return [batch for batch in query.recentProgress if batch["numInputRows"]]


@pytest.mark.parametrize("starting", ["earliest", "offsets", "time"])
def test_a_stream_in_micro_batches_gives_the_same_rows(
    spark: "SparkSession", broker: EmbeddedBroker, tmp_path: Path, starting: str
) -> None:
    begin = {
        "earliest": {"subscribe": TOPIC, "startingOffsets": "earliest"},
        "offsets": {"subscribe": TOPIC, "startingOffsets": by_partition(5, -2, 11)},
        "time": {"subscribe": TIMED, "startingTimestamp": str(MIDDLE_MS)},
    }[starting]
    options = {"includeHeaders": "true", "maxOffsetsPerTrigger": "40", **COMMITTED, **begin}
    found = []
    for form in FORMATS:
        frame = reader(spark.readStream, form, broker, options).load()
        batches = stream_into(frame, tmp_path / form, tmp_path / f"{form}-checkpoint")
        assert len(batches) > 1
        found.append(rows_of(spark.read.parquet(str(tmp_path / form))))
    assert found[0] == found[1] != []


def test_a_checkpoint_of_the_connector_is_continued_by_headrace(
    spark: "SparkSession", broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """The job is stopped, the word changed, the job started: every row once."""
    topic = broker.create_topic(broker.unused_topic_name("resumed"), partitions=PARTITIONS)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "15"}
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    for turn, form in enumerate(FORMATS):
        lines = spark.range(turn * 100, turn * 100 + 100).selectExpr(
            "cast(id as string) as key", "cast(id as string) as value"
        )
        lines.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap_servers).option(
            "topic", topic
        ).save()
        stream_into(reader(spark.readStream, form, broker, options).load(), out, checkpoint)
    values = [int(row.value) for row in spark.read.parquet(str(out)).selectExpr("cast(value as string)").collect()]
    assert sorted(values) == list(range(200))
