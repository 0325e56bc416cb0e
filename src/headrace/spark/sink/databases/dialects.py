"""The differences between the databases: addresses, types, the copying of rows, and the catalog."""

import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote, urlsplit

from headrace.spark.option_names import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

CONNECT_SECONDS_MAX = 10
LOCK_SECONDS_MAX = 60
"""Time for which a statement waits for a lock of another connection."""
TEXT_LENGTH_SHOWN_MAX = 200

_URL = "postgresql://user@host:5432/database or sqlite:///path/to/file"
_NO_TARGET = "ON CONFLICT clause does not match"


def quoted(name: str) -> str:
    """Quote the name of a column, or of a table with or without its schema."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def quoted_column(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Dialect(ABC):
    """One database. It is sent to tasks, so it holds plain values only."""

    place: ClassVar[str] = "?"
    """The mark of a parameter in a statement."""
    types: ClassVar[Mapping[str, str]]
    """The types of columns by those of Arrow."""
    begin: ClassVar[str]
    """The statement that begins a transaction which will write."""
    unlogged: ClassVar[str] = ""
    """The word for a staging table, whose rows need not survive a crash of the database."""
    row_lock: ClassVar[str] = ""
    """The end of a SELECT that locks its rows."""

    @abstractmethod
    def connect(self) -> Any:
        """Return a connection on which every statement is a transaction of its own until BEGIN."""

    @abstractmethod
    def has_table(self, connection: Any, table: str) -> bool: ...

    @abstractmethod
    def copy(self, connection: Any, target: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Add rows to a table in one transaction."""

    def finds(self, table: str) -> bool:
        """Return whether the table exists, and change nothing."""
        with closing(self.connect()) as connection:
            return self.has_table(connection, table)

    def read(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table; none if it does not exist."""
        if not self.finds(table):
            return []
        with closing(self.connect()) as connection:
            cursor = connection.execute(f"SELECT * FROM {quoted(table)}")
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def below(self, folder: Path) -> "Dialect":
        """Return the database whose relative path, if it has one, begins at a folder."""
        return self

    @abstractmethod
    def lacks_unique_index(self, error: Exception) -> bool:
        """Return whether an upsert failed because nothing makes its keys unique."""

    def column_type(self, kind: "pa.DataType") -> str:
        """Return the type of a column that is created; ValueError if there is none."""
        import pyarrow as pa

        if pa.types.is_decimal(kind):
            return self.decimal(kind.precision, kind.scale)
        text = "timestamp" if pa.types.is_timestamp(kind) else str(kind)
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            text = "timestamp with time zone"
        if text not in self.types:
            raise ValueError(str(kind))
        return self.types[text]

    def decimal(self, precision: int, scale: int) -> str:
        return f"NUMERIC({precision}, {scale})"


@dataclass(frozen=True, slots=True)
class SQLite(Dialect):
    """A file. Only one connection writes at a time, so it suits one machine and small tables."""

    path: str

    types: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("bool", "int8", "int16", "int32", "int64"), "INTEGER"),
        **dict.fromkeys(("float", "double"), "REAL"),
        **dict.fromkeys(("string", "large_string", "date32[day]", "timestamp", "timestamp with time zone"), "TEXT"),
        **dict.fromkeys(("binary", "large_binary"), "BLOB"),
    }
    begin: ClassVar[str] = "BEGIN IMMEDIATE"

    def connect(self) -> Any:
        return sqlite3.connect(self.path, timeout=LOCK_SECONDS_MAX, isolation_level=None)

    def finds(self, table: str) -> bool:
        # A connection would create the file.
        return Path(self.path).exists() and Dialect.finds(self, table)

    def below(self, folder: Path) -> "SQLite":
        return SQLite(str(folder.absolute() / self.path))

    def decimal(self, precision: int, scale: int) -> str:
        return "TEXT"  # NUMERIC would round it to a double

    def has_table(self, connection: Any, table: str) -> bool:
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
        return found.fetchone() is not None

    def copy(self, connection: Any, target: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(columns))
        names = ", ".join(map(quoted_column, columns))
        connection.execute(self.begin)
        connection.executemany(
            f"INSERT INTO {target} ({names}) VALUES ({marks})", (tuple(map(_plain, row)) for row in rows)
        )
        connection.execute("COMMIT")

    def lacks_unique_index(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.Error) and _NO_TARGET in str(error)


def _plain(value: Any) -> Any:
    """Return a value of a type that SQLite has."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


@dataclass(frozen=True, slots=True)
class PostgreSQL(Dialect):
    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    types: ClassVar[Mapping[str, str]] = {
        "bool": "BOOLEAN",
        **dict.fromkeys(("int8", "int16"), "SMALLINT"),
        "int32": "INTEGER",
        "int64": "BIGINT",
        "float": "REAL",
        "double": "DOUBLE PRECISION",
        **dict.fromkeys(("string", "large_string"), "TEXT"),
        **dict.fromkeys(("binary", "large_binary"), "BYTEA"),
        "date32[day]": "DATE",
        "timestamp": "TIMESTAMP",
        "timestamp with time zone": "TIMESTAMPTZ",
    }
    place: ClassVar[str] = "%s"
    begin: ClassVar[str] = "BEGIN"
    unlogged: ClassVar[str] = "UNLOGGED"
    row_lock: ClassVar[str] = "FOR UPDATE"

    def connect(self) -> Any:
        try:
            import psycopg
        except ImportError:
            raise OptionError("PostgreSQL needs the package psycopg: pip install 'headrace[postgresql]'") from None
        settings = {"connect_timeout": str(CONNECT_SECONDS_MAX), **self.options}
        connection = psycopg.connect(self.url, autocommit=True, **settings)  # type: ignore[arg-type]
        connection.execute(f"SET lock_timeout = '{LOCK_SECONDS_MAX}s'")
        connection.execute("SET client_min_messages = warning")
        return connection

    def has_table(self, connection: Any, table: str) -> bool:
        (found,) = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (quoted(table),)).fetchone()
        return bool(found)

    def copy(self, connection: Any, target: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        names = ", ".join(map(quoted_column, columns))
        with connection.cursor() as cursor, cursor.copy(f"COPY {target} ({names}) FROM STDIN") as copied:
            for row in rows:
                copied.write_row(row)

    def lacks_unique_index(self, error: Exception) -> bool:
        return getattr(error, "sqlstate", None) == "42P10"


def dialect_of(url: str, options: Mapping[str, str]) -> Dialect:
    """Return the database of a URL; ValueError if there is none."""
    parts = urlsplit(url)
    if parts.scheme in ("postgresql", "postgres"):
        if parts.password is not None:
            raise ValueError("the address contains a password: put it under options, as in `password: ${env:NAME}`")
        return PostgreSQL(url, dict(options))
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        if options:
            raise ValueError("SQLite has no options: leave them out")
        return SQLite(unquote(parts.path[1:]))
    shown = re.sub(r"//[^@/]*@", "//", url)[:TEXT_LENGTH_SHOWN_MAX]
    raise ValueError(f'"{shown}" is not an address of a database: write {_URL}')
