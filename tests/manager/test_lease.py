"""The lease of the catalog: one holder at a time, and no write by one that has lost it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select

from headrace.manager.access.throttle import begin_attempt, succeed
from headrace.manager.catalog.database import Catalog
from headrace.manager.catalog.engine import WRITES, catalog_url, open_engine
from headrace.manager.catalog.lease import Instance, LeaseLost, beat, listed, release, require
from headrace.manager.catalog.migration import current_revision, migrate, prepare
from headrace.manager.catalog.tables import REVISION, managers, metadata, users
from headrace.manager.limits import (
    LEASE_MS,
    LOGIN_FAILURES_BY_PAIR_MAX,
    LOGIN_FAILURES_FORGOTTEN_SECONDS,
    LOGIN_WAIT_SECONDS_MAX,
)
from headrace.operations.errors import OperationError

ADA, BOB = Instance("ada", "http://ada", "1"), Instance("bob", "http://bob", "1")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    url = catalog_url(f"sqlite:///{tmp_path}/catalog.db")
    migrate(url)
    engine = open_engine(url)
    with engine.connect().execution_options(**WRITES) as made:
        yield made
    engine.dispose()


def test_the_first_manager_holds_the_lease_until_it_expires(connection: Connection) -> None:
    assert beat(connection, ADA, now=1_000, started_ms=1_000).epoch == 1
    waiting = beat(connection, BOB, now=1_000 + LEASE_MS - 1, started_ms=1_000)
    assert (waiting.epoch, waiting.holder, waiting.holder_url) == (None, "ada", "http://ada")
    assert beat(connection, BOB, now=1_000 + LEASE_MS, started_ms=1_000).epoch == 2
    assert beat(connection, ADA, now=1_000 + LEASE_MS, started_ms=1_000).epoch is None


def test_a_heartbeat_keeps_the_epoch(connection: Connection) -> None:
    assert [beat(connection, ADA, now=at, started_ms=0).epoch for at in (0, 500, 10_000)] == [1, 1, 1]


def test_a_holder_that_wakes_up_late_writes_nothing(connection: Connection) -> None:
    held = beat(connection, ADA, now=0, started_ms=0).epoch
    assert held is not None
    require(connection, holder="ada", epoch=held)
    beat(connection, BOB, now=LEASE_MS, started_ms=0)
    with pytest.raises(LeaseLost):
        require(connection, holder="ada", epoch=held)
    beat(connection, ADA, now=2 * LEASE_MS, started_ms=0)  # Holds it again, in another epoch.
    with pytest.raises(LeaseLost):
        require(connection, holder="ada", epoch=held)


def test_a_manager_that_stops_gives_the_lease_up(connection: Connection) -> None:
    beat(connection, ADA, now=0, started_ms=0)
    release(connection, ADA)
    assert beat(connection, BOB, now=1, started_ms=0).epoch == 2
    assert [each.id for each in connection.execute(select(managers))] == ["bob"]
    assert listed(connection) == []  # By the database's time its heartbeat is old.


def test_failed_logins_double_the_pause_and_are_forgotten(connection: Connection) -> None:
    def attempt(at_s: int, user: str = "ada") -> int:
        return begin_attempt(connection, user, "10.0.0.1", now=at_s * 1_000)

    assert [attempt(0) for _ in range(LOGIN_FAILURES_BY_PAIR_MAX)] == [0] * LOGIN_FAILURES_BY_PAIR_MAX
    assert attempt(0) == 1
    assert attempt(1) == 0
    assert attempt(1) == 2
    assert attempt(0, "bob") == 0
    for at_s in range(100, 100 + 20 * LOGIN_WAIT_SECONDS_MAX, LOGIN_WAIT_SECONDS_MAX):
        assert attempt(at_s) == 0
    assert attempt(at_s) == LOGIN_WAIT_SECONDS_MAX
    assert attempt(at_s + LOGIN_FAILURES_FORGOTTEN_SECONDS + 1) == 0


def test_a_login_that_succeeds_is_not_counted(connection: Connection) -> None:
    for at in range(200):
        assert begin_attempt(connection, "ada", "10.0.0.1", now=at) == 0
        succeed(connection, "ada", "10.0.0.1")


def test_the_migrations_make_the_tables_of_the_code(tmp_path: Path) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    url = catalog_url(f"sqlite:///{tmp_path}/catalog.db")
    migrate(url)
    engine = prepare(url)
    assert current_revision(engine) == REVISION
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()
    assert (tmp_path / "catalog.db").stat().st_mode & 0o077 == 0


def test_a_catalog_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    url = catalog_url(f"sqlite:///{tmp_path}/catalog.db")
    migrate(url)
    engine = open_engine(url)
    with engine.connect().execution_options(**WRITES) as connection, connection.begin():
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()
    with pytest.raises(OperationError, match="update headrace"):
        migrate(url)


def test_a_url_of_a_catalog_names_a_file_or_a_server() -> None:
    assert catalog_url("postgresql://db/x").drivername == "postgresql+psycopg"
    for wrong in ("sqlite://", "sqlite:///:memory:", "mysql://db/x", "catalog.db", "postgresql://db:port/x"):
        with pytest.raises(OperationError):
            catalog_url(wrong)


def test_a_refusal_does_not_show_the_password(tmp_path: Path) -> None:
    with pytest.raises(OperationError) as refused:
        Catalog("postgresql://ada:secret-password@127.0.0.1:1/x")
    assert "secret-password" not in str(refused.value)
    assert "127.0.0.1" in str(refused.value)
    (tmp_path / "file").write_text("this is no database, but it is long enough to look like one" * 100)
    with pytest.raises(OperationError, match="not a database"):
        Catalog(f"sqlite:///{tmp_path}/file")


def test_sql_in_a_name_is_text(connection: Connection) -> None:
    connection.execute(insert(users).values(name="x'; DROP TABLE users; --", role="admin", password="", created_ms=0))
    assert connection.execute(select(users.c.name)).scalar() == "x'; DROP TABLE users; --"
