"""Topics in SQL: with options behind the name, as a stream, as a view, and what becomes of options elsewhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from headrace.testing.embedded import EmbeddedBroker
from tests.spark.source.test_stream import PROGRESS_SECONDS_MAX
from tests.spark.source.topics import produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "of_headrace"


@pytest.fixture
def table(spark: "SparkSession") -> Iterator[str]:
    spark.sql(f"CREATE TABLE {TABLE} USING headrace")
    yield TABLE
    spark.sql(f"DROP TABLE {TABLE}")


def options_of(broker: EmbeddedBroker, **more: str) -> str:
    named = {"kafka.bootstrap.servers": broker.bootstrap_servers, **more}
    return ", ".join(f"`{name}` = '{value}'" for name, value in named.items())


def test_options_stand_behind_the_name(spark: "SparkSession", broker: EmbeddedBroker, topic: str, table: str) -> None:
    produce(broker, topic, [b"a", b"b"], partition=0)
    chosen = options_of(broker, subscribe=topic)
    assert spark.sql(f"SELECT count(*) AS n FROM {table} WITH ({chosen})").first().n == 2
    with pytest.raises(AnalysisException, match='unknown option "subscribes"'):
        spark.sql(f"SELECT * FROM {table} WITH ({options_of(broker, subscribes=topic)})").collect()


def test_a_stream_in_sql(spark: "SparkSession", broker: EmbeddedBroker, topic: str, table: str, tmp_path: Path) -> None:
    produce(broker, topic, [b"a", b"b", b"c"], partition=0)
    chosen = options_of(broker, subscribe=topic, startingOffsets="earliest")
    frame = spark.sql(f"SELECT CAST(value AS STRING) AS v FROM STREAM {table} WITH ({chosen}) WHERE offset > 0")
    assert frame.isStreaming
    found: list[str] = []
    query = frame.writeStream.foreachBatch(lambda rows, _: found.extend(row.v for row in rows.collect()))
    running = query.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert running.awaitTermination(PROGRESS_SECONDS_MAX)
    assert sorted(found) == ["b", "c"]


def test_a_view_keeps_its_options(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    produce(broker, topic, [b"a", b"b"], partition=0)
    chosen = options_of(broker, subscribe=topic).replace(" = ", " ")
    spark.sql(f"CREATE TEMPORARY VIEW seen USING headrace OPTIONS ({chosen})")
    assert spark.sql("SELECT count(*) AS n FROM seen").first().n == 2
    spark.catalog.dropTempView("seen")


def test_options_of_a_table_are_not_handed_on_and_that_is_said(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, table: str
) -> None:
    with pytest.raises(AnalysisException, match=r"a table does not keep options.* SELECT \* FROM t WITH"):
        spark.sql(f"CREATE TABLE forgetful USING headrace OPTIONS ({options_of(broker, subscribe=topic)})")
    assert not spark.catalog.tableExists("forgetful")
    with pytest.raises(Exception, match=r"SELECT \* FROM t WITH \(subscribe = 'orders'\)"):
        spark.sql(f"SELECT * FROM {table}").collect()


def test_rows_are_inserted(spark: "SparkSession", broker: EmbeddedBroker, topic: str, table: str) -> None:
    chosen = options_of(broker, topic=topic)
    spark.sql(f"INSERT INTO {table} WITH ({chosen}) (key, value) VALUES (X'31', X'32'), (NULL, X'33')")
    rows = spark.sql(f"SELECT key, value FROM {table} WITH ({options_of(broker, subscribe=topic)})").collect()
    assert sorted((bytes(row.key or b""), bytes(row.value)) for row in rows) == [(b"", b"3"), (b"1", b"2")]


def test_a_table_by_name_with_options(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, table: str, tmp_path: Path
) -> None:
    produce(broker, topic, [b"a", b"b"], partition=0)
    named = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}
    assert spark.read.options(**named).table(table).count() == 2
    stream = spark.readStream.options(**named, startingOffsets="earliest").table(table)
    counted: list[int] = []
    query = stream.writeStream.foreachBatch(lambda rows, _: counted.append(rows.count()))
    running = query.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert running.awaitTermination(PROGRESS_SECONDS_MAX)
    assert sum(counted) == 2
