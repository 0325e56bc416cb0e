"""What a table remembers of the epochs written into it, and how a repeat of one is told from a second write."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pyspark.sql.datasource import WriterCommitMessage

from headrace.spark.sink.identity import Identity
from headrace.spark.sink.tables.files import WrittenFile


class CommittedEpoch(NamedTuple):
    """The newest epoch of an owner that a table has; run and write are empty where that is not known any more."""

    batch_id: int
    run: str
    write_id: str


class SameEpochTwice(RuntimeError):
    """Two writes of one run have one name: the rows of the second would be taken for a repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport(WriterCommitMessage):
    """What the driver learns of a task that ended well."""

    identity: Identity | None
    write_id: str
    files: tuple[WrittenFile, ...]
    is_skipped: bool
    """The epoch was committed before the task began."""


class Table(Protocol):
    """Where files become visible together."""

    def staging_folder(self, identity: Identity | None, write_id: str) -> str:
        """Where a task puts its files."""
        ...

    def committed(self, owner: str) -> CommittedEpoch | None: ...

    def commit(self, reports: Sequence[FileReport], identity: Identity | None, write_id: str) -> None:
        """Make the files of these reports part of the table, once for each epoch."""
        ...

    def settle(self, identity: Identity) -> None:
        """Finish what an earlier commit of the epoch has left to do."""
        ...

    def discard(self, reports: Sequence[FileReport]) -> None:
        """Remove files that will never be committed."""
        ...


def is_repeat(found: CommittedEpoch | None, identity: Identity, write_id: str) -> bool:
    """Whether the epoch is in the table already; raises if another write of this very run put it there."""
    if found is None or found.batch_id < identity.batch_id:
        return False
    if found.batch_id == identity.batch_id and found.run == identity.run and found.write_id != write_id:
        raise SameEpochTwice(
            f"another write of this run has committed epoch {identity.batch_id} of {identity.owner} to this table: "
            "give each write in foreachBatch an option sinkName of its own"
        )
    return True
