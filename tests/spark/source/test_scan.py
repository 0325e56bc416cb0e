"""Segment files read by executors: the rows of a consumer, and the broker where files are not what is meant."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.client import Admin, NewTopic, Producer, TopicPartition
from headrace.client.blocking.scans import Scans
from headrace.client.scans import ScanManifest
from headrace.client.types import ConfigChange, ConfigOperation, ConfigResource, ResourceType
from headrace.spark import log_once, scan_reader
from headrace.spark.range_planner import OffsetRange
from headrace.spark.scan_plan import ScanPiece, plan_scan
from headrace.spark.scan_reader import read_piece
from headrace.spark.source_options import SourceOptions, parse_source_options
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.source.topics import as_columns, consume, load
from tests.transactions.endings import wait_until_ended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_SEGMENTS = {"segment.bytes": "2000", "index.interval.bytes": "200", "min.cleanable.dirty.ratio": "0.01"}


@pytest.fixture
def segmented(broker: EmbeddedBroker) -> Iterator[str]:
    """A topic of many small segments, with transactions, every compression, headers, deletions and a live tail."""
    topic = broker.unused_topic_name("segmented")
    with Admin(broker.bootstrap_servers) as admin:
        assert not admin.create_topics([NewTopic(topic, partitions=2, configs=SMALL_SEGMENTS)])[topic].error
        for round_, compression in enumerate(("none", "gzip", "snappy", "lz4", "zstd") * 2):
            is_transaction = round_ % 3 != 0
            with Producer(
                bootstrap_servers=broker.bootstrap_servers,
                compression=compression,
                transactional_id=f"of-{topic}" if is_transaction else None,
                batch_size=700,
            ) as producer:
                transaction = producer.transaction() if is_transaction else None
                for number in range(40):
                    key = None if number % 7 == 0 else b"%d" % (number % 13)
                    headers = [("n", b"%d" % number)] if number % 5 == 0 else []
                    producer.send(topic, bytes(number * 3), key=key, partition=number % 2, headers=headers)
                producer.flush()
                if transaction is not None:
                    transaction.abort() if round_ % 3 == 1 else transaction.commit()
        admin.delete_records({TopicPartition(topic, 0): 33})
    wait_until_ended(broker.bootstrap_servers)
    yield topic
    broker.delete_topic(topic)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("scan", ["direct", "auto", "broker"])
def test_a_scan_gives_the_rows_of_a_consumer(
    spark: "SparkSession", broker: EmbeddedBroker, segmented: str, scan: str, isolation: str
) -> None:
    frame = load(spark, broker, segmented, scan=scan, includeHeaders=True, kafka__isolation__level=isolation)
    assert as_columns(frame.collect()) == consume(broker, segmented, isolation=isolation)


def test_a_compacted_topic_is_scanned_as_a_consumer_reads_it(
    spark: "SparkSession", broker: EmbeddedBroker, segmented: str
) -> None:
    resource = ConfigResource(ResourceType.TOPIC, segmented)
    with Admin(broker.bootstrap_servers) as admin:
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for number in range(200):
                producer.send(segmented, b"last", key=b"%d" % (number % 5), partition=1)
            producer.flush()
        before = len(consume(broker, segmented))
        changes = [("cleanup.policy", "compact"), ("headrace.compact.request", "now")]
        for name, value in changes:
            admin.alter_configs({resource: [ConfigChange(ConfigOperation.SET, name, value)]})
        while len(found := consume(broker, segmented)) >= before:
            pass
    for scan in ("direct", "auto"):
        rows = load(spark, broker, segmented, scan=scan, includeHeaders=True).collect()
        while (now := consume(broker, segmented)) != found:  # the other partition was still being compacted
            rows, found = load(spark, broker, segmented, scan=scan, includeHeaders=True).collect(), now
        assert as_columns(rows) == found


def options_of(broker: EmbeddedBroker, topic: str, **more: str) -> SourceOptions:
    return parse_source_options(
        {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, "columns": "offset", **more}
    )


def planned(broker: EmbeddedBroker, topic: str, begin: int, end: int, **more: str) -> tuple[list, SourceOptions]:
    options = options_of(broker, topic, **more)
    return plan_scan([OffsetRange(TopicPartition(topic, 1), begin, end)], options, {}), options


def test_closed_segments_come_from_files_and_the_tail_from_the_broker(broker: EmbeddedBroker, segmented: str) -> None:
    pieces, _ = planned(broker, segmented, 0, 10**6, scan="auto")
    kinds = [isinstance(each, ScanPiece) for each in pieces]
    assert kinds == sorted(kinds, reverse=True)
    assert kinds[0]
    assert not kinds[-1]
    whole, _ = planned(broker, segmented, 0, pieces[0].wanted.end + 1, scan="direct")
    assert all(isinstance(each, ScanPiece) for each in whole)


def offsets_of(pieces: list, options: SourceOptions) -> list[int | None]:
    from pyspark.sql.types import LongType, StructField, StructType

    schema = StructType([StructField("offset", LongType())])
    batches = [batch for piece in pieces for batch in read_piece(piece, options, schema)]
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_any_part_of_a_segment_is_found_by_its_index(broker: EmbeddedBroker, segmented: str) -> None:
    every = [row[3] for row in consume(broker, segmented, [1])]
    for begin, end in ((0, 500), (7, 8), (50, 90), (101, 333)):
        pieces, options = planned(broker, segmented, begin, end, scan="direct", maxRecordsPerPartition="17")
        found = offsets_of([each for each in pieces if isinstance(each, ScanPiece)], options)
        assert found == [offset for offset in every if begin <= offset < end]


def damage(piece: ScanPiece, how: str) -> ScanPiece:
    place = piece.place
    if how == "no such folder":
        place = place._replace(directory="/nowhere")
    elif how == "another cluster":
        place = place._replace(cluster_id="other")
    elif how == "another directory":
        place = place._replace(directory_id="other")
    elif how == "another topic":
        place = place._replace(topic_id=bytes(16))
    elif how == "a short file":
        part = piece.parts[0]
        segment = part.segment._replace(size_bytes=part.segment.size_bytes + 10**9)
        return ScanPiece(piece.wanted, place, (part._replace(segment=segment), *piece.parts[1:]))
    elif how == "another base offset":
        part = piece.parts[0]
        segment = part.segment._replace(base_offset=part.segment.base_offset + 1)
        return ScanPiece(piece.wanted, place, (part._replace(segment=segment), *piece.parts[1:]))
    elif how == "a lease that is over":
        for file in Path(place.directory, place.folder).iterdir():
            file.unlink()
    return ScanPiece(piece.wanted, place, piece.parts)


@pytest.mark.parametrize(
    "how",
    [
        "no such folder",
        "another cluster",
        "another directory",
        "another topic",
        "a short file",
        "another base offset",
        "a lease that is over",
    ],
)
def test_files_that_are_not_the_ones_meant_are_left_for_the_broker(
    broker: EmbeddedBroker,
    segmented: str,
    how: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_once, "_said", {})
    pieces, options = planned(broker, segmented, 0, 300, scan="auto")
    piece = damage(pieces[0], how)
    for _ in range(2):
        found = offsets_of([piece], options)
    wanted = range(piece.wanted.begin, piece.wanted.end)
    assert found == [row[3] for row in consume(broker, segmented, [1]) if row[3] in wanted]
    assert found
    assert capsys.readouterr().err.count("headrace: reading through the broker instead of from files: ") == 1


def test_a_broker_that_gives_no_files_is_read_through_and_that_is_said(
    broker: EmbeddedBroker, segmented: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_once, "_said", {})
    monkeypatch.setattr(Scans, "supported", lambda _: False)
    for _ in range(2):
        pieces, _options = planned(broker, segmented, 0, 300, scan="direct")
        assert not any(isinstance(each, ScanPiece) for each in pieces)
    assert capsys.readouterr().err == (
        'headrace: option "scan" is direct, but this broker does not share its files; reading through the broker\n'
    )


def test_a_job_of_many_short_pieces_keeps_its_files(
    broker: EmbeddedBroker, segmented: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece takes less than the time after which a lease is renewed, and all of them far longer."""
    pieces, options = planned(broker, segmented, 0, 300, scan="direct", maxRecordsPerPartition="20")
    files = [each for each in pieces if isinstance(each, ScanPiece)]
    assert len(files) > 5
    renewed: list[ScanManifest] = []
    clock = [files[0].place.planned_s]
    monkeypatch.setattr(scan_reader, "_renewed_s", {})
    monkeypatch.setattr(scan_reader, "time", lambda: clock[0])
    monkeypatch.setattr(Scans, "renew", lambda _, manifest: renewed.append(manifest))
    for piece in files:
        offsets_of([piece], options)
        clock[0] += scan_reader.RENEW_S * 0.6
    assert len(renewed) == (len(files) - 1) // 2
    assert renewed[0].leases == files[0].place.leases != ()


@pytest.mark.parametrize("scan", ["direct", "auto"])
def test_files_are_cut_into_as_many_tasks_as_asked_for(broker: EmbeddedBroker, segmented: str, scan: str) -> None:
    few, _ = planned(broker, segmented, 0, 200, scan=scan)
    pieces, options = planned(broker, segmented, 0, 200, scan=scan, minPartitions="12")
    assert len(few) < 12 <= len(pieces) < 40
    files = [each for each in pieces if isinstance(each, ScanPiece)]
    begin, end = files[0].wanted.begin, files[-1].wanted.end
    every = [row[3] for row in consume(broker, segmented, [1])]
    assert offsets_of(files, options) == [offset for offset in every if begin <= offset < end]
    assert [each.wanted.begin for each in pieces[1:]] == [each.wanted.end for each in pieces[:-1]]
