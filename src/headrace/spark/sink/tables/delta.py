"""Delta tables: tasks write Parquet files into the folder, and the driver adds them to the log in one commit.

The commit carries the owner as application id and the batch id as the version of that application, which Delta has for
this purpose. After a conflict with another commit, the version is read again before the next attempt.
"""

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from headrace.spark.option_names import OptionError
from headrace.spark.sink.identity import Identity
from headrace.spark.sink.tables.batch_commits import (
    BatchCommit,
    FileReport,
    WrittenByEarlierVersion,
    is_noted,
    is_repeat,
)
from headrace.spark.sink.tables.options import TableOptions
from headrace.spark.sink.tables.written_files import WrittenFile, sync_folder

COMMIT_ATTEMPTS_MAX = 50
HISTORY_SEARCHED = 100
"""Commits that are searched for the run that wrote a batch."""

_OWNER, _BATCH, _RUN, _WRITE = "headrace.owner", "headrace.batch", "headrace.run", "headrace.write"
_BATCH_BEFORE = "headrace.epoch"
"""The property of the batch id in commits of development versions before 0.1, which is refused."""


class DeltaFolder:
    def __init__(self, options: TableOptions, schema: "pa.Schema") -> None:
        self._options = options
        self._schema = schema

    def check(self) -> None:
        """Refuse rows that do not fit the table, before any is written."""
        table = self._load()
        if table is None:
            return
        wanted = {field.name: str(field.type) for field in _delta_schema(self._schema).fields}
        found = {field.name: str(field.type) for field in table.schema().fields}
        if wanted != found:
            differing = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
            raise OptionError(
                f"the rows do not match the Delta table {self._options.path}: the columns {', '.join(differing)} "
                "differ or are missing; select and cast them"
            )
        columns = tuple(table.metadata().partition_columns)
        if columns != self._options.partition_columns:
            raise OptionError(
                f"the Delta table {self._options.path} is partitioned by {', '.join(columns) or 'nothing'}: set the "
                f"option partitionColumns to that"
            )

    def staging_folder(self, identity: Identity | None, write_id: str) -> str:
        os.makedirs(self._options.path, exist_ok=True)
        return self._options.path

    def committed(self, owner: str, run: str = "") -> BatchCommit | None:
        table = self._load()
        return None if table is None else self._committed(table, owner, run)

    def commit(self, reports: Sequence[FileReport], identity: Identity | None, write_id: str) -> None:
        files = [each for report in reports for each in report.files]
        if not files:
            return
        self._sync(files)
        if not self._commit(files, identity, write_id):
            self.discard(reports)

    def note_repeat(self, identity: Identity, write_id: str) -> None:
        """Note the repetition by a commit without files."""
        self._commit([], identity, write_id)

    def _commit(self, files: Sequence[WrittenFile], identity: Identity | None, write_id: str) -> bool:
        """Return False if the table has the batch already, which is noted once per run that repeats it."""
        from deltalake.exceptions import CommitFailedError

        for attempt in range(COMMIT_ATTEMPTS_MAX):
            try:
                table = self._load() or self._create()
                found = None if identity is None else self._committed(table, identity.owner, identity.run)
                is_there = identity is not None and is_repeat(found, identity, write_id)
                if is_noted(found, identity) if is_there else not files:
                    return False
                table.create_write_transaction(
                    [] if is_there else [_add_action(each) for each in files],
                    mode="append",
                    schema=_delta_schema(self._schema),
                    partition_by=list(self._options.partition_columns),
                    commit_properties=_properties(identity, write_id),
                )
                return not is_there
            except CommitFailedError:
                if attempt == COMMIT_ATTEMPTS_MAX - 1:
                    raise
        return False

    def finish_commit(self, identity: Identity) -> None:
        """Do nothing: a Delta commit is one step."""

    def discard(self, reports: Sequence[FileReport]) -> None:
        """Remove the files, except those of the table: a commit that raised may have taken effect. Names are unique."""
        table = self._load()
        kept = frozenset() if table is None else {os.path.basename(uri) for uri in table.file_uris()}
        for each in (each for report in reports for each in report.files):
            if os.path.basename(each.path) not in kept:
                with suppress(FileNotFoundError):  # an earlier attempt of this abort has removed it
                    os.unlink(os.path.join(self._options.path, each.path))

    def _sync(self, files: Sequence[WrittenFile]) -> None:
        for folder in {os.path.dirname(os.path.join(self._options.path, each.path)) for each in files}:
            sync_folder(folder)

    def _committed(self, table: Any, owner: str, run: str) -> BatchCommit | None:
        version = table.transaction_version(owner)
        if version is None:
            return None
        found = BatchCommit(version, "", "")
        for entry in table.history(HISTORY_SEARCHED):  # newest first, so that the last match is the commit itself
            if entry.get(_OWNER) != owner:
                continue
            if _BATCH not in entry and _BATCH_BEFORE in entry:
                raise WrittenByEarlierVersion(
                    f"the Delta table {self._options.path} has batches of {owner} under the property {_BATCH_BEFORE} "
                    "of a development version before 0.1, which is not read: let that version finish the last batch of "
                    "the query, then set another option sinkName, or write to another table. Nothing is written"
                )
            if entry.get(_BATCH) == str(version):
                found = BatchCommit(version, entry[_RUN], entry[_WRITE])
                if found.run == run:
                    break
        return found

    def _load(self) -> Any:
        table_class = _delta_table_class()
        return table_class(self._options.path) if table_class.is_deltatable(self._options.path) else None

    def _create(self) -> Any:
        return _delta_table_class().create(
            self._options.path,
            schema=_delta_schema(self._schema),
            mode="ignore",
            partition_by=list(self._options.partition_columns),
        )


def _delta_table_class() -> Any:
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise OptionError("Delta tables need the package deltalake: pip install 'headrace[delta]'") from None
    return DeltaTable


def _delta_schema(schema: "pa.Schema") -> Any:
    from deltalake import Schema

    return Schema.from_arrow(pa.schema([field.with_nullable(True) for field in schema]))


def _properties(identity: Identity | None, write_id: str) -> Any:
    from deltalake import CommitProperties, Transaction

    properties = CommitProperties(max_commit_retries=0)
    if identity is not None:
        properties.custom_metadata = {
            _OWNER: identity.owner,
            _BATCH: str(identity.batch_id),
            _RUN: identity.run,
            _WRITE: write_id,
        }
        properties.app_transactions = [Transaction(identity.owner, identity.batch_id)]
    return properties


def _add_action(each: WrittenFile) -> Any:
    from deltalake.transaction import AddAction

    return AddAction(
        path=each.path,
        size=each.size_bytes,
        partition_values=dict(each.partition_values),
        modification_time=time.time_ns() // 1_000_000,
        data_change=True,
        stats=json.dumps({"numRecords": each.records}),
    )
