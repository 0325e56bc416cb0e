"""Work of a task and of the driver with rows and a real broker, without Spark around them."""

import subprocess
import sys
from collections.abc import Iterator
from time import monotonic
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest

from headrace.client.batch_commits import BatchWriter
from headrace.client.blocking.batch_commits import BatchCommits
from headrace.client.core.partitioners import partition_for_key
from headrace.client.errors import BatchFenced, BrokerError, BrokerUnreachable, ClientError, DeadlineExceeded
from headrace.model.errors import ErrorCode
from headrace.spark import log_once
from headrace.spark.broker_wait import BrokersAway
from headrace.spark.option_names import OptionError
from headrace.spark.sink import commits, connections, tasks
from headrace.spark.sink.commits import BatchNotCommitted, abort, commit
from headrace.spark.sink.identity import Identity
from headrace.spark.sink.options import SinkOptions, parse_sink_options
from headrace.spark.sink.reports import TaskReport
from headrace.spark.sink.rows import RowError
from headrace.spark.sink.tasks import write_rows
from headrace.spark.sink.writers import TopicStreamWriter
from headrace.testing import EmbeddedBroker
from tests.transactions.endings import wait_until_ended

pytestmark = pytest.mark.process

PARTITIONS = 3
WAIT_S_MAX = 60


@pytest.fixture(scope="module")
def own_broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(config={"auto.create.topics.enable": "false"}) as running:
        yield running


@pytest.fixture
def place(own_broker: EmbeddedBroker, request: pytest.FixtureRequest) -> Iterator[tuple[EmbeddedBroker, str]]:
    topic = own_broker.create_topic(own_broker.unused_topic_name(request.node.name), partitions=PARTITIONS)
    yield own_broker, topic
    connections.drop_all()


def options(place: tuple[EmbeddedBroker, str], **more: str) -> SinkOptions:
    return parse_sink_options({"kafka.bootstrap.servers": place[0].bootstrap_servers, "topic": place[1], **more})


def rows(first: int, count: int) -> Iterator[pa.RecordBatch]:
    """In batches of a hundred."""
    for start in range(first, first + count, 100):
        numbers = [str(number) for number in range(start, min(start + 100, first + count))]
        yield pa.record_batch([pa.array(numbers), pa.array(numbers)], names=["key", "value"])


def messages(place: tuple[EmbeddedBroker, str], isolation: str = "read_committed") -> list[Any]:
    """By librdkafka, up to the end of every partition."""
    wait_until_ended(place[0].bootstrap_servers)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": place[0].bootstrap_servers,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(place[1], number, 0) for number in range(PARTITIONS)])
    found: list[Any] = []
    ends = 0
    while ends < PARTITIONS:
        message = consumer.poll(WAIT_S_MAX)
        assert message is not None
        if message.error() is None:
            found.append(message)
        else:
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            ends += 1
    consumer.close()
    return found


def read(place: tuple[EmbeddedBroker, str], *, isolation: str = "read_committed") -> list[int]:
    found = messages(place, isolation)
    assert all(message.key() == message.value() for message in found)
    return [int(message.value()) for message in found]


def task(
    place: tuple[EmbeddedBroker, str], first: int, count: int, *, attempt: int, batch_id: int = 0, run: str = "r1"
) -> Any:
    return write_rows(rows(first, count), options(place), Identity(f"spark.q.{place[1]}", run, batch_id, attempt))


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_at_least_once_rows_are_there_and_in_their_place(place: tuple[EmbeddedBroker, str], compression: str) -> None:
    given = options(place, delivery="at-least-once", **{"kafka.compression.type": compression})
    report = write_rows(rows(0, 2_500), given, None)
    assert (report.identity, report.writer, report.records) == (None, None, 2_500)
    found = messages(place)
    assert sorted(int(message.value()) for message in found) == list(range(2_500))
    assert all(message.partition() == partition_for_key(message.key(), PARTITIONS) for message in found)


