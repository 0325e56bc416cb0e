"""Engines of the catalog database: SQLite in WAL mode, or PostgreSQL, with a limit on every wait."""

import os
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from headrace.manager.limits import (
    CATALOG_CALLS_AT_ONCE_MAX,
    CATALOG_CONNECT_SECONDS_MAX,
    CATALOG_IDLE_TRANSACTION_MS_MAX,
    CATALOG_STATEMENT_MS_MAX,
)
from headrace.operations.errors import OperationError

EXAMPLES = "sqlite:///catalog.db or postgresql://user@host/database"
WRITES = {"headrace_writes": True}
"""Execution option of connections whose transactions write: SQLite then locks the database when they begin."""


def catalog_url(given: str) -> URL:
    """Return the URL with the driver that is used; OperationError says what is wrong with it."""
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        raise OperationError(f"the catalog's URL cannot be read: write it as in {EXAMPLES}") from None
    match url.drivername:
        case "sqlite":
            if not url.database or url.database == ":memory:":
                raise OperationError(f"the catalog needs a file: write it as in {EXAMPLES}")
            return url
        case "postgresql" | "postgresql+psycopg":
            return url.set(drivername="postgresql+psycopg")
    raise OperationError(f'"{url.drivername}" is no database of the catalog: use {EXAMPLES}')


def shown(url: URL) -> str:
    return url.render_as_string(hide_password=True)


def open_engine(url: URL) -> Engine:
    return _sqlite(url) if url.get_backend_name() == "sqlite" else _postgresql(url)


def _sqlite(url: URL) -> Engine:
    assert url.database is not None
    _create_private(Path(url.database))
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=CATALOG_CALLS_AT_ONCE_MAX,
        max_overflow=0,
        pool_timeout=CATALOG_CONNECT_SECONDS_MAX,
        connect_args={"timeout": CATALOG_STATEMENT_MS_MAX / 1000, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # The driver begins no transaction; `begin` below does.
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("headrace_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _create_private(path: Path) -> None:
    """Create the file for its owner alone: it has hashes of passwords."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise OperationError(
            f"the catalog {path} cannot be opened: {error.strerror}; choose another with --catalog"
        ) from None


def _postgresql(url: URL) -> Engine:
    limits = {
        "statement_timeout": CATALOG_STATEMENT_MS_MAX,
        "lock_timeout": CATALOG_STATEMENT_MS_MAX,
        # A manager that is stopped inside a transaction must not keep the lease of the others.
        "idle_in_transaction_session_timeout": CATALOG_IDLE_TRANSACTION_MS_MAX,
    }
    return create_engine(
        url,
        poolclass=QueuePool,
        pool_size=CATALOG_CALLS_AT_ONCE_MAX,
        max_overflow=0,
        pool_timeout=CATALOG_CONNECT_SECONDS_MAX,
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": CATALOG_CONNECT_SECONDS_MAX,
            "tcp_user_timeout": CATALOG_STATEMENT_MS_MAX,
            "options": " ".join(f"-c {name}={value}" for name, value in limits.items()),
            "application_name": "headrace-manager",
        },
    )


_NOW = {
    "sqlite": text("SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"),
    "postgresql": text("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"),
}


def now_ms(connection: Connection) -> int:
    """Return the database's time, which all managers share."""
    return int(connection.execute(_NOW[connection.dialect.name]).scalar_one())
