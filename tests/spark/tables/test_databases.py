"""Batches reach a table of PostgreSQL or SQLite once, whenever the driver is killed. None of it needs Spark."""

import os
import signal
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.spark.sink.databases.dialects import Dialect, PostgreSQL, SQLite, dialect_of
from headrace.spark.sink.databases.table import (
    BATCHES_TABLE,
    DatabaseTable,
    StagedRowsLost,
)
from headrace.spark.sink.staged_writes import RowsDoNotFit, StagingReport
from tests.manager.postgresql import PostgreSQLServer

pytestmark = pytest.mark.process

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.int32()), ("text", pa.string())])
Row = tuple[int | None, int | None, str]

KILLED_DRIVER = """
import os, signal, sys
sys.path.insert(0, {root!r})
from headrace.spark.sink.databases import table as module
from headrace.spark.sink.databases.dialects import dialect_of
from headrace.spark.sink.databases.table import DatabaseTable
from tests.spark.tables.test_databases import SCHEMA, batch

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

point, dialect = {point!r}, dialect_of({url!r}, {{}})
found = DatabaseTable(dialect=dialect, table={table!r}, owner="o", keys=("id",), order_by="at")
found.prepare(SCHEMA)
if point == "while staging":
    def rows():
        yield batch((1, 1, "a"))
        die()
    found.stage(rows())
reports = [found.stage([batch((1, 2, "new"), (2, 2, "b"))]), found.stage([batch((3, 2, "c"))])]
if point == "staged":
    die()
if point == "merged":
    merge = DatabaseTable._merge
    DatabaseTable._merge = lambda *given: (merge(*given), die())
found.commit(reports, 1)
die()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQLServer]:
    started = PostgreSQLServer()
    started.start()
    yield started
    started.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'file.db'}"
    server: PostgreSQLServer = request.getfixturevalue("server")
    return server.url


@pytest.fixture
def table(url: str, request: pytest.FixtureRequest) -> DatabaseTable:
    """A table of this test's own, whose rows replace each other by key."""
    name = f"t{zlib.crc32(request.node.name.encode()):x}"
    return DatabaseTable(dialect=dialect_of(url, {}), table=name, owner=f"{name}.sink", keys=("id",), order_by="at")


def batch(*rows: Row) -> "pa.RecordBatch":
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(
        [pa.array(values, each.type) for values, each in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def write(table: DatabaseTable, number: int, *tasks: list[Row]) -> bool:
    """Write a batch as the driver and its tasks do."""
    table.prepare(SCHEMA)
    return table.commit([table.stage([batch(*rows)]) for rows in tasks], number)


def rows(table: DatabaseTable) -> list[Row]:
    return sorted((tuple(row.values()) for row in table.dialect.read(table.table)), key=str)  # type: ignore[misc]


def test_newer_rows_replace_older_ones_and_a_repeat_changes_nothing(table: DatabaseTable) -> None:
    assert table.committed() is None
    assert write(table, 0, [(1, 5, "a"), (1, 7, "newest"), (1, None, "unordered")], [(2, 5, "b")])
    assert rows(table) == [(1, 7, "newest"), (2, 5, "b")]
    assert not write(table, 0, [(1, 9, "repeated"), (3, 9, "repeated")])
    assert write(table, 1, [(1, 6, "older"), (2, 5, "same time"), (4, 1, "d")])
    assert rows(table) == [(1, 7, "newest"), (2, 5, "same time"), (4, 1, "d")]
    assert table.committed() == 1


def test_added_rows_are_added_once(table: DatabaseTable) -> None:
    added = replace(table, keys=(), order_by=None)
    for _ in range(2):
        write(added, 0, [(1, 1, "a"), (1, 1, "a")], [(None, None, "b")])
        write(added, 1, [(1, 1, "c")])
    assert sorted(text for *_, text in rows(added)) == ["a", "a", "b", "c"]


def test_rows_of_attempts_that_are_not_reported_are_left_out(table: DatabaseTable) -> None:
    table.prepare(SCHEMA)
    table.stage([batch((1, 1, "of a lost attempt"))])
    kept = table.stage([batch((2, 1, "a")), batch((3, 1, "b"))])
    assert (kept.rows, table.commit([kept, StagingReport("empty", 0)], 0)) == (2, True)
    assert [text for *_, text in rows(table)] == ["a", "b"]


@pytest.mark.record_integrity
@pytest.mark.parametrize("point", ["while staging", "staged", "merged", "committed"])
def test_a_batch_of_a_killed_driver_is_repeated_without_loss_or_repetition(
    table: DatabaseTable, url: str, point: str
) -> None:
    table = replace(table, owner="o")
    table.prepare(SCHEMA)
    with closing(table.dialect.connect()) as connection:
        connection.execute(f"DELETE FROM {BATCHES_TABLE}")
    write(table, 0, [(1, 1, "old")])
    script = KILLED_DRIVER.format(root=str(Path.cwd()), point=point, url=url, table=table.table)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env=os.environ)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    new: list[Row] = [(1, 2, "new"), (2, 2, "b"), (3, 2, "c")]
    assert rows(table) == (new if point == "committed" else [(1, 1, "old")])
    assert write(table, 1, [(1, 2, "new")], [(2, 2, "b"), (3, 2, "c")]) is (point != "committed")
    assert rows(table) == new
    assert table.committed() == 1


@pytest.mark.record_integrity
def test_a_batch_whose_staged_rows_are_gone_is_not_committed(table: DatabaseTable) -> None:
    """As after a crash of PostgreSQL, which empties such tables, or beside a driver that made the table again."""
    table.prepare(SCHEMA)
    reports = [table.stage([batch((1, 1, "a"), (2, 1, "b"))]), table.stage([batch((3, 1, "c"))])]
    table.prepare(SCHEMA)
    with pytest.raises(StagedRowsLost, match="3 rows for"):
        table.commit(reports, 0)
    assert (rows(table), table.committed()) == ([], None)
    assert write(table, 0, [(1, 1, "a")])


@pytest.mark.record_integrity
def test_a_crash_of_postgresql_between_staging_and_commit_loses_no_row(server: PostgreSQLServer) -> None:
    table = DatabaseTable(dialect=dialect_of(server.url, {}), table="crashed", owner="crashed", keys=("id",))
    write(table, 0, [(1, 1, "a")])
    table.prepare(SCHEMA)
    reports = [table.stage([batch((2, 1, "b"))])]
    server.stop()
    server.start()
    with pytest.raises(StagedRowsLost, match="repeat the batch"):
        table.commit(reports, 1)
    assert write(table, 1, [(2, 1, "b")])
    assert [text for *_, text in rows(table)] == ["a", "b"]


def test_rows_that_do_not_fit_are_refused_before_any_is_written(table: DatabaseTable) -> None:
    write(table, 0, [(1, 1, "a")])
    with pytest.raises(RowsDoNotFit, match=r"has no column price: it has id, at, text"):
        table.prepare(pa.schema([("id", pa.int64()), ("price", pa.float64())]))
    with pytest.raises(RowsDoNotFit, match=r"1 rows of the batch have no `id`"):
        write(table, 1, [(None, 1, "b"), (2, 1, "c")])
    assert rows(table) == [(1, 1, "a")]
    nested = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])
    with pytest.raises(RowsDoNotFit, match=r"column `tags` has the type list<.*for which no column can be created"):
        replace(table, table=f"{table.table}_nested").prepare(nested)


