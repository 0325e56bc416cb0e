"""Batch reads give what an ordinary consumer is given, for every way of saying what to read."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace.client import Admin, Producer, TopicPartition
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.source.test_stream import Collected, run_available
from tests.spark.source.topics import as_columns, consume, load, load_stream, produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GENERATED_TOPICS = 6

byte_strings = st.none() | st.binary(max_size=20) | st.integers(60, 200).map(bytes)
steps = st.lists(
    st.tuples(
        st.sampled_from(["plain", "committed", "aborted"]),
        st.lists(
            st.tuples(
                byte_strings,
                byte_strings,
                st.integers(0, 1),
                st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2),
                st.integers(0, 2**40),
            ),
            min_size=1,
            max_size=8,
        ),
        st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"]),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=GENERATED_TOPICS, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(written=steps, segment_bytes=st.sampled_from([100, 1_000, 1_000_000]), offsets_max=st.integers(1, 30))
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_generated_topics_are_read_as_a_consumer_reads_them(
    spark: "SparkSession",
    broker: EmbeddedBroker,
    tmp_path: Path,
    isolation: str,
    written: list,
    segment_bytes: int,
    offsets_max: int,
) -> None:
    """By the broker, from its files, from both, and by a stream in bites."""
    configs = {"segment.bytes": str(segment_bytes)}
    topic = broker.create_topic(broker.unused_topic_name("generated"), partitions=2, configs=configs)
    for kind, records, compression in written:
        transactional_id = None if kind == "plain" else f"of-{topic}"
        with Producer(
            bootstrap_servers=broker.bootstrap_servers, compression=compression, transactional_id=transactional_id
        ) as producer:
            transaction = None if kind == "plain" else producer.transaction()
            for key, value, partition, headers, timestamp in records:
                producer.send(topic, value, key=key, partition=partition, headers=headers, timestamp=timestamp)
            producer.flush()
            if transaction is not None:
                transaction.commit() if kind == "committed" else transaction.abort()
    expected = consume(broker, topic, isolation=isolation)
    options = {"includeHeaders": True, "kafka__isolation__level": isolation}
    for scan in ("broker", "direct", "auto"):
        assert as_columns(load(spark, broker, topic, scan=scan, **options).collect()) == expected
    bites = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": offsets_max * len(expected) // 30 + 1}
    seen = Collected()
    run_available(load_stream(spark, broker, topic, **bites, **options), tmp_path / topic, seen.take)
    assert seen.rows == expected
    broker.delete_topic(topic)


def test_the_schema_is_the_kafka_connectors(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    plain = load(spark, broker, topic).schema.simpleString()
    assert plain == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    with_headers = load(spark, broker, topic, includeHeaders=True).schema.simpleString()
    assert with_headers == plain[:-1] + ",headers:array<struct<key:string,value:binary>>>"


def test_an_empty_topic_has_no_rows(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    assert load(spark, broker, topic).collect() == []


def test_offsets_choose_what_is_read(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    for partition in range(2):
        produce(broker, topic, [b"%d" % each for each in range(10)], partition=partition)
    starts = json.dumps({topic: {"0": 3, "1": -2}})
    ends = json.dumps({topic: {"0": 5, "1": -1}})
    rows = load(spark, broker, topic, startingOffsets=starts, endingOffsets=ends).collect()
    assert sorted((row.partition, row.offset) for row in rows) == [(0, 3), (0, 4), *((1, each) for each in range(10))]


def test_times_choose_what_is_read(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(10):
            producer.send(topic, b"v", partition=0, timestamp=1_000 * (number + 1))
            producer.send(topic, b"v", partition=1, timestamp=1_000 * (number + 1))
        producer.flush()
    rows = load(spark, broker, topic, startingTimestamp=3_000, endingTimestamp=6_000).collect()
    assert sorted((row.partition, row.offset) for row in rows) == [(p, o) for p in range(2) for o in range(2, 5)]
    by_partition = {"startingOffsetsByTimestamp": json.dumps({topic: {"0": 9_500, "1": 20_000}})}
    late = load(spark, broker, topic, startingOffsetsByTimestampStrategy="latest", **by_partition).collect()
    assert [(row.partition, row.offset) for row in late] == [(0, 9)]
    with pytest.raises(Exception, match=r'option "startingOffsetsByTimestamp": .* has no record at or after'):
        load(spark, broker, topic, **by_partition).collect()
    ends = {"endingOffsetsByTimestamp": json.dumps({topic: {"0": 2_500, "1": 20_000}})}
    ended = load(spark, broker, topic, **ends).collect()
    assert sorted((row.partition, row.offset) for row in ended) == [(0, 0), (0, 1), *((1, each) for each in range(10))]
    with pytest.raises(Exception, match='"startingTimestamp" and "endingOffsetsByTimestamp" contradict each other'):
        load(spark, broker, topic, startingTimestamp=8_000, **ends).collect()


def test_topics_by_pattern_and_partitions_by_assignment(spark: "SparkSession", broker: EmbeddedBroker) -> None:
    names = [broker.create_topic(f"pattern-{each}-of-topics", partitions=2) for each in ("a", "b", "other")]
    for name in names:
        produce(broker, name, [b"x"] * 4, partition=1)
    matched = load(spark, broker, subscribePattern="pattern-[ab]-.*").collect()
    assert {(row.topic, row.partition) for row in matched} == {(names[0], 1), (names[1], 1)}
    assigned = load(spark, broker, assign=json.dumps({names[2]: [0, 1], names[0]: [0]}))
    assert {(row.topic, row.partition) for row in assigned.collect()} == {(names[2], 1)}
    several = load(spark, broker, subscribe=f"{names[0]}, {names[2]}").groupBy("topic").count().collect()
    assert {row.topic: row["count"] for row in several} == {names[0]: 4, names[2]: 4}


def test_ranges_are_split(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    produce(broker, topic, [b"v"] * 100, partition=0)
    produce(broker, topic, [b"v"] * 10, partition=1)
    split = load(spark, broker, topic, minPartitions=5)
    assert split.rdd.getNumPartitions() >= 5
    assert split.count() == 110
    small = load(spark, broker, topic, maxRecordsPerPartition=20)
    assert small.rdd.getNumPartitions() == 6
    assert as_columns(small.collect()) == consume(broker, topic)


def test_deleted_records_are_not_there_any_more(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    produce(broker, topic, [b"v"] * 20, partition=0)
    with Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 7})
    assert [row.offset for row in load(spark, broker, topic).sort("offset").collect()] == list(range(7, 20))


def test_columns_are_left_out(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    produce(broker, topic, [b"v"] * 3, partition=0)
    chosen = load(spark, broker, topic, columns="offset,key")
    assert chosen.columns == ["offset", "key"]
    assert [(row.offset, bytes(row.key)) for row in chosen.collect()] == [(0, b"0"), (1, b"1"), (2, b"2")]
