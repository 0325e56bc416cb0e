"""The catalog as commands use it: each change in one transaction that keeps all managers out, with its audit record."""

import getpass
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection

from headrace.manager.access.audit import AuditRecord, write_record
from headrace.manager.catalog.database import Catalog
from headrace.manager.catalog.lease import lock
from headrace.manager.problems import ApiProblem
from headrace.operations.errors import OperationError

T = TypeVar("T")


class CatalogCommands:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def read(self, call: Callable[[Connection], T]) -> T:
        return self._run(call, writes=False)

    def change(self, action: str, resource: str, call: Callable[[Connection], T]) -> T:
        record = AuditRecord(
            user=f"command line: {getpass.getuser()}", address="", request_id="", action=action, resource=resource,
            status=0, detail="",
        )  # fmt: skip

        def changed(connection: Connection) -> T:
            lock(connection)
            result = call(connection)
            write_record(connection, record)
            return result

        return self._run(changed, writes=True)

    def _run(self, call: Callable[[Connection], T], *, writes: bool) -> T:
        try:
            return self._catalog.run_here(call, writes=writes)
        except ApiProblem as problem:
            raise OperationError(problem.detail) from None


@contextmanager
def catalog_commands(url: str) -> Iterator[CatalogCommands]:
    """Open a catalog for commands; its tables are created or brought to the newest revision if needed."""
    catalog = Catalog(url)
    try:
        yield CatalogCommands(catalog)
    finally:
        catalog.dispose()