def test_headers_and_nulls_arrive(place: tuple[EmbeddedBroker, str]) -> None:
    headers = pa.array([[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None])
    batch = pa.record_batch([pa.array([None, "k"]), pa.array(["v", None]), headers], names=["key", "value", "headers"])
    write_rows(iter([batch]), options(place, delivery="at-least-once"), None)
    found = {(each.key(), each.value(), tuple(each.headers() or ())) for each in messages(place)}
    assert found == {(None, b"v", (("h", b"1"), ("h", None))), (b"k", None, ())}


def test_exactly_once_rows_are_seen_when_the_driver_commits(place: tuple[EmbeddedBroker, str]) -> None:
    reports = [task(place, 0, 500, attempt=1), task(place, 500, 500, attempt=2)]
    assert read(place) == []
    commit(options(place), reports)
    assert sorted(read(place)) == list(range(1_000))
    replayed = task(place, 0, 1_000, attempt=9, run="r2")
    assert (replayed.writer, replayed.records) == (None, 0)
    commit(options(place), [replayed])
    assert sorted(read(place)) == list(range(1_000))
    later = task(place, 1_000, 10, attempt=10, batch_id=1, run="r2")
    commit(options(place), [later])
    assert sorted(read(place)) == list(range(1_010))


def test_attempts_that_lost_are_never_seen(place: tuple[EmbeddedBroker, str]) -> None:
    task(place, 0, 500, attempt=1)
    winner = task(place, 0, 500, attempt=2)
    commit(options(place), [winner])
    assert sorted(read(place)) == list(range(500))
    assert len(read(place, isolation="read_uncommitted")) == 1_000


def test_abort_after_a_commit_that_seemed_to_fail_changes_nothing(place: tuple[EmbeddedBroker, str]) -> None:
    report = task(place, 0, 50, attempt=1)
    commit(options(place), [report])
    abort(options(place), [report])
    assert sorted(read(place)) == list(range(50))
    lost = task(place, 50, 50, attempt=2, batch_id=1)
    abort(options(place), [lost])
    abort(options(place), [])
    commit(options(place), [task(place, 50, 50, attempt=3, batch_id=1)])
    assert sorted(read(place)) == list(range(100))


def test_an_abort_without_any_report_leaves_the_rows_to_the_next_run(place: tuple[EmbeddedBroker, str]) -> None:
    """After the failure of all tasks Spark hands over nothing: not even whose batch it was."""
    task(place, 0, 50, attempt=1)
    TopicStreamWriter(options(place)).abort([None, None], 0)
    commit(options(place), [task(place, 0, 50, attempt=2, run="r2")])
    assert sorted(read(place)) == list(range(50))
    assert len(read(place, isolation="read_uncommitted")) == 100


def test_another_query_id_is_another_history(place: tuple[EmbeddedBroker, str]) -> None:
    """Without its checkpoint a query begins again, and what it reads again it writes again."""
    for query in ("q1", "q2"):
        identity = Identity(f"spark.{query}.{place[1]}", "r1", 0, 1)
        commit(options(place), [write_rows(rows(0, 20), options(place), identity)])
    assert sorted(read(place)) == sorted([*range(20)] * 2)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_brokers_that_stay_away_are_reported_with_the_option(delivery: str) -> None:
    away = {"kafka.bootstrap.servers": "127.0.0.1:9", "kafka.delivery.timeout.ms": "300", "topic": "t"}
    with pytest.raises(BrokersAway, match=r'127\.0\.0\.1:9\) did not respond within option "kafka\.delivery\.timeout'):
        write_rows(rows(0, 1), parse_sink_options({**away, "delivery": delivery}), Identity("spark.q.s", "r", 0, 1))


def test_a_repeated_commit_is_the_same_commit(place: tuple[EmbeddedBroker, str]) -> None:
    report = task(place, 0, 50, attempt=1)
    commit(options(place), [report])
    commit(options(place), [report])
    assert sorted(read(place)) == list(range(50))


def test_an_older_run_can_neither_commit_nor_write(place: tuple[EmbeddedBroker, str]) -> None:
    old = task(place, 0, 50, attempt=1, run="r1")
    new = task(place, 0, 60, attempt=2, run="r2")
    with pytest.raises((BatchFenced, BatchNotCommitted)):
        commit(options(place), [old])
    with pytest.raises(BatchFenced):
        task(place, 0, 50, attempt=3, run="r1")
    commit(options(place), [new])
    assert sorted(read(place)) == list(range(60))


def test_a_commit_of_an_aborted_writer_says_why_and_what_to_do(place: tuple[EmbeddedBroker, str]) -> None:
    report = task(place, 0, 50, attempt=1)
    abort(options(place), [report])
    causes = "no task of the run was heard of for kafka.transaction.timeout.ms, or the broker's machine was restarted"
    with pytest.raises(BatchNotCommitted, match=f"{causes}.*No row of it is in the topics: restart the query"):
        commit(options(place), [report])
    assert read(place) == []


def test_a_second_write_of_one_run_under_one_name_is_refused(place: tuple[EmbeddedBroker, str]) -> None:
    commit(options(place), [task(place, 0, 50, attempt=1)])
    second = task(place, 50, 50, attempt=2)
    with pytest.raises(BatchNotCommitted, match="a different option sinkName"):
        commit(options(place), [second])
    assert sorted(read(place)) == list(range(50))


def test_a_second_write_is_not_passed_over_when_a_later_run_repeats_the_batch(
    place: tuple[EmbeddedBroker, str],
) -> None:
    """The run was killed between the two."""
    owner = f"spark.q.{place[1]}"

    def repeated(first: int, write: str, attempt: int) -> None:
        report = write_rows(rows(first, 50), options(place), Identity(owner, "r2", 0, attempt, write))
        assert report.writer is None
        commit(options(place), [report])

    commit(options(place), [task(place, 0, 50, attempt=1, run="r1")])
    repeated(0, "first", 2)
    repeated(0, "first", 3)
    with pytest.raises(BatchNotCommitted, match="keep the name of the first"):
        repeated(50, "second", 4)
    assert sorted(read(place)) == list(range(50))


def test_a_failing_row_fails_the_task_and_nothing_is_seen(place: tuple[EmbeddedBroker, str]) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from rows(0, 300)
        yield pa.record_batch([pa.array(["k"]), pa.array(["v" * 2_000_000])], names=["key", "value"])

    identity = Identity(f"spark.q.{place[1]}", "r1", 0, 1)
    with pytest.raises(RowError, match=r"larger than kafka\.max\.request\.size=1048576"):
        write_rows(broken(), options(place), identity)
    with pytest.raises(RowError, match=r"larger than kafka\.max\.request\.size=1048576"):
        write_rows(broken(), options(place, delivery="at-least-once"), None)
    commit(options(place), [task(place, 0, 20, attempt=2)])
    assert set(range(20)) <= set(read(place))


def test_batches_are_no_larger_than_the_topic_takes(own_broker: EmbeddedBroker) -> None:
    topic = own_broker.create_topic("small-batches", partitions=PARTITIONS, configs={"max.message.bytes": "3000"})
    write_rows(rows(0, 2_000), options((own_broker, topic), delivery="at-least-once"), None)
    assert sorted(read((own_broker, topic))) == list(range(2_000))


def test_a_topic_that_does_not_exist_is_named(place: tuple[EmbeddedBroker, str]) -> None:
    given = options(place, delivery="at-least-once", topic="nowhere")
    with pytest.raises(Exception, match=r"topic 'nowhere' cannot be written to.*create it with"):
        write_rows(rows(0, 1), given, None)


def test_what_is_in_force_is_said_once(
    place: tuple[EmbeddedBroker, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_once, "_said", {})
    for attempt in range(2):
        task(place, 0, 1, attempt=attempt)
    assert (
        capsys.readouterr().err == f"headrace: rows are written exactly once, by batch commits of spark.q.{place[1]}\n"
    )
    for _ in range(2):
        write_rows(rows(0, 1), options(place), None)
    assert "at least once: a batch job without the option idempotenceKey" in capsys.readouterr().err
    with pytest.raises(OptionError, match="in a batch job needs the option idempotenceKey"):
        write_rows(rows(0, 1), options(place, delivery="exactly-once"), None)


def test_a_batch_that_is_passed_over_is_said(
    place: tuple[EmbeddedBroker, str], capsys: pytest.CaptureFixture[str]
) -> None:
    commit(options(place), [task(place, 0, 5, attempt=1, batch_id=3)])
    assert "nothing was written" not in capsys.readouterr().err
    commit(options(place), [task(place, 5, 5, attempt=2, batch_id=2, run="r2")])
    told = f"headrace: nothing was written: batch 2 of spark.q.{place[1]}, or a later one, is committed already\n"
    assert told in capsys.readouterr().err
    assert sorted(read(place)) == list(range(5))


def test_a_query_that_the_brokers_have_forgotten_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """Its last batch, replayed, is there twice: that is what docs/guarantees.md says, and the log of the query."""
    expiry = {
        "transactional.id.expiration.ms": "1",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "50",
    }
    with EmbeddedBroker(config=expiry) as broker:
        place = broker, broker.create_topic("t", partitions=PARTITIONS)
        commit(options(place), [task(place, 0, 5, attempt=1, batch_id=0)])
        assert "the brokers have no batch" not in capsys.readouterr().err
        wait_until_forgotten(broker, "spark.q.t")
        commit(options(place), [task(place, 5, 5, attempt=2, batch_id=1, run="r2")])
        told = "headrace: the brokers have no batch of spark.q.t from before batch 1. That is correct for a new sink."
        assert told in capsys.readouterr().err
        wait_until_forgotten(broker, "spark.q.t")
        commit(options(place), [task(place, 5, 5, attempt=3, batch_id=1, run="r3")])
        assert sorted(read(place)) == sorted([*range(10), *range(5, 10)])
        connections.drop_all()


def wait_until_forgotten(broker: EmbeddedBroker, owner: str) -> None:
    deadline_s = monotonic() + WAIT_S_MAX
    with BatchCommits(broker.bootstrap_servers) as batch_commits:
        while monotonic() < deadline_s:
            try:
                batch_commits.describe(owner)
            except BrokerError as error:
                if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise
                return
    raise AssertionError(f"{owner} is still known")


def test_a_query_that_the_brokers_know_causes_no_report(
    place: tuple[EmbeddedBroker, str], capsys: pytest.CaptureFixture[str]
) -> None:
    commit(options(place), [task(place, 0, 5, attempt=1, batch_id=0)])
    commit(options(place), [task(place, 5, 4, attempt=2, batch_id=1), task(place, 9, 1, attempt=3, batch_id=1)])
    assert "the brokers have no batch" not in capsys.readouterr().err


def test_brokers_without_the_feature(
    place: tuple[EmbeddedBroker, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.client.blocking.batch_commits.BatchCommits.supported", lambda _: False)
    report = task(place, 0, 5, attempt=1)
    assert report.identity is None
    assert "rows are written AT LEAST ONCE: the brokers have no feature" in capsys.readouterr().err
    commit(options(place), [report])
    assert sorted(read(place)) == list(range(5))
    with pytest.raises(OptionError, match="needs brokers with the feature headrace"):
        write_rows(rows(0, 1), options(place, delivery="exactly-once"), Identity("spark.q.s", "r", 0, 1))


def test_a_task_that_writes_for_long_keeps_its_part_alive(
    place: tuple[EmbeddedBroker, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "RENEW_S", 0.0)
    report = task(place, 0, 500, attempt=1)
    commit(options(place), [report])
    assert sorted(read(place)) == list(range(500))


def test_a_short_timeout_is_renewed_in_time(place: tuple[EmbeddedBroker, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """After 14 s of 45 s the task does not renew its writer; after 16 s, more than a third of the timeout, it does."""
    times_s, renewals = iter([0.0, 14.0, 16.0, 16.0, 17.0]), []
    monkeypatch.setattr(tasks, "monotonic", lambda: next(times_s))
    monkeypatch.setattr(tasks, "chunks", lambda batches: batches)
    monkeypatch.setattr(tasks, "_renew", lambda options, batch_commits, writer: renewals.append(writer))
    given = options(place, **{"kafka.transaction.timeout.ms": "45000"})
    report = write_rows([*rows(0, 1), *rows(1, 1), *rows(2, 1)], given, Identity(f"spark.q.{place[1]}", "r", 0, 1))
    assert report.writer is not None
    assert report.writer.timeout_ms == 45_000
    assert renewals == [report.writer]


def test_a_task_that_writes_for_long_waits_for_brokers_that_are_away(
    place: tuple[EmbeddedBroker, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as its rows do, which may be longer than one question takes."""
    monkeypatch.setattr(tasks, "RENEW_S", 0.0)
    answered = BatchCommits.renew
    failures: list[ClientError] = [DeadlineExceeded("no answer"), BrokerUnreachable("away")]

    def renew(batch_commits: BatchCommits, writer: BatchWriter) -> BatchWriter | None:
        if failures:
            raise failures.pop()
        return answered(batch_commits, writer)

    monkeypatch.setattr(BatchCommits, "renew", renew)
    commit(options(place), [task(place, 0, 500, attempt=1)])
    assert (failures, sorted(read(place))) == ([], list(range(500)))


def test_reports_of_different_batches_are_a_mistake() -> None:
    reports = [
        TaskReport(identity=Identity("o", "r", batch_id, 1), writer=None, records=0, batch_bytes=0)
        for batch_id in (1, 2)
    ]
    with pytest.raises(AssertionError):
        commits._identity(reports)


ENDS_WITH_CONNECTIONS = """
import sys
from headrace.client.blocking.admin import Admin
from headrace.spark import range_reader
from headrace.spark.sink import connections

connections.kept("admin", "settings", lambda: Admin(sys.argv[1])).topics([])
range_reader._fetcher({"bootstrap.servers": sys.argv[1]})
"""


def test_a_process_that_ends_closes_what_it_kept(own_broker: EmbeddedBroker) -> None:
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", ENDS_WITH_CONNECTIONS]
    ended = subprocess.run([*command, own_broker.bootstrap_servers], capture_output=True, text=True, timeout=WAIT_S_MAX)
    assert (ended.returncode, ended.stderr) == (0, "")
