"""Spark writes: batches, streams and foreachBatch into topics and tables, and what replays of them leave there."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from headrace.client.core.partitioners import partition_for_key
from headrace.testing import EmbeddedBroker

pytestmark = pytest.mark.record_integrity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 300


def writer(rows: DataFrame, broker: EmbeddedBroker, **options: Any) -> Any:
    written = rows.write.format("headrace").mode("append").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    return written.options(**options)


def read(spark: "SparkSession", broker: EmbeddedBroker, *topics: str) -> list[Any]:
    source = spark.read.format("headrace").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    rows = source.option("subscribe", ",".join(topics)).option("includeHeaders", "true").load().collect()
    return [Row(**{name: _plain(value) for name, value in row.asDict().items()}) for row in rows]


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def numbers(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> Counter[int]:
    return Counter(int(row.value) for row in read(spark, broker, topic))


def feed(folder: Path, batch: int, count: int = ROWS) -> None:
    """One file is one micro-batch."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{batch}.json"
    path.write_text("".join(f'{{"id": {number}}}\n' for number in range(batch * count, (batch + 1) * count)))
    os.utime(path, (1_000_000 + batch,) * 2)


def stream(spark: "SparkSession", folder: Path, tasks: int = 2) -> DataFrame:
    rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json(str(folder))
    return rows.repartition(tasks).select(F.col("id").cast("string").alias("value"), (F.col("id") % 2).alias("half"))


def run(written: Any, checkpoint: Path) -> None:
    query = written.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


def forget_the_last_commit(checkpoint: Path) -> None:
    """As if the driver was killed when the sink had committed and Spark had not noted it."""
    newest = max(
        (path for path in (checkpoint / "commits").iterdir() if path.name.isdecimal()), key=lambda p: int(p.name)
    )
    newest.unlink()
    (checkpoint / "commits" / f".{newest.name}.crc").unlink(missing_ok=True)


def test_every_column_arrives(spark: "SparkSession", broker: EmbeddedBroker) -> None:
    one, other = (broker.create_topic(broker.unused_topic_name("columns"), partitions=4) for _ in range(2))
    rows = spark.range(100).select(
        F.when(F.col("id") % 3 != 0, F.col("id").cast("string")).alias("key"),
        F.when(F.col("id") % 5 != 0, F.col("id").cast("string").cast("binary")).alias("value"),
        F.when(F.col("id") % 2 == 0, F.lit(one)).otherwise(F.lit(other)).alias("topic"),
        F.when(F.col("id") % 7 == 0, F.lit(3)).alias("partition"),
        F.expr("IF(id % 4 = 0, array(named_struct('key', 'h', 'value', CAST('x' AS BINARY))), NULL)").alias("headers"),
        F.col("id").alias("offset"),
    )
    writer(rows, broker, delivery="at-least-once", **{"kafka.compression.type": "zstd"}).save()
    found = read(spark, broker, one, other)
    assert len(found) == 100
    given = {(row.key, row.value, row.topic, bool(row.headers)) for row in found if row.key or row.value}
    text = {number: str(number).encode() for number in range(100)}
    assert given == {
        (text[n] if n % 3 else None, text[n] if n % 5 else None, one if n % 2 == 0 else other, n % 4 == 0)
        for n in range(100)
        if n % 15
    }
    for row in found:
        number = int(row.key or row.value or b"0")
        if row.key is not None and number % 7:
            assert row.partition == partition_for_key(row.key, 4)
        elif row.key is not None:
            assert row.partition == 3


