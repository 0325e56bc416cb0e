"""Backups of the catalog: all lasting tables as lines of JSON, which SQLite and PostgreSQL both restore.

Sessions, logins, the lease and the list of managers are left out: they would be wrong in the restored catalog.
"""

import gzip
import os
from base64 import b64decode
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, LargeBinary, Table, delete, func, insert, select, text

from headrace.manager.catalog.lease import lock
from headrace.manager.catalog.tables import (
    REVISION,
    identity_logins,
    leases,
    login_failures,
    managers,
    metadata,
    sessions,
)
from headrace.operations.errors import OperationError

TRANSIENT = (sessions, login_failures, identity_logins, leases, managers)
KEPT = {table.name: table for table in metadata.sorted_tables if table not in TRANSIENT}
ROWS_AT_ONCE = 1_000
LINE_BYTES_MAX = 1 << 20
FORMAT = "headrace-catalog"


class BackupHead(msgspec.Struct):
    format: str
    revision: str


class BackupRow(msgspec.Struct, array_like=True):
    table: str
    values: dict[str, Any]


def back_up(connection: Connection, path: Path) -> int:
    """Write the backup, which appears complete or not at all, and return the number of its rows."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))  # All tables at one instant.
    unfinished = path.with_name(f"{path.name}.unfinished")
    count = 0
    opened = os.open(unfinished, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)  # It has hashes of passwords.
    with os.fdopen(opened, "wb") as file:
        with gzip.GzipFile("", "wb", fileobj=file) as out:
            out.write(msgspec.json.encode(BackupHead(FORMAT, REVISION)) + b"\n")
            for table in KEPT.values():
                for row in connection.execution_options(yield_per=ROWS_AT_ONCE).execute(select(table)).mappings():
                    values = {str(name): value for name, value in row.items()}
                    out.write(msgspec.json.encode(BackupRow(str(table.name), values)) + b"\n")
                    count += 1
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    return count


def restore(connection: Connection, path: Path, *, replace: bool) -> int:
    """Put the rows of a backup in the place of those of the catalog, and return their number."""
    lock(connection)
    if not replace and any(_has_rows(connection, table) for table in KEPT.values()):
        raise OperationError("the catalog is not empty: restore to another one, or replace it with --replace")
    for table in (*KEPT.values(), sessions):
        connection.execute(delete(table))
    count = 0
    waiting: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(path):
        waiting.setdefault(row.table, []).append(_typed(KEPT[row.table], row.values))
        count += 1
        if len(waiting[row.table]) >= ROWS_AT_ONCE:
            connection.execute(insert(KEPT[row.table]), waiting.pop(row.table))
    for name, rows in waiting.items():
        connection.execute(insert(KEPT[name]), rows)
    if connection.dialect.name == "postgresql":
        connection.execute(
            text("SELECT setval(pg_get_serial_sequence('audit', 'id'), coalesce((SELECT max(id) FROM audit), 0) + 1)")
        )
    return count


def _has_rows(connection: Connection, table: Table) -> bool:
    return connection.execute(select(func.count()).select_from(table)).scalar_one() > 0


def _rows(path: Path) -> Any:
    try:
        with gzip.open(path, "rb") as file:
            head = msgspec.json.decode(file.readline(LINE_BYTES_MAX), type=BackupHead)
            if head.format != FORMAT:
                raise OperationError(f"{path} is no backup of a catalog")
            if head.revision != REVISION:
                raise OperationError(
                    f"{path} has revision {head.revision} of the catalog, this version has {REVISION}: restore it with "
                    "the version that wrote it, then start this one"
                )
            while line := file.readline(LINE_BYTES_MAX):
                row = msgspec.json.decode(line, type=BackupRow)
                if row.table not in KEPT:
                    raise OperationError(f'{path} has rows of "{row.table}", which is no table of the catalog')
                yield row
    except (OSError, EOFError, msgspec.DecodeError) as error:
        raise OperationError(f"{path} cannot be read as a backup of a catalog: {error}") from None


def _typed(table: Table, values: dict[str, Any]) -> dict[str, Any]:
    typed = {}
    for name, value in values.items():
        if name not in table.c:
            raise OperationError(f'the backup has "{name}" in "{table.name}", which the catalog does not have')
        typed[name] = b64decode(value) if isinstance(table.c[name].type, LargeBinary) else value
    return typed
