"""A commit that raises: Spark gives the batch up and fails the query, and the next start replays that batch."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from headrace.testing import EmbeddedBroker
from tests.spark.kills.failing_source import POINTS_OPTION, FailingSource
from tests.spark.kills.points import RAISE, Plan, Points
from tests.spark.sink.test_spark_writes import ROWS, feed, numbers, run, stream

pytestmark = pytest.mark.record_integrity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_what_was_committed_stays_and_what_was_not_is_written_again(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    points = Points(tmp_path)
    points.write(
        [Plan(victim=RAISE, point="after commit", batch=0), Plan(victim=RAISE, point="before commit", batch=1)]
    )
    spark.dataSource.register(FailingSource)
    for batch in range(3):
        feed(tmp_path / "in", batch)

    def start(tasks: int) -> None:
        rows = stream(spark, tmp_path / "in", tasks).selectExpr("value AS key", "value")
        written = rows.writeStream.format(FailingSource.name()).option(POINTS_OPTION, str(tmp_path))
        written = written.option("kafka.bootstrap.servers", broker.bootstrap_servers).option("topic", topic)
        run(written, tmp_path / "checkpoint")

    with pytest.raises(StreamingQueryException, match="planned after commit"):
        start(2)
    assert numbers(spark, broker, topic) == Counter(range(ROWS))
    with pytest.raises(StreamingQueryException, match="planned before commit"):
        start(3)
    assert numbers(spark, broker, topic) == Counter(range(ROWS))
    start(4)
    assert points.not_met() == []
    assert numbers(spark, broker, topic) == Counter(range(3 * ROWS))
