"""The tests of lanes, with Apache Kafka as their broker, and what else the sink and the source do there."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from compat.kafka import ApacheKafka, apache_kafka
from headrace.spark.option_names import OptionError
from headrace.spark.sink.commits import commit
from headrace.spark.sink.identity import Identity
from headrace.spark.sink.options import parse_sink_options
from headrace.spark.sink.tasks import write_rows
from tests.spark.conftest import spark
from tests.spark.sink import test_lanes as lanes
from tests.spark.sink.test_tasks import messages, place, rows

__all__ = ["place", "spark"]

KAFKA_SETTINGS = {"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": "0"}

test_a_lane_writes_a_batch_once = lanes.test_a_lane_writes_a_batch_once
test_who_takes_a_lane_over = lanes.test_who_takes_a_lane_over_ends_what_another_has_begun
test_rows_of_another_lane_are_refused = lanes.test_rows_of_another_lane_are_refused
test_another_number_of_lanes_is_refused = lanes.test_another_number_of_lanes_is_refused
test_a_stream_and_its_replay = lanes.test_a_stream_and_its_replay_write_every_row_once
test_a_batch_under_a_key = lanes.test_a_batch_under_a_key_is_written_once


@pytest.fixture(scope="module")
def own_broker() -> Iterator[ApacheKafka]:
    with apache_kafka(KAFKA_SETTINGS) as kafka:
        yield kafka


@pytest.fixture
def broker(own_broker: ApacheKafka) -> ApacheKafka:
    return own_broker


def test_kafka_has_no_batch_commits_and_that_is_said(
    place: tuple[Any, str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"kafka.bootstrap.servers": place[0].bootstrap_servers, "topic": place[1]}
    identity = Identity("spark.q.sink", "run", 0, 0)
    with pytest.raises(OptionError, match="needs brokers with the feature headrace"):
        write_rows(rows(0, 1), parse_sink_options({**given, "delivery": "exactly-once"}), identity)
    report = write_rows(rows(0, 250), parse_sink_options(given), identity)
    commit(parse_sink_options(given), [report])
    assert "rows are written AT LEAST ONCE" in capsys.readouterr().err
    assert Counter(int(message.value()) for message in messages(place)) == Counter(range(250))


@pytest.mark.parametrize("scan", ["broker", "auto"])
def test_the_source_reads_from_kafka(spark: Any, place: tuple[Any, str], scan: str) -> None:
    """Where `scan` asks for files, Kafka gives none, and they are read through it."""
    given = {"kafka.bootstrap.servers": place[0].bootstrap_servers, "topic": place[1], "delivery": "at-least-once"}
    write_rows(rows(0, 250), parse_sink_options(given), None)
    read = spark.read.format("headrace").option("kafka.bootstrap.servers", place[0].bootstrap_servers)
    found = read.option("subscribe", place[1]).option("scan", scan).load()
    assert Counter(int(row.value) for row in found.collect()) == Counter(range(250))
