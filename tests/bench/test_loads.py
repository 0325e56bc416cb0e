"""Loads on a running broker, by the C client and by Python: what is right counts, and what is wrong is noticed."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.bench.brokers import MeasuredBroker
from headrace.bench.consume import LIBRDKAFKA, REPLAY, ConsumeRounds, fill_topic
from headrace.bench.errors import RunRejected
from headrace.bench.latency import ColdReaderRounds, OneAtATimeRounds, RoundTripRounds, _Reading
from headrace.bench.loads import ProduceLoad
from headrace.bench.produce import LibrdkafkaProduceRounds, ProduceRounds, check_arrival, prepare_topic, send
from headrace.bench.replay import ReplayClient, ReplayReport
from headrace.bench.requests import fetch_frames
from headrace.bench.topics import create_topics, end_offsets
from headrace.testing import EmbeddedBroker
from tools.bench.durable import DurableRounds
from tools.bench.metadata import MetadataRounds

pytestmark = pytest.mark.process

TINY = ProduceLoad(connections=3, depth=4, records=2, record_bytes=100, partitions=2, seconds=20, bytes_max=20_000)
"""Ends by its bytes, so that it takes no longer than it must."""

TINY_BATCH_BYTES = 283


@pytest.mark.parametrize("acks", [-1, 0])
def test_every_record_arrives_once(broker: MeasuredBroker, client: ReplayClient, topic: str, acks: int) -> None:
    rounds = ProduceRounds(broker, client, replace(TINY, acks=acks), topic=topic)
    for _ in range(2):
        found = rounds()
        assert found["requests_per_second"] > 0
        assert found["cpu_us_per_request"] >= 0
        assert ("p99_us" in found) == (acks != 0)
    assert sum(end_offsets(broker.address, f"{topic}-2", partitions=2)) >= 2 * 20_000 // TINY_BATCH_BYTES - 6


def test_a_paced_load_takes_its_time(broker: MeasuredBroker, any_client: ReplayClient, topic: str) -> None:
    frames = prepare_topic(broker.address, topic, TINY)
    limits = {"seconds": 60.0, "requests_max": 3 * 5}
    report = any_client.exchange(broker.address, frames, depth=4, interval_us=50_000, **limits)
    assert report.requests == 3 * 5
    assert report.seconds >= 4 * 0.05
    check_arrival(any_client, broker.address, topic, TINY, report)


def test_sequences_continue_where_a_repeated_one_would_be_a_duplicate(
    broker: MeasuredBroker, client: ReplayClient, topic: str
) -> None:
    """The same frames again begin at sequence 0, which the broker takes for a retry or refuses; records do not grow."""
    load = replace(TINY, connections=1, depth=1, partitions=1, bytes_max=TINY_BATCH_BYTES * 20)
    frames = prepare_topic(broker.address, topic, load)
    send(client, broker.address, frames, load)
    before = end_offsets(broker.address, topic, partitions=1)
    with pytest.raises(RunRejected, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        send(client, broker.address, frames, load)
    assert end_offsets(broker.address, topic, partitions=1) == before


def test_a_broker_that_refuses_is_noticed(broker: MeasuredBroker, client: ReplayClient, topic: str) -> None:
    frames = prepare_topic(broker.address, topic, TINY, configs={"max.message.bytes": "100"})
    with pytest.raises(RunRejected, match="MESSAGE_TOO_LARGE"):
        send(client, broker.address, frames, TINY)


def test_a_refused_write_without_answers_is_noticed(broker: MeasuredBroker, client: ReplayClient, topic: str) -> None:
    load = replace(TINY, acks=0)
    frames = prepare_topic(broker.address, topic, load, configs={"max.message.bytes": "100"})

    def send_and_check() -> None:
        check_arrival(client, broker.address, topic, load, send(client, broker.address, frames, load))

    with pytest.raises(RunRejected):
        send_and_check()


def test_a_missing_record_is_noticed(broker: MeasuredBroker, any_client: ReplayClient, topic: str) -> None:
    frames = prepare_topic(broker.address, topic, TINY)
    report = send(any_client, broker.address, frames, TINY)
    with pytest.raises(RunRejected, match="were acknowledged, but the partitions hold"):
        check_arrival(any_client, broker.address, topic, TINY, replace(report, requests=report.requests + 1))


def test_a_damaged_record_is_noticed(client: ReplayClient, tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=str(tmp_path / "data")) as own:
        frames = prepare_topic(own.bootstrap_servers, "damaged", TINY)
        report = send(client, own.bootstrap_servers, frames, TINY)
        check_arrival(client, own.bootstrap_servers, "damaged", TINY, report)
        segment = tmp_path / "data" / "damaged-0" / f"{0:020d}.log"
        with segment.open("r+b") as file:
            file.seek(TINY_BATCH_BYTES - 10)
            file.write(b"\xff\xff")
        with pytest.raises(RunRejected, match="CORRUPT_MESSAGE"):
            check_arrival(client, own.bootstrap_servers, "damaged", TINY, report)


def test_a_fetch_that_cannot_end_is_noticed(broker: MeasuredBroker, client: ReplayClient, topic: str) -> None:
    create_topics(broker.address, [topic], partitions=1)
    frames = fetch_frames(topic, [0], bytes_max=1000, wait_ms_max=10)
    with pytest.raises(RunRejected, match="was not reached"):
        client.fetch(broker.address, frames, [(0, 5)], seconds=0.1)


def test_raw_fetches_read_everything(broker: MeasuredBroker, client: ReplayClient, topic: str) -> None:
    found = ConsumeRounds(broker, client, topic=topic, total_bytes=3_000_000, partitions=2, by=REPLAY)()
    assert found["megabytes_per_second"] > 0


def test_librdkafka_sends_and_reads_everything(broker: MeasuredBroker, any_client: ReplayClient, topic: str) -> None:
    load = replace(TINY, record_bytes=1000, bytes_max=1_000_000)
    assert LibrdkafkaProduceRounds(broker, load, topic=f"{topic}-sent")()["megabytes_per_second"] > 0
    read = ConsumeRounds(broker, any_client, topic=f"{topic}-read", total_bytes=3_000_000, partitions=2, by=LIBRDKAFKA)
    assert read()["cpu_seconds_per_gigabyte"] >= 0


def test_round_trips_have_percentiles(broker: MeasuredBroker, client: ReplayClient, topic: str) -> None:
    found = RoundTripRounds(broker, client, topic=topic, count=20, by=REPLAY)()
    assert 0 < found["p50_us"] <= found["p99_us"]


def test_every_round_trip_is_counted_once(broker: MeasuredBroker, client: ReplayClient, topic: str) -> None:
    """And not the acknowledgement of what was produced, which comes at another time."""
    load = ProduceLoad(connections=1, depth=1, records=1, record_bytes=100, partitions=1)
    produced = prepare_topic(broker.address, topic, load)
    fetched = fetch_frames(topic, [0], bytes_max=1 << 20, wait_ms_max=10_000)
    report = client.round_trips(broker.address, produced, fetched, count=20, offset=0, pause_us=100)
    assert sum(report.histogram.values()) == report.requests == report.records == 20
    assert report.bytes == 20 * produced.batch_bytes


def test_a_round_trip_that_is_refused_is_noticed(broker: MeasuredBroker, client: ReplayClient, topic: str) -> None:
    load = ProduceLoad(connections=1, depth=1, records=1, record_bytes=100, partitions=1)
    produced = prepare_topic(broker.address, topic, load, configs={"max.message.bytes": "100"})
    fetched = fetch_frames(topic, [0], bytes_max=1 << 20, wait_ms_max=100)
    with pytest.raises(RunRejected, match="MESSAGE_TOO_LARGE"):
        client.round_trips(broker.address, produced, fetched, count=3, offset=0, pause_us=100)


def test_messages_of_librdkafka_have_percentiles(broker: MeasuredBroker, any_client: ReplayClient, topic: str) -> None:
    for rounds in (
        RoundTripRounds(broker, any_client, topic=f"{topic}-trip", count=20, by=LIBRDKAFKA),
        OneAtATimeRounds(broker, topic=f"{topic}-one", count=20),
    ):
        found = rounds()
        assert 0 < found["p50_us"] <= found["p99_us"]


def test_a_cold_reader_beside_a_producer(tmp_path: Path, any_client: ReplayClient) -> None:
    with EmbeddedBroker(data_dir=str(tmp_path / "data")) as own:
        broker = MeasuredBroker("headrace", own.bootstrap_servers, own.process_id, tmp_path / "data")
        found = ColdReaderRounds(broker, any_client, topic="paced", cold_bytes=5_000_000, seconds=2.0)()
    assert found["p99_ratio"] == pytest.approx(found["beside_p99_us"] / found["alone_p99_us"])
    assert found["cold_megabytes_per_second"] > 0


def test_a_cold_reader_reads_as_long_as_the_producer_writes() -> None:
    """A fast disk gave all of it in less than half of the time: the rest of the p99 was that of a producer alone."""
    happened: list[str] = []
    read_often = threading.Event()

    class Client:
        def fetch(self, *_arguments: object, **_limits: object) -> ReplayReport:
            happened.append("read")
            if len(happened) >= 6:
                read_often.set()
            return ReplayReport(requests=1, seconds=0.5, bytes=2_000_000, records=1, client_cpu_seconds=0, histogram={})

    with _Reading(Client(), "", "t", [1], lambda: happened.append("forget")) as reading:  # type: ignore[arg-type]
        assert read_often.wait(60)
    assert happened == ["forget", "read"] * (len(happened) // 2)
    assert reading.megabytes_per_second() == pytest.approx(4.0)


def test_what_fails_while_it_reads_is_raised() -> None:
    class Client:
        def fetch(self, *_arguments: object, **_limits: object) -> ReplayReport:
            raise RunRejected("gone")

    with pytest.raises(RunRejected, match="gone"), _Reading(Client(), "", "t", [1], lambda: None):  # type: ignore[arg-type]
        pass


def test_durable_requests_against_bare_syncs(
    broker: MeasuredBroker, any_client: ReplayClient, topic: str, tmp_path: Path
) -> None:
    found = DurableRounds(broker, any_client, replace(TINY, acks=-1), folder=tmp_path, topic=topic)()
    assert found["requests_per_sync"] == pytest.approx(found["requests_per_second"] / found["per_second"])


def test_metadata_of_many_topics(client: ReplayClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedBroker() as own:
        broker = MeasuredBroker("headrace", own.bootstrap_servers, own.process_id)
        rounds = MetadataRounds(broker, client, topic="metadata", topics=3, partitions=2, seconds=0.05)
        found = rounds()
        assert found["cpu_us_per_request"] >= 0
        assert 0.2 < found["response_kilobytes"] < 2
        with monkeypatch.context() as patch:
            patch.setattr(MetadataRounds, "_check", lambda *_: 7)
            with pytest.raises(RunRejected, match="differ in length from the checked one"):
                rounds()
        own.delete_topic("metadata-1")
        with pytest.raises(RunRejected, match="4 of 6 partitions"):
            rounds()


def test_a_topic_is_filled_to_its_size(broker: MeasuredBroker, any_client: ReplayClient, topic: str) -> None:
    ends = fill_topic(broker, any_client, topic, 4_200_000, 2)
    assert ends == [2000, 2000]
