"""The broker is killed under a running query; 30 seconds of it by `make chaos ARGS="'Spark outages'"`."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from tests.spark.kills.campaign import rows_of
from tests.spark.kills.outages import Sender, broker_in, copy_through_outages, create_topics, start_query, wait_for_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AWAY_S = 3.0


def test_a_query_waits_for_its_broker_and_goes_on(spark: "SparkSession", tmp_path: Path) -> None:
    assert copy_through_outages(spark, tmp_path, outages=1, seconds=AWAY_S)


def test_a_query_that_may_not_wait_fails_with_the_option_and_is_continued(
    spark: "SparkSession", tmp_path: Path
) -> None:
    short = {"kafkaConsumer.pollTimeoutMs": "2000", "kafka.delivery.timeout.ms": "5000"}
    with broker_in(tmp_path) as broker:
        create_topics(broker)
        sender = Sender(broker.bootstrap_servers)
        sender.start()
        query = start_query(spark, broker, tmp_path, **short)
        wait_for_rows(query, 0)
        broker.kill()
        with pytest.raises(StreamingQueryException, match=r"kafkaConsumer\.pollTimeoutMs|kafka\.delivery\.timeout\.ms"):
            query.awaitTermination()
        broker.start()
        sent = sender.stop()
        again = start_query(spark, broker, tmp_path)
        try:
            again.processAllAvailable()
        finally:
            again.stop()
        assert Counter(rows_of(broker.bootstrap_servers)) == Counter(range(sent))
