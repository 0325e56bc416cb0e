"""What a table remembers of the epochs written into it, and how a repeat of one is told from a second write."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pyspark.sql.datasource import WriterCommitMessage

from headrace.spark.sink.identity import NAME_EACH_WRITE, Identity
from headrace.spark.sink.tables.written_files import WrittenFile


class CommittedEpoch(NamedTuple):
    """The newest epoch of an owner that a table has; run and write are empty where that is not known any more.

    They are those that put it there, or for a run that found it there, that run and the write by which it did.
    """

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
    passed_rows: int = 0
    """Of a task that was skipped."""


class Table(Protocol):
    """Where files become visible together."""

    def staging_folder(self, identity: Identity | None, write_id: str) -> str:
        """Where a task puts its files."""
        ...

    def committed(self, owner: str, run: str = "") -> CommittedEpoch | None:
        """As the run knows it."""
        ...

    def commit(self, reports: Sequence[FileReport], identity: Identity | None, write_id: str) -> None:
        """Make the files of these reports part of the table, once for each epoch."""
        ...

    def settle(self, identity: Identity) -> None:
        """Finish what an earlier commit of the epoch has left to do."""
        ...

    def note_repeat(self, identity: Identity, write_id: str) -> None:
        """Rows of this write were passed over, as the epoch is there: no other write of the run may say so."""
        ...

    def discard(self, reports: Sequence[FileReport]) -> None:
        """Remove files that will never be committed."""
        ...


def is_noted(found: CommittedEpoch | None, identity: Identity | None) -> bool:
    """Whether there is nothing to note of a repeat: the run has done so, or a later epoch is in the table."""
    if found is None or identity is None:
        return True
    return found.run == identity.run or found.batch_id > identity.batch_id


def is_repeat(found: CommittedEpoch | None, identity: Identity, write_id: str) -> bool:
    """Whether the epoch is in the table already; raises if another write of this very run put or found it there."""
    if found is None or found.batch_id < identity.batch_id:
        return False
    if found.batch_id == identity.batch_id and found.run == identity.run and found.write_id != write_id:
        raise SameEpochTwice(
            f"another write of this run has epoch {identity.batch_id} of {identity.owner} in this table, so whether "
            f"these rows are in it cannot be known: {NAME_EACH_WRITE}"
        )
    return True
