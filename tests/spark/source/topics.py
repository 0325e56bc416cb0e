"""Writers of the source's tests to topics, and an ordinary consumer that reads from them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.client import Consumer, Producer, TopicPartition
from headrace.testing.embedded import EmbeddedBroker
from tests.transactions.endings import wait_until_ended

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

Columns = tuple[bytes | None, bytes | None, int, int, int, tuple[tuple[str, bytes | None], ...]]
"""key, value, partition, offset, timestamp in milliseconds, headers"""


def produce(
    broker: EmbeddedBroker, topic: str, values: Iterable[bytes | None], *, partition: int | None = None, **options: Any
) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers, **options) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value, key=b"%d" % number, partition=partition)
        producer.flush()


def consume(
    broker: EmbeddedBroker, topic: str, partitions: Sequence[int] = (0, 1), isolation: str = "read_committed"
) -> list[Columns]:
    """Everything that a consumer is given up to the end, partition by partition."""
    wait_until_ended(broker.bootstrap_servers)
    found: list[Columns] = []
    with Consumer(
        bootstrap_servers=broker.bootstrap_servers, isolation_level=isolation, auto_offset_reset="earliest"
    ) as consumer:
        places = [TopicPartition(topic, each) for each in partitions]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(each) < ends[each] for each in places):
            found += [
                (record.key, record.value, record.partition, record.offset, record.timestamp, record.headers)
                for record in consumer.poll(timeout_ms=200)
            ]
    return sorted(found, key=lambda each: each[2:4])


def as_columns(rows: "Sequence[Row]") -> list[Columns]:
    found = []
    for row in rows:
        fields = row.asDict(recursive=True)
        headers = tuple((each["key"], _bytes(each["value"])) for each in fields.get("headers") or ())
        time = fields["timestamp"]
        milliseconds = round(time.timestamp() * 1000)
        found.append(
            (
                _bytes(fields["key"]),
                _bytes(fields["value"]),
                fields["partition"],
                fields["offset"],
                milliseconds,
                headers,
            )
        )
    return sorted(found, key=lambda each: each[2:4])


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def load(spark: "SparkSession", broker: EmbeddedBroker, topic: str | None = None, **options: object) -> "DataFrame":
    """A batch read."""
    return _with_options(spark.read, broker, topic, options).load()


def load_stream(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str | None = None, **options: object
) -> "DataFrame":
    return _with_options(spark.readStream, broker, topic, options).load()


def _with_options(reader: Any, broker: EmbeddedBroker, topic: str | None, options: dict[str, object]) -> Any:
    reader = reader.format("headrace").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    if topic is not None:
        reader = reader.option("subscribe", topic)
    for name, value in options.items():
        reader = reader.option(name.replace("__", "."), str(value).lower() if isinstance(value, bool) else str(value))
    return reader
