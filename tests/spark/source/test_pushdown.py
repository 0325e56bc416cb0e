"""Filters narrow what is read and never what is found."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from headrace.client import Producer, TopicPartition
from headrace.spark.filter_bounds import Bounds
from headrace.spark.range_planner import OffsetRange
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.source.topics import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
OFFSET, PARTITION, TIMESTAMP = ("offset",), ("partition",), ("timestamp",)


class NoBrokers:
    def at(self, times: dict) -> dict:
        return {P0: 40, P1: -1}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([EqualTo(PARTITION, 1)], [(P1, 0, 100)]),
        ([In(PARTITION, (1, 7)), EqualTo(PARTITION, 0)], []),
        ([EqualTo(("topic",), "other")], []),
        ([GreaterThan(OFFSET, 9), LessThan(OFFSET, 12)], [(P0, 10, 12), (P1, 10, 12)]),
        ([GreaterThanOrEqual(OFFSET, 9), LessThanOrEqual(OFFSET, 12)], [(P0, 9, 13), (P1, 9, 13)]),
        ([EqualTo(OFFSET, 5)], [(P0, 5, 6), (P1, 5, 6)]),
        ([GreaterThanOrEqual(TIMESTAMP, datetime.fromtimestamp(5, UTC))], [(P0, 40, 100)]),
        ([LessThan(TIMESTAMP, datetime.fromtimestamp(5, UTC))], [(P0, 0, 100), (P1, 0, 100)]),
        ([GreaterThan(TIMESTAMP, datetime(2020, 1, 1))], [(P0, 0, 100), (P1, 0, 100)]),
        ([EqualTo(("key",), b"x"), GreaterThan(("value",), b"")], [(P0, 0, 100), (P1, 0, 100)]),
    ],
)
def test_bounds(filters: list, expected: list) -> None:
    bounds = Bounds()
    bounds.narrow(filters)
    chosen = bounds.chosen([P0, P1])
    assert bounds.cut([OffsetRange(each, 0, 100) for each in chosen], NoBrokers()) == expected


def test_a_spark_that_pushes_nothing_down_says_so(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    """Without the option nothing is asked of Spark; with it, it must be switched on there too."""
    setting = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(setting, "false")
    try:
        assert load(spark, broker, topic).where("offset = 3").count() == 0
        with pytest.raises(Exception, match="filterPushdown"):
            load(spark, broker, topic, pushdown=True).where("offset = 3").count()
    finally:
        spark.conf.set(setting, "true")


def test_a_query_with_filters_finds_the_same_rows(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(200):
            producer.send(topic, b"v", partition=number % 2, timestamp=1_000 * (number // 2 * 7 % 100))
        producer.flush()
    for condition in (
        "partition = 1 AND offset BETWEEN 10 AND 20",
        "timestamp >= timestamp_seconds(97)",
        "timestamp > timestamp_seconds(50) AND timestamp < timestamp_seconds(60) AND partition IN (0)",
        "offset < 0",
    ):
        pushed = load(spark, broker, topic, pushdown=True).where(condition)
        plain = load(spark, broker, topic).where(condition)
        assert sorted(pushed.collect()) == sorted(plain.collect())
    narrow = load(spark, broker, topic, pushdown=True).where("partition = 1 AND offset = 3")
    assert narrow.rdd.getNumPartitions() == 1
    assert [row.offset for row in narrow.collect()] == [3]