def test_an_upsert_needs_a_unique_index(table: DatabaseTable) -> None:
    with closing(table.dialect.connect()) as connection:
        connection.execute(f"CREATE TABLE {table.table} (id BIGINT, at INTEGER, text TEXT)")
    with pytest.raises(RowsDoNotFit, match=r"no unique index of the table .* has exactly the keys id: create one"):
        write(table, 0, [(1, 1, "a")])
    with closing(table.dialect.connect()) as connection:
        connection.execute(f"CREATE UNIQUE INDEX {table.table}_index ON {table.table} (id)")
    assert write(table, 0, [(1, 1, "a")])


TYPED: dict[str, tuple[Any, Any]] = {
    "id": (pa.int64(), 2**40),
    "yes": (pa.bool_(), True),
    "part": (pa.float64(), 0.1),
    "price": (pa.decimal128(20, 4), Decimal("12345678901234.5678")),
    "name": (pa.string(), 'x\t"\\N\\\n'),
    "raw": (pa.binary(), b"\x00\xff"),
    "day": (pa.date32(), date(2026, 5, 31)),
    "moment": (pa.timestamp("us", "UTC"), datetime(2026, 5, 31, 12, 0, 0, 5, UTC)),
    "local 100%": (pa.timestamp("us"), datetime(2026, 5, 31, 12)),
    "nothing": (pa.string(), None),
}


def test_types_arrive(table: DatabaseTable) -> None:
    schema = pa.schema([(name, kind) for name, (kind, _) in TYPED.items()])
    given = pa.RecordBatch.from_arrays([pa.array([value], kind) for kind, value in TYPED.values()], schema=schema)
    table = replace(table, order_by="id")
    table.prepare(schema)
    assert table.commit([table.stage([given])], 0)
    (found,) = table.dialect.read(table.table)
    expected = {name: value for name, (_, value) in TYPED.items()}
    if isinstance(table.dialect, SQLite):
        expected = {name: text_of(value) for name, value in expected.items()}
    assert found == expected


def text_of(value: Any) -> Any:
    """The value that SQLite has in place of a type that it lacks."""
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


ADDRESSES = [
    ("postgresql://me:secret@host/db", {}, "put it under options"),
    ("mysql://host/db", {}, '"mysql://host/db" is not an address'),
    ("sqlite://", {}, "is not an address"),
    ("sqlite:///a.db", {"password": "x"}, "SQLite has no options"),
]


@pytest.mark.parametrize(("address", "options", "said"), ADDRESSES)
def test_wrong_addresses_are_refused_without_showing_their_user(
    address: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        dialect_of(address, options)
    assert "secret" not in str(caught.value)


def test_a_look_at_a_table_creates_no_file(tmp_path: Path) -> None:
    found: Dialect = SQLite(str(tmp_path / "none.db"))
    assert (found.finds("t"), found.read("t"), list(tmp_path.iterdir())) == (False, [], [])
    assert "geheim" not in repr(PostgreSQL("postgresql://h/d", {"password": "geheim"}))
    assert sqlite3.sqlite_version_info >= (3, 25)
