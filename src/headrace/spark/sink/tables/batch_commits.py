"""The batch commits that a table remembers, by which a repetition of a batch is distinguished from a second write."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pyspark.sql.datasource import WriterCommitMessage

from headrace.spark.sink.identity import NAME_EACH_WRITE, Identity
from headrace.spark.sink.tables.written_files import WrittenFile


class BatchCommit(NamedTuple):
    """The newest committed batch of an owner in a table; run and write are empty where they are not known any more.

    They are those of the commit. For a run that repeated the batch, they are that run and its write.
    """

    batch_id: int
    run: str
    write_id: str


class SameBatchTwice(RuntimeError):
    """Two writes of one run share a name, so that the second would be mistaken for a repetition."""


class WrittenByEarlierVersion(RuntimeError):
    """The batch commits of the owner have the names of a development version before 0.1, which are not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport(WriterCommitMessage):
    """The report of a task that succeeded."""

    identity: Identity | None
    write_id: str
    files: tuple[WrittenFile, ...]
    is_skipped: bool
    """True if the batch was committed before the task began."""
    passed_rows: int = 0
    """The number of rows that a skipped task consumed."""


class Table(Protocol):
    """A table in which the files of a batch become visible together."""

    def staging_folder(self, identity: Identity | None, write_id: str) -> str:
        """Return the folder in which a task writes its files."""
        ...

    def committed(self, owner: str, run: str = "") -> BatchCommit | None:
        """Return the owner's newest batch commit, as the run knows it.

        Raises WrittenByEarlierVersion if the table has it under the names of a development version before 0.1.
        """
        ...

    def commit(self, reports: Sequence[FileReport], identity: Identity | None, write_id: str) -> None:
        """Add the files of these reports to the table, once per batch."""
        ...

    def finish_commit(self, identity: Identity) -> None:
        """Complete an earlier commit of the batch that was interrupted."""
        ...

    def note_repeat(self, identity: Identity, write_id: str) -> None:
        """Note that this write of the run repeated the batch, so that other writes of the run are refused."""
        ...

    def discard(self, reports: Sequence[FileReport]) -> None:
        """Remove files that will never be committed."""
        ...


def is_noted(found: BatchCommit | None, identity: Identity | None) -> bool:
    """Return whether a repetition needs no note: the run has noted it, or the table has a later batch."""
    if found is None or identity is None:
        return True
    return found.run == identity.run or found.batch_id > identity.batch_id


def is_repeat(found: BatchCommit | None, identity: Identity, write_id: str) -> bool:
    """Return whether the table has the batch already; raise if another write of the same run wrote or repeated it."""
    if found is None or found.batch_id < identity.batch_id:
        return False
    if found.batch_id == identity.batch_id and found.run == identity.run and found.write_id != write_id:
        raise SameBatchTwice(
            f"another write of this run has written batch {identity.batch_id} of {identity.owner} to this table, so it "
            f"is unknown whether these rows are in it: {NAME_EACH_WRITE}"
        )
    return True
