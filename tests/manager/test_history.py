"""History of rates and lag, audit records that are forgotten, and backups of the catalog."""

import gzip
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select, update

from headrace.client import Admin, Producer
from headrace.manager.access.audit import AuditRecord, newest_records, write_record
from headrace.manager.access.users import add_user, create_token, digest_of, identity_of_token, listed_users
from headrace.manager.catalog import history
from headrace.manager.catalog.backup import back_up, restore
from headrace.manager.catalog.database import Catalog
from headrace.manager.catalog.engine import now_ms
from headrace.manager.catalog.history import MINUTE_MS, Measured
from headrace.manager.catalog.shared_keys import shared_key
from headrace.manager.catalog.tables import audit, topic_minutes
from headrace.manager.history_recorder import measure
from headrace.manager.limits import AUDIT_DAYS, HISTORY_DAYS, HISTORY_ROWS_PER_MINUTE_MAX
from headrace.model.ids import TopicPartition
from headrace.operations.errors import OperationError
from headrace.testing import EmbeddedBroker

ORDERS = TopicPartition("orders", 0)
USER = AuditRecord(
    user="ada", address="", request_id="", action="POST /v1/topics", resource="/v1/topics", status=201, detail=""
)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    made = Catalog(f"sqlite:///{tmp_path}/catalog.db")
    yield made
    made.dispose()


@pytest.fixture
def connection(catalog: Catalog) -> Iterator[Connection]:
    with catalog._engine.connect() as connection:
        yield connection


def test_what_was_written_is_the_growth_of_the_ends() -> None:
    new = TopicPartition("new", 0)
    before = Measured({ORDERS: 10, TopicPartition("again", 0): 50}, {})
    after = Measured({ORDERS: 15, TopicPartition("orders", 1): 2, new: 3, TopicPartition("again", 0): 4}, {})
    assert history.written_between(before, after) == {"orders": 7, "new": 3}


def test_lag_is_summed_by_group_and_topic() -> None:
    measured = Measured(
        {ORDERS: 15, TopicPartition("orders", 1): 5},
        {"readers": {ORDERS: 10, TopicPartition("orders", 1): 9, TopicPartition("gone", 0): 1}},
    )
    assert history.lags(measured) == {("readers", "orders"): 5}


def test_of_many_topics_those_with_the_most_records_are_kept() -> None:
    counts = {f"topic-{number}": number for number in range(HISTORY_ROWS_PER_MINUTE_MAX + 10)}
    kept = history.largest(counts)
    assert len(kept) == HISTORY_ROWS_PER_MINUTE_MAX
    assert min(count for _, count in kept) == 10


def test_a_minute_is_stored_once_and_forgotten_after_a_week(connection: Connection) -> None:
    before, after = Measured({ORDERS: 0}, {}), Measured({ORDERS: 7}, {"readers": {ORDERS: 3}})
    for _ in range(2):
        history.record_minute(connection, before, after)
    (written,) = history.written_minutes(connection, "orders", 5)[-1:]
    assert written.records == 7
    assert history.lag_history(connection, "readers", 5)[-1][1:] == ("orders", 4)
    write_record(connection, USER)
    write_record(connection, USER)
    old = written.minute - HISTORY_DAYS * 1_440 - 1
    connection.execute(update(topic_minutes).values(minute=old))
    long_ago = now_ms(connection) - (AUDIT_DAYS + 1) * 86_400_000
    connection.execute(update(audit).where(audit.c.id == 1).values(time_ms=long_ago))
    history.forget_old(connection)
    assert connection.execute(select(topic_minutes)).all() == []
    assert [record.id for record in newest_records(connection, before=None, user=None, limit=10)] == [2]


@pytest.mark.process
def test_a_cluster_is_measured(broker: EmbeddedBroker, topic: str) -> None:
    place = TopicPartition(topic, 1)
    with Producer(broker.bootstrap_servers) as producer, Admin(broker.bootstrap_servers) as admin:
        producer.send(topic, b"x", partition=1)
        producer.flush()
        admin.commit_group_offsets("measured", {place: 0})
        measured = measure(admin)
    assert measured.ends[place] == 1
    assert history.lags(measured)["measured", topic] == 1


@pytest.fixture
def filled(catalog: Catalog) -> tuple[Catalog, bytes]:
    def fill(connection: Connection) -> bytes:
        now = now_ms(connection)
        add_user(connection, "ada", "admin", "hash", now=now)
        _, token = create_token(connection, "ada", "kept", None, now=now)
        write_record(connection, USER)
        connection.execute(insert(topic_minutes).values(topic="orders", minute=now // MINUTE_MS, records=5))
        shared_key(connection, "masking")
        return digest_of(token)

    return catalog, catalog.run_here(fill, writes=True)


def check_restored(catalog: Catalog, token: bytes) -> None:
    def check(connection: Connection) -> None:
        assert [(user.name, user.role) for user in listed_users(connection)] == [("ada", "admin")]
        assert identity_of_token(connection, token, now=now_ms(connection)) is not None
        assert history.written_minutes(connection, "orders", 5)
        write_record(connection, USER)
        assert len(newest_records(connection, before=None, user="ada", limit=10)) == 2

    catalog.run_here(check, writes=True)


def test_a_backup_restores_users_tokens_audit_records_and_history(
    filled: tuple[Catalog, bytes], tmp_path: Path
) -> None:
    source, token = filled
    file = tmp_path / "backup"
    count = source.run_here(lambda connection: back_up(connection, file), writes=False)
    assert file.stat().st_mode & 0o077 == 0
    target = Catalog(f"sqlite:///{tmp_path}/other.db")
    assert target.run_here(lambda connection: restore(connection, file, replace=False), writes=True) == count
    check_restored(target, token)
    with pytest.raises(OperationError, match="not empty"):
        target.run_here(lambda connection: restore(connection, file, replace=False), writes=True)
    target.run_here(lambda connection: restore(connection, file, replace=True), writes=True)
    check_restored(target, token)
    target.dispose()


def test_a_file_that_is_no_backup_changes_nothing(filled: tuple[Catalog, bytes], tmp_path: Path) -> None:
    catalog, token = filled
    file = tmp_path / "backup"
    catalog.run_here(lambda connection: back_up(connection, file), writes=False)
    good = gzip.decompress(file.read_bytes())
    compressed = file.read_bytes()
    wrong = {
        "cut": compressed[: len(compressed) // 2],
        "plain": b"not a backup",
        "other": gzip.compress(b'{"format":"other","revision":"1"}\n'),
        "newer": gzip.compress(b'{"format":"headrace-catalog","revision":"9999"}\n'),
        "table": gzip.compress(good + b'["leases",{"name":"changes"}]\n'),
        "column": gzip.compress(good + b'["users",{"unknown":1}]\n'),
    }
    for content in wrong.values():
        file.write_bytes(content)
        with pytest.raises(OperationError):
            catalog.run_here(lambda connection: restore(connection, file, replace=True), writes=True)
    check_restored(catalog, token)


def test_times_of_the_database_are_those_of_the_machine(connection: Connection) -> None:
    assert abs(now_ms(connection) - time.time() * 1_000) < 60_000