def test_a_batch_under_a_key_is_written_once(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    rows = spark.range(0, ROWS, 1, 3).select(F.col("id").cast("string").alias("value"))
    for _ in range(2):
        writer(rows, broker, topic=topic, idempotenceKey=f"nightly-{topic}").save()
    assert numbers(spark, broker, topic) == Counter(range(ROWS))
    writer(rows, broker, topic=topic, idempotenceKey=f"nightly-{topic}", idempotenceBatchId=1).save()
    assert numbers(spark, broker, topic) == Counter(dict.fromkeys(range(ROWS), 2))


def test_a_stream_and_its_replays_write_every_row_once(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    def start(tasks: int) -> None:
        written = stream(spark, tmp_path / "in", tasks).writeStream.format("headrace")
        written = written.option("kafka.bootstrap.servers", broker.bootstrap_servers).option("topic", topic)
        run(written.queryName(f"copy-{tasks}"), tmp_path / "checkpoint")

    feed(tmp_path / "in", 0)
    feed(tmp_path / "in", 1)
    start(2)
    assert numbers(spark, broker, topic) == Counter(range(2 * ROWS))
    forget_the_last_commit(tmp_path / "checkpoint")
    feed(tmp_path / "in", 2)
    start(5)
    assert numbers(spark, broker, topic) == Counter(range(3 * ROWS))


def test_writes_in_foreach_batch_are_distinguished_by_their_names(
    spark: "SparkSession", broker: EmbeddedBroker, tmp_path: Path
) -> None:
    even, odd = (broker.create_topic(broker.unused_topic_name("foreach")) for _ in range(2))
    failures: list[int] = [1]

    def split(batch: DataFrame, number: int) -> None:
        for half, topic in ((0, even), (1, odd)):
            writer(batch.where(F.col("half") == half), broker, topic=topic, sinkName=f"half-{half}").save()
            if half == 0 and number in failures:
                failures.remove(number)
                raise RuntimeError("between the two writes")

    feed(tmp_path / "in", 0)
    feed(tmp_path / "in", 1)
    with pytest.raises(StreamingQueryException, match="between the two writes"):
        run(stream(spark, tmp_path / "in").writeStream.foreachBatch(split), tmp_path / "checkpoint")
    run(stream(spark, tmp_path / "in", 3).writeStream.foreachBatch(split), tmp_path / "checkpoint")
    assert numbers(spark, broker, even) == Counter(range(0, 2 * ROWS, 2))
    assert numbers(spark, broker, odd) == Counter(range(1, 2 * ROWS, 2))


def test_two_writes_of_one_name_in_foreach_batch_are_refused(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    """Also by the runs that repeat the batch, which find the first of them written; until they have names."""
    names: list[dict[str, str]] = [{}, {}]

    def twice(batch: DataFrame, _: int) -> None:
        for half in range(2):
            writer(batch.where(F.col("half") == half), broker, topic=topic, **names[half]).save()

    feed(tmp_path / "in", 0)
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match="a different option sinkName"):
            run(stream(spark, tmp_path / "in").writeStream.foreachBatch(twice), tmp_path / "checkpoint")
        assert numbers(spark, broker, topic) == Counter(range(0, ROWS, 2))
    names[1] = {"sinkName": "odd"}
    run(stream(spark, tmp_path / "in").writeStream.foreachBatch(twice), tmp_path / "checkpoint")
    assert numbers(spark, broker, topic) == Counter(range(ROWS))


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_tables_take_every_row_of_a_stream_once(spark: "SparkSession", kind: str, tmp_path: Path) -> None:
    def start(tasks: int) -> None:
        written = stream(spark, tmp_path / "in", tasks).writeStream.format(f"headrace-{kind}")
        written = written.option("path", str(tmp_path / "table")).option("partitionColumns", "half")
        run(written, tmp_path / "checkpoint")

    feed(tmp_path / "in", 0)
    feed(tmp_path / "in", 1)
    start(2)
    forget_the_last_commit(tmp_path / "checkpoint")
    feed(tmp_path / "in", 2)
    start(4)
    if kind == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(str(tmp_path / "table")).to_pyarrow_table()
    else:
        table = ds.dataset(str(tmp_path / "table"), format="parquet", partitioning="hive").to_table()
        assert spark.read.parquet(str(tmp_path / "table")).count() == 3 * ROWS
    assert Counter(int(value) for value in table["value"].to_pylist()) == Counter(range(3 * ROWS))
    assert {int(value) % 2 == int(half) for value, half in zip(*table.to_pydict().values(), strict=True)} == {True}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topic": ""}, 'option "topic" is empty'),
        ({}, "no topic: set the option topic, or give the rows a column `topic`"),
        ({"topic": "t", "delivery": "maybe"}, 'option "delivery" is one of exactly-once, at-least-once'),
        ({"topics": "t"}, 'unknown option "topics" of format "headrace": did you mean "topic"?'),
        ({"topic": "t", "kafka.acks": "1", "delivery": "exactly-once"}, "writing exactly once needs kafka.acks=all"),
    ],
)
def test_wrong_options_are_reported_when_the_write_is_planned(
    spark: "SparkSession", broker: EmbeddedBroker, options: dict[str, str], message: str
) -> None:
    rows = spark.range(1).select(F.col("id").cast("string").alias("value"))
    with pytest.raises(AnalysisException) as refused:
        writer(rows, broker, **options).save()
    assert message in str(refused.value)


