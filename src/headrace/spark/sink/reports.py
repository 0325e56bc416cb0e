"""What the driver learns of a task, in a module of its own: whoever commits needs none of what tasks encode with."""

from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from headrace.client.epochs import EpochMember
from headrace.spark.sink.identity import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport(WriterCommitMessage):
    """Of a task that ended well."""

    identity: Identity | None
    """Whose epoch it is; None at least once."""
    member: EpochMember | None
    """What to commit; None if the epoch was committed before."""
    records: int
    batch_bytes: int
