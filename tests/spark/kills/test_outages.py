"""The broker is killed under a running query; 30 seconds of it by `make chaos ARGS="'Spark outages'"`."""

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from tests.spark.kills.campaign import rows_of
from tests.spark.kills.outages import Sender, broker_in, copy_through_outages, create_topics, start_query, wait_for_rows

pytestmark = pytest.mark.record_integrity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from tests.broker_process.broker_process import BrokerProcess

AWAY_S = 3.0
STARTS_MAX = 5
OPTION = r"kafkaConsumer\.pollTimeoutMs|kafka\.delivery\.timeout\.ms"


def test_a_query_waits_for_its_broker_and_continues(spark: "SparkSession", tmp_path: Path) -> None:
    assert copy_through_outages(spark, tmp_path, outages=1, seconds=AWAY_S)


def started_query(
    spark: "SparkSession", broker: "BrokerProcess", folder: Path, options: dict[str, str]
) -> "StreamingQuery":
    """One that has copied some rows; a machine that stands still for so long fails such a query by itself."""
    for _ in range(STARTS_MAX):
        query = start_query(spark, broker, folder, **options)
        try:
            wait_for_rows(query, 0)
            return query
        except AssertionError as error:
            if not re.search(OPTION, str(error)):
                raise
    raise AssertionError(f"the query has failed {STARTS_MAX} times")


def test_a_query_that_may_not_wait_fails_with_the_option_and_is_continued(
    spark: "SparkSession", tmp_path: Path
) -> None:
    short = {"kafkaConsumer.pollTimeoutMs": "2000", "kafka.delivery.timeout.ms": "5000"}
    with broker_in(tmp_path) as broker:
        create_topics(broker)
        sender = Sender(broker.bootstrap_servers)
        sender.start()
        query = started_query(spark, broker, tmp_path, short)
        broker.kill()
        with pytest.raises(StreamingQueryException, match=OPTION):
            query.awaitTermination()
        broker.start()
        sent = sender.stop()
        again = start_query(spark, broker, tmp_path)
        try:
            again.processAllAvailable()
        finally:
            again.stop()
        assert Counter(rows_of(broker.bootstrap_servers)) == Counter(range(sent))
