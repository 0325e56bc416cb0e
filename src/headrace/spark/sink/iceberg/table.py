"""An Iceberg table to which batches are added, each once.

A commit adds the files of a batch, and sets the batch as a property of the snapshot and of the table. The property of
the table stays when snapshots expire. Commits of others in between make ours fail; then the property is read again.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from headrace.spark.option_names import OptionError
from headrace.spark.sink.iceberg.files import StagedFiles
from headrace.spark.sink.staged_writes import RowsDoNotFit, StagingReport

if TYPE_CHECKING:
    import pyarrow as pa

COMMIT_ATTEMPTS_MAX = 50
BATCH_PROPERTY = "headrace.batch."
"""The beginning of the property of a table that has the newest batch of an owner."""

_SNAPSHOT_OWNER, _SNAPSHOT_BATCH = "headrace.owner", "headrace.batch"
_LIBRARY_RETRIES = "commit.retry.num-retries"
_SQLITE = "sqlite:///"
_SQL_SCHEMES, _REST_SCHEMES = ("sqlite", "postgresql", "postgresql+psycopg"), ("http", "https")
_WIDENED = ("int8", "int16")
"""Types that Iceberg lacks; it has 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPlace:
    """Where the catalog is, and where it creates tables."""

    kind: str
    uri: str
    warehouse: str
    """A folder, or a URI."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Properties of the catalog, such as credentials."""

    @staticmethod
    def of(uri: str, warehouse: str, options: Mapping[str, str]) -> "CatalogPlace":
        """Return the place of a catalog; ValueError if the URI is that of none."""
        parts = urlsplit(uri)
        if parts.password is not None:
            raise ValueError("the address contains a password: put the credentials under options")
        if parts.scheme not in (*_SQL_SCHEMES, *_REST_SCHEMES):
            raise ValueError(
                f'"{parts.scheme}:" is not a catalog: write sqlite:///path, postgresql+psycopg://host/database, or '
                "https://host of a REST catalog"
            )
        kind = "rest" if parts.scheme in _REST_SCHEMES else "sql"
        return CatalogPlace(kind=kind, uri=uri, warehouse=warehouse, options=dict(options))

    def below(self, folder: Path) -> "CatalogPlace":
        """Return the place whose relative paths, if it has any, begin at a folder."""
        uri, warehouse = self.uri, self.warehouse
        if uri.startswith(_SQLITE):
            uri = f"{_SQLITE}{folder.absolute() / uri.removeprefix(_SQLITE)}"
        if "://" not in warehouse and self.kind == "sql":
            warehouse = (folder.absolute() / warehouse).as_uri()
        return replace(self, uri=uri, warehouse=warehouse)

    def finds(self, table: str) -> bool:
        """Return whether the table exists, and change nothing."""
        if self.uri.startswith(_SQLITE) and not Path(self.uri.removeprefix(_SQLITE)).exists():
            return False  # a connection would create the file
        return bool(self.load().table_exists(table))

    def load(self) -> Any:
        try:
            from pyiceberg.catalog import load_catalog
        except ImportError:
            raise OptionError("Iceberg tables need the package pyiceberg: pip install 'headrace[iceberg]'") from None
        place = {"type": self.kind, "uri": self.uri, "warehouse": self.warehouse}
        return load_catalog("headrace", **{**self.options, **place})


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergTable:
    table: str
    """The namespace and the name."""
    place: CatalogPlace
    owner: str
    partition_by: tuple[str, ...] = ()

    # The driver, before the tasks

    def prepare(self, schema: "pa.Schema") -> StagedFiles:
        table = self.load() or self._create(schema)
        types = self._check(table, schema)
        return StagedFiles(
            location=table.location(),
            io_properties=dict(table.io.properties),
            schema=types,
            partition_by=self.partition_by,
        )

    def load(self) -> Any:
        """Return the table of pyiceberg; None if it does not exist."""
        catalog = self.place.load()
        return catalog.load_table(self.table) if catalog.table_exists(self.table) else None

    def _create(self, schema: "pa.Schema") -> Any:
        from pyiceberg.exceptions import TableAlreadyExistsError

        catalog = self.place.load()
        catalog.create_namespace_if_not_exists(self.table.rpartition(".")[0])
        try:
            with catalog.create_table_transaction(self.table, _storable(schema)) as transaction:
                with transaction.update_spec() as spec:
                    for name in self.partition_by:
                        spec.add_identity(name)
        except TableAlreadyExistsError:  # another pipeline was faster
            pass
        return catalog.load_table(self.table)

    def _check(self, table: Any, schema: "pa.Schema") -> "pa.Schema":
        """Refuse rows that do not fit; return their columns with the types of the table."""
        import pyarrow as pa

        known = table.schema().as_arrow()
        missing = [name for name in schema.names if name not in known.names]
        if missing:
            raise RowsDoNotFit(
                f"the Iceberg table {self.table} has no column {', '.join(missing)}: it has {', '.join(known.names)}; "
                "select and rename the columns, or add them to the table"
            )
        for each in _storable(schema):
            wanted, found = _type_text(each.type), _type_text(known.field(each.name).type)
            if wanted != found:
                raise RowsDoNotFit(f"column `{each.name}` is {wanted}, and {found} in {self.table}: cast it")
        folders = tuple(table.schema().find_column_name(each.source_id) for each in table.spec().fields)
        if folders != self.partition_by or any(str(each.transform) != "identity" for each in table.spec().fields):
            spec = ", ".join(str(each) for each in table.spec().fields) or "nothing"
            raise RowsDoNotFit(f"the Iceberg table {self.table} is partitioned by {spec}: set partition_by to that")
        return pa.schema([known.field(name) for name in schema.names])

    # The driver, after the tasks

    def committed(self) -> int | None:
        """Return the newest batch of the owner."""
        table = self.load()
        return None if table is None else self._committed(table)

    def _committed(self, table: Any) -> int | None:
        found = table.properties.get(BATCH_PROPERTY + self.owner)
        return None if found is None else int(found)

    def commit(self, reports: Sequence[StagingReport], batch_id: int) -> bool:
        """Add the files of these attempts and record the batch; return False if the table has the batch already, or if
        there is nothing to add.
        """
        from pyiceberg.exceptions import CommitFailedException

        paths = [path for report in reports for path in report.files]
        if not paths:
            return False
        for attempt in range(COMMIT_ATTEMPTS_MAX):
            table = self.load()
            found = self._committed(table)
            if found is not None and found >= batch_id:
                if not attempt:  # an earlier attempt that failed may have taken effect, and the table have the files
                    _discard(table, paths)
                return False
            try:
                self._add(table, paths, batch_id)
                return True
            except CommitFailedException:
                if attempt == COMMIT_ATTEMPTS_MAX - 1:
                    raise
        return False

    def _add(self, table: Any, paths: list[str], batch_id: int) -> None:
        # The library would repeat a failed commit on the newer table, without a look at the batches that it has.
        settings = {**table.metadata.properties, _LIBRARY_RETRIES: "0"}
        table.metadata = table.metadata.model_copy(update={"properties": settings})
        noted = {_SNAPSHOT_OWNER: self.owner, _SNAPSHOT_BATCH: str(batch_id)}
        with table.transaction() as transaction:
            transaction.set_properties({BATCH_PROPERTY + self.owner: str(batch_id)})
            transaction.add_files(paths, snapshot_properties=noted, check_duplicate_files=False)


def _storable(schema: "pa.Schema") -> "pa.Schema":
    """Return the schema with the types that Iceberg has."""
    import pyarrow as pa

    stored = (pa.field(each.name, pa.int32()) if str(each.type) in _WIDENED else each for each in schema)
    return pa.schema(list(stored))


def _type_text(kind: "pa.DataType") -> str:
    """Return a type without what Iceberg does not distinguish: sizes of offsets, and names of parts."""
    text = str(kind).replace("large_", "").replace("list<item: ", "list<element: ")
    return re.sub(r" \('\w+'\)", "", text)


def _discard(table: Any, paths: Sequence[str]) -> None:
    """Delete the files of a repeated batch; what cannot be deleted belongs to no snapshot."""
    for path in paths:
        with suppress(Exception):
            table.io.delete(path)
