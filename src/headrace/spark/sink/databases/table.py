"""A table of a database into which batches are merged, each once.

The table `headrace_batches` of the same database has the newest batch of each owner. The transaction that merges a
batch updates it, so that a repetition of the batch finds that it is complete, whenever the driver was killed.
"""

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.spark.sink.databases.dialects import Dialect, quoted, quoted_column
from headrace.spark.sink.staged_writes import RowsDoNotFit, Stage, StagingReport

if TYPE_CHECKING:
    import pyarrow as pa

BATCHES_TABLE = "headrace_batches"
ATTEMPT_COLUMN = "headrace_attempt"
STAGING_PREFIX = "headrace_staging_"
OWNER_HASH_LENGTH = 16


class StagedRowsLost(RuntimeError):
    """The staging table lacks rows that tasks have copied into it: the batch must be repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseTable:
    """Sent to tasks, so it holds plain values only."""

    dialect: Dialect
    table: str
    owner: str
    keys: tuple[str, ...] = ()
    """The keys of an upsert; none: rows are added."""
    order_by: str | None = None

    @property
    def staging(self) -> str:
        """The name of the staging table, in the schema of the table."""
        schema = self.table.rpartition(".")[0]
        name = STAGING_PREFIX + hashlib.sha256(self.owner.encode()).hexdigest()[:OWNER_HASH_LENGTH]
        return f"{schema}.{name}" if schema else name

    # The driver, before the tasks

    def prepare(self, schema: "pa.Schema") -> Stage:
        """Create what is missing, refuse rows that do not fit, and empty the staging table."""
        with closing(self.dialect.connect()) as connection:
            if not self.dialect.has_table(connection, self.table):
                self._create(connection, schema)
            self._check(connection, schema)
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {BATCHES_TABLE} (owner TEXT PRIMARY KEY, batch_id BIGINT NOT NULL)"
            )
            names = ", ".join(map(quoted_column, schema.names))
            connection.execute(f"DROP TABLE IF EXISTS {quoted(self.staging)}")
            connection.execute(
                f"CREATE {self.dialect.unlogged} TABLE {quoted(self.staging)} AS "
                f"SELECT {names}, '' AS {ATTEMPT_COLUMN} FROM {quoted(self.table)} WHERE 1 = 0"
            )
        return self.stage

    def _create(self, connection: Any, schema: "pa.Schema") -> None:
        columns = []
        for each in schema:
            try:
                kind = self.dialect.column_type(each.type)
            except ValueError as error:
                raise RowsDoNotFit(
                    f"column `{each.name}` has the type {error}, for which no column can be created: convert it, for "
                    f"example with to_json, or create the table {self.table} yourself"
                ) from None
            columns.append(f"{quoted_column(each.name)} {kind}")
        if self.keys:
            columns.append(f"PRIMARY KEY ({', '.join(map(quoted_column, self.keys))})")
        connection.execute(f"CREATE TABLE IF NOT EXISTS {quoted(self.table)} ({', '.join(columns)})")

    def _check(self, connection: Any, schema: "pa.Schema") -> None:
        cursor = connection.execute(f"SELECT * FROM {quoted(self.table)} WHERE 1 = 0")
        known = [column[0] for column in cursor.description]
        missing = [name for name in schema.names if name not in known]
        if missing:
            raise RowsDoNotFit(
                f"the table {self.table} has no column {', '.join(missing)}: it has {', '.join(known)}; select and "
                "rename the columns, or add them to the table"
            )

    # The tasks

    def stage(self, batches: Iterable["pa.RecordBatch"]) -> StagingReport:
        """Copy the rows of a task into the staging table."""
        attempt, count = uuid.uuid4().hex, 0
        with closing(self.dialect.connect()) as connection:
            for batch in batches:
                columns = [*batch.schema.names, ATTEMPT_COLUMN]
                self.dialect.copy(connection, quoted(self.staging), columns, _rows(batch, attempt))
                count += batch.num_rows
        return StagingReport(attempt, count)

    # The driver, after the tasks

    def committed(self) -> int | None:
        """Return the newest batch of the owner."""
        with closing(self.dialect.connect()) as connection:
            if not self.dialect.has_table(connection, BATCHES_TABLE):
                return None
            return self._committed(connection)

    def commit(self, reports: Sequence[StagingReport], batch_id: int) -> bool:
        """Merge the rows of these attempts and record the batch; return False if the table has the batch already."""
        wanted = {report.attempt: report.rows for report in reports if report.rows}
        with closing(self.dialect.connect()) as connection:
            connection.execute(self.dialect.begin)
            try:
                is_new = self._merge_once(connection, wanted, batch_id)
                connection.execute("COMMIT" if is_new else "ROLLBACK")
            except Exception as error:
                with suppress(Exception):  # the connection may be lost, which rolls back as well
                    connection.execute("ROLLBACK")
                if self.dialect.lacks_unique_index(error):
                    raise RowsDoNotFit(
                        f"no unique index of the table {self.table} has exactly the keys {', '.join(self.keys)}: "
                        "create one, so that the database can find the row to replace"
                    ) from error
                raise
            connection.execute(f"DROP TABLE IF EXISTS {quoted(self.staging)}")
        return is_new

    def _merge_once(self, connection: Any, wanted: dict[str, int], batch_id: int) -> bool:
        mark = self.dialect.place
        connection.execute(
            f"INSERT INTO {BATCHES_TABLE} (owner, batch_id) VALUES ({mark}, -1) ON CONFLICT DO NOTHING", (self.owner,)
        )
        known = self._committed(connection, lock=self.dialect.row_lock)
        if known is not None and known >= batch_id:
            return False
        self._insist_on_rows(connection, wanted)
        if wanted:
            self._merge(connection, tuple(wanted))
        connection.execute(f"UPDATE {BATCHES_TABLE} SET batch_id = {mark} WHERE owner = {mark}", (batch_id, self.owner))
        return True

    def _committed(self, connection: Any, lock: str = "") -> int | None:
        statement = f"SELECT batch_id FROM {BATCHES_TABLE} WHERE owner = {self.dialect.place} {lock}"
        found = connection.execute(statement, (self.owner,)).fetchone()
        return None if found is None or found[0] < 0 else int(found[0])

    def _insist_on_rows(self, connection: Any, wanted: dict[str, int]) -> None:
        """A crash of the database empties the staging table, and another driver may have made it again."""
        found = dict(
            connection.execute(
                f"SELECT {ATTEMPT_COLUMN}, count(*) FROM {quoted(self.staging)} GROUP BY {ATTEMPT_COLUMN}"
            ).fetchall()
        )
        lost = sum(rows for attempt, rows in wanted.items() if found.get(attempt) != rows)
        if lost:
            raise StagedRowsLost(f"{lost} rows for {self.table} are not in {self.staging} any more: repeat the batch")

    def _merge(self, connection: Any, attempts: tuple[str, ...]) -> None:
        columns = self._columns(connection)
        names = ", ".join(map(quoted_column, columns))
        # Our own ids, as text: with parameters, a "%" in the name of a column would need another spelling.
        rows = f"FROM {quoted(self.staging)} WHERE {ATTEMPT_COLUMN} IN ({', '.join(map(repr, attempts))})"
        target = f"INSERT INTO {quoted(self.table)} ({names})"
        if not self.keys:
            connection.execute(f"{target} SELECT {names} {rows}")
            return
        self._refuse_null_keys(connection, rows)
        keys = ", ".join(map(quoted_column, self.keys))
        order = quoted_column(self.order_by or self.keys[0])
        others = [quoted_column(name) for name in columns if name not in self.keys]
        replaced = ", ".join(f"{name} = excluded.{name}" for name in others)
        old = quoted(self.table.rpartition(".")[2])
        newer = f"{old}.{order} IS NULL OR excluded.{order} >= {old}.{order}"
        then = f"UPDATE SET {replaced} WHERE {newer}" if others else "NOTHING"
        connection.execute(
            f"{target} SELECT {names} FROM (SELECT {names}, row_number() OVER (PARTITION BY {keys} "
            f"ORDER BY {order} IS NULL, {order} DESC) AS headrace_place {rows}) AS newest WHERE headrace_place = 1 "
            f"ON CONFLICT ({keys}) DO {then}"
        )

    def _columns(self, connection: Any) -> list[str]:
        cursor = connection.execute(f"SELECT * FROM {quoted(self.staging)} WHERE 1 = 0")
        return [column[0] for column in cursor.description if column[0] != ATTEMPT_COLUMN]

    def _refuse_null_keys(self, connection: Any, rows: str) -> None:
        for key in self.keys:
            statement = f"SELECT count(*) {rows} AND {quoted_column(key)} IS NULL"
            (count,) = connection.execute(statement).fetchone()
            if count:
                raise RowsDoNotFit(
                    f"{count} rows of the batch have no `{key}`, which is a key of {self.table}: filter them out, or "
                    "give an expectation, so that they do not reach the table"
                )


def _rows(batch: "pa.RecordBatch", attempt: str) -> Iterator[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in batch.columns]
    columns.append([attempt] * batch.num_rows)
    return zip(*columns, strict=True)