def test_a_topic_is_not_overwritten(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    rows = spark.range(1).select(F.col("id").cast("string").alias("value"))
    with pytest.raises(AnalysisException, match="a topic cannot be overwritten"):
        writer(rows, broker, topic=topic).mode("overwrite").save()


def test_spark_requires_the_mode_append(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    """Unlike a write of the Kafka connector: the guide says so, as Spark does not ask a Python sink."""
    rows = spark.range(1).select(F.col("id").cast("string").alias("value"))
    with pytest.raises(AnalysisException, match=r"UNSUPPORTED_DATA_SOURCE_SAVE_MODE.*Append"):
        writer(rows, broker, topic=topic).mode("error").save()


def test_whole_results_are_added_to_a_topic(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    """As the Kafka connector does. For `update` Spark wants a sink of Java: foreachBatch takes it."""
    feed(tmp_path / "in", 0)
    feed(tmp_path / "in", 1)
    counted = stream(spark, tmp_path / "in").groupBy("half").count()
    results = counted.select(F.col("half").cast("string").alias("key"), F.col("count").cast("string").alias("value"))
    servers = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic}
    run(results.writeStream.format("headrace").outputMode("complete").options(**servers), tmp_path / "complete")
    half, whole = str(ROWS // 2).encode(), str(ROWS).encode()
    assert Counter(row.value for row in read(spark, broker, topic)) == Counter({half: 2, whole: 2})
    updated = results.writeStream.outputMode("update")
    with pytest.raises(StreamingQueryException, match="does not support Update mode"):
        run(updated.format("headrace").options(**servers), tmp_path / "update")
    each = results.writeStream.outputMode("update").foreachBatch(
        lambda rows, _: writer(rows, broker, topic=topic).save()
    )
    run(each, tmp_path / "each")
    assert Counter(row.value for row in read(spark, broker, topic)) == Counter({half: 4, whole: 4})


@pytest.mark.parametrize(("kind", "advice"), [("delta", "deltalake"), ("parquet", r"spark\.read\.parquet")])
def test_reading_with_a_format_for_writing_names_the_right_one(
    spark: "SparkSession", kind: str, advice: str, tmp_path: Path
) -> None:
    with pytest.raises(AnalysisException, match=f'"headrace-{kind}" is for writing: read the folder with {advice}'):
        spark.read.format(f"headrace-{kind}").load(str(tmp_path)).collect()


def test_jobs_of_several_threads_under_one_key_are_written_once(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str
) -> None:
    """The guide says what a thread needs: Spark itself does not find formats in Python without it."""
    rows = spark.range(ROWS).select(F.col("id").cast("string").alias("value"))

    def write(_job: int, *, is_active: bool = True) -> str:
        if is_active:
            spark.createDataFrame([], "x INT")
        try:
            writer(rows, broker, topic=topic, idempotenceKey=f"job-{topic}").save()
        except Exception as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(1) as threads:
        assert "DATA_SOURCE_NOT_FOUND" in threads.submit(write, 0, is_active=False).result()
    with ThreadPoolExecutor(3) as threads:
        outcomes = list(threads.map(write, range(3)))
    assert "" in outcomes, outcomes
    assert numbers(spark, broker, topic) == Counter(range(ROWS))
