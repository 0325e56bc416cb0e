"""Lanes: exactly once with the requests that every broker of Kafka's protocol serves."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import functions as F

from headrace.client import Producer
from headrace.client.errors import ClientError
from headrace.spark import write_lanes
from headrace.spark.option_names import OptionError
from headrace.spark.sink.identity import Identity
from headrace.spark.sink.lanes import LanesMixed, SameLaneTwice, write_rows_of_lane
from headrace.spark.sink.options import SinkOptions, parse_sink_options
from headrace.testing import EmbeddedBroker
from tests.spark.sink.test_spark_writes import ROWS, feed, forget_the_last_commit, run, stream
from tests.spark.sink.test_tasks import PARTITIONS, messages, own_broker, place

pytestmark = pytest.mark.record_integrity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["own_broker", "place"]
Place = tuple[EmbeddedBroker, str]


def options(place: Place, lanes: int = 2) -> SinkOptions:
    given = {"kafka.bootstrap.servers": place[0].bootstrap_servers, "topic": place[1]}
    return parse_sink_options({**given, "delivery": "lanes", "lanes": str(lanes)})


def identity(place: Place, batch_id: int, run: str = "run", write: str = "write") -> Identity:
    return Identity(f"spark.q.{place[1]}", run, batch_id, 0, write)


def rows(lane: int, numbers: range) -> Iterator[pa.RecordBatch]:
    texts = [str(number) for number in numbers]
    yield pa.record_batch([pa.array(texts), pa.array([lane] * len(texts), pa.int32())], names=["value", "__hr_lane"])


def read(place: Place) -> Counter[int]:
    return Counter(int(message.value()) for message in messages(place))


def test_a_lane_writes_a_batch_once(place: Place) -> None:
    for _ in range(2):
        for lane in range(2):
            write_rows_of_lane(rows(lane, range(lane, 100, 2)), options(place), identity(place, 0), lane)
    assert read(place) == Counter(range(100))
    report = write_rows_of_lane(rows(0, range(100, 150)), options(place), identity(place, 1), 0)
    assert (report.records, report.identity) == (50, None)
    assert write_rows_of_lane(rows(0, range(100, 150)), options(place), identity(place, 0), 0).records == 0
    assert read(place) == Counter(range(150))


@pytest.mark.parametrize("run", ["run", "later"])
def test_a_second_write_under_one_name_is_not_passed_over(place: Place, run: str) -> None:
    """Neither in the run that wrote the first, nor in one that repeats the batch after a kill between the two."""
    write_rows_of_lane(rows(0, range(10)), options(place), identity(place, 0, write="first"), 0)
    first = identity(place, 0, run, "first" if run == "run" else "first again")
    for _ in range(2):
        assert write_rows_of_lane(rows(0, range(10)), options(place), first, 0).records == 0
    with pytest.raises(SameLaneTwice, match="a different option sinkName"):
        write_rows_of_lane(rows(0, range(10, 20)), options(place), identity(place, 0, run, "second"), 0)
    write_rows_of_lane(rows(0, range(20, 30)), options(place), identity(place, 1, run, "next"), 0)
    assert read(place) == Counter([*range(10), *range(20, 30)])


def test_who_takes_a_lane_over_ends_what_another_has_begun(place: Place) -> None:
    zombie = Producer(
        bootstrap_servers=place[0].bootstrap_servers, transactional_id=f"{identity(place, 0).owner}.0", linger_ms=0
    )
    transaction = zombie.transaction()
    zombie.send(place[1], b"7").result(timeout_ms=60_000)
    write_rows_of_lane(rows(0, range(10)), options(place), identity(place, 0), 0)
    with pytest.raises(ClientError):
        transaction.commit()
    zombie.close()
    assert read(place) == Counter(range(10))


def test_rows_of_another_lane_are_refused(place: Place) -> None:
    with pytest.raises(LanesMixed, match="as it is"):
        write_rows_of_lane(rows(1, range(10)), options(place), identity(place, 0), 0)
    assert read(place) == Counter()


@pytest.mark.parametrize("lanes", [0, -1, 1_001, "2", True])
def test_a_wrong_number_of_lanes_is_named(lanes: Any) -> None:
    with pytest.raises(OptionError, match="there are 1 to 1000 lanes, not"):
        write_lanes(None, lanes=lanes)  # type: ignore[arg-type]  # it is not looked at


def test_another_number_of_lanes_is_refused(place: Place) -> None:
    write_rows_of_lane(rows(0, range(10)), options(place, 2), identity(place, 0), 0)
    with pytest.raises(OptionError, match="was written with lanes=2 before, not with 3"):
        write_rows_of_lane(rows(1, range(10)), options(place, 3), identity(place, 1), 1)
    with pytest.raises(OptionError, match=f"has {PARTITIONS} partitions: write_lanes takes at most as many"):
        write_rows_of_lane(rows(0, range(10)), options(place, 4), identity(place, 1), 0)


def test_a_stream_and_its_replay_write_every_row_once(
    spark: "SparkSession", broker: EmbeddedBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic(broker.unused_topic_name("lanes"), partitions=PARTITIONS)

    def start(tasks: int) -> None:
        written = write_lanes(stream(spark, tmp_path / "in", tasks).drop("half"), lanes=3).option("topic", topic)
        run(written.option("kafka.bootstrap.servers", broker.bootstrap_servers), tmp_path / "checkpoint")

    feed(tmp_path / "in", 0)
    start(2)
    forget_the_last_commit(tmp_path / "checkpoint")
    feed(tmp_path / "in", 1)
    start(4)
    assert read((broker, topic)) == Counter(range(2 * ROWS))
    plain = stream(spark, tmp_path / "in").writeStream.format("headrace").option("topic", topic)
    plain = plain.option("kafka.bootstrap.servers", broker.bootstrap_servers).option("delivery", "lanes")
    with pytest.raises((AnalysisException, StreamingQueryException), match="lanes are written by headrace"):
        run(plain, tmp_path / "other")


def test_a_batch_under_a_key_is_written_once(spark: "SparkSession", broker: EmbeddedBroker) -> None:
    topic = broker.create_topic(broker.unused_topic_name("lanes"), partitions=PARTITIONS)
    numbers = spark.range(ROWS).select(
        F.col("id").cast("string").alias("key"), F.col("id").cast("string").alias("value")
    )
    for _ in range(2):
        written = write_lanes(numbers, lanes=2).option("kafka.bootstrap.servers", broker.bootstrap_servers)
        written.option("topic", topic).option("idempotenceKey", topic).save()
    assert read((broker, topic)) == Counter(range(ROWS))
