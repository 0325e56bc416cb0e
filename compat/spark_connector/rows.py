"""The topic that both formats read, and rows of either in a form that can be compared."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.client import Producer
from headrace.testing import EmbeddedBroker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC = "rows"
TIMED = "timed"
"""Of plain records alone: markers of transactions have the time at which they were written."""

PARTITIONS = 3
ROUNDS = 8
RECORDS = 25
BEGAN_MS = 1_700_000_000_000
STEP_MS = 1_000
"""Between two records of the topic, so that times choose among them."""

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
FORMATS = ("kafka", "headrace")


class Formats(NamedTuple):
    """The rows of each of the two formats."""

    kafka: Any
    headrace: Any


def fill(broker: EmbeddedBroker, topic: str, kinds: Sequence[str] = ("plain", "committed", "aborted")) -> None:
    """Records of these kinds, compressed and not, with keys, values and headers that may be missing."""
    broker.create_topic(topic, partitions=PARTITIONS, configs={"retention.ms": "-1"})  # their times are long past
    number = 0
    for round_number in range(ROUNDS):
        kind = kinds[round_number % len(kinds)]
        with Producer(
            bootstrap_servers=broker.bootstrap_servers,
            compression=COMPRESSIONS[round_number % len(COMPRESSIONS)],
            transactional_id=None if kind == "plain" else "filling",
        ) as producer:
            transaction = None if kind == "plain" else producer.transaction()
            for _ in range(RECORDS):
                _send(producer, topic, number)
                number += 1
            producer.flush()
            if transaction is not None:
                transaction.commit() if kind == "committed" else transaction.abort()


def _send(producer: Producer, topic: str, number: int) -> None:
    producer.send(
        topic,
        None if number % 7 == 3 else b"value %d" % number,
        key=None if number % 5 == 2 else b"key %d" % number,
        partition=number % PARTITIONS,
        headers=[("number", b"%d" % number), ("empty", b""), ("none", None)][: number % 4],
        timestamp=BEGAN_MS + number * STEP_MS,
    )


def read_both(spark: "SparkSession", broker: EmbeddedBroker, options: Mapping[str, str]) -> Formats:
    """A batch read with the same options by both."""
    return Formats(*(rows_of(reader(spark.read, each, broker, options).load()) for each in FORMATS))


def reader(read: Any, form: str, broker: EmbeddedBroker, options: Mapping[str, str]) -> Any:
    return read.format(form).option("kafka.bootstrap.servers", broker.bootstrap_servers).options(**options)


def rows_of(frame: "DataFrame") -> list[tuple[Any, ...]]:
    """In the order of topics, partitions and offsets, as plain values."""
    ordered = frame.orderBy("topic", "partition", "offset").collect()
    return [tuple(_plain(each) for each in row) for row in ordered]


def _plain(value: Any) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list):
        return [(each["key"], _plain(each["value"])) for each in value]
    return value
