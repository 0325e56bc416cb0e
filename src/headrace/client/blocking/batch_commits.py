"""Batch commits from a blocking thread: the requests of the tasks and the driver of a batch job."""

from collections.abc import Sequence

from headrace.client.batch_commits import FEATURE, FEATURE_BEFORE, BatchesDescription, BatchOutcome, BatchWriter
from headrace.client.blocking.blocking_client import BlockingClient
from headrace.client.core import batch_commits
from headrace.client.core.cluster import fetch_metadata
from headrace.client.errors import UnsupportedByBroker


class BatchCommits(BlockingClient):
    """Sends the requests of batch commits.

    The client connects at the first call. Every call may be repeated and ends within `timeout_ms`.
    """

    def supported(self) -> bool:
        """Return whether the cluster has batch commits; clusters of Kafka do not.

        Raises UnsupportedByBroker for brokers that have them under the name of a development version before 0.1.
        """
        self._session.run(fetch_metadata(()), self._timeout_ms)
        cluster = self._session.cluster
        if cluster.feature(FEATURE) > 0:
            return True
        if cluster.feature(FEATURE_BEFORE) > 0:
            raise UnsupportedByBroker(
                f"the brokers run a development version before 0.1, whose feature {FEATURE_BEFORE} is now called "
                f"{FEATURE}: upgrade the brokers before their clients"
            )
        return False

    def begin_batch_writer(
        self, owner: str, *, run: str, batch_id: int, task_attempt_id: int, timeout_ms: int = 0
    ) -> BatchWriter | None:
        """Borrow an identity to write the batch under; None if the batch is committed.

        A repetition with the same arguments returns the same writer and restarts the timeout of all writers of the run.
        A `timeout_ms` of 0 means the broker's default.
        """
        operation = batch_commits.begin_batch_writer(
            self._session.cluster,
            owner,
            run=run,
            batch_id=batch_id,
            task_attempt_id=task_attempt_id,
            timeout_ms=timeout_ms,
        )
        return self._session.run(operation, self._timeout_ms)

    def renew(self, writer: BatchWriter) -> BatchWriter | None:
        """Keep the writer of a long task open; None if its batch was committed without it.

        A result other than `writer` means that the coordinator has aborted `writer`, and its rows with it.
        """
        return self.begin_batch_writer(
            writer.owner,
            run=writer.run,
            batch_id=writer.batch_id,
            task_attempt_id=writer.task_attempt_id,
            timeout_ms=writer.timeout_ms,
        )

    def commit_batch(
        self, owner: str, *, run: str, batch_id: int, writers: Sequence[BatchWriter], write_id: str = ""
    ) -> BatchOutcome:
        """Commit the rows of these writers, all of them or none, and abort all other writers of the batch.

        A run with several writes in a batch needs a separate owner for each. By `write_id` the broker refuses a second
        write under one owner, also when a later run repeats the batch.
        """
        operation = batch_commits.commit(
            self._session.cluster, owner, run=run, batch_id=batch_id, writers=writers, write_id=write_id
        )
        return self._session.run(operation, self._timeout_ms)

    def abort_batch(self, owner: str, *, run: str, batch_id: int) -> BatchOutcome:
        operation = batch_commits.abort(self._session.cluster, owner, run=run, batch_id=batch_id)
        return self._session.run(operation, self._timeout_ms)

    def describe(self, owner: str) -> BatchesDescription:
        return self._session.run(batch_commits.describe(self._session.cluster, owner), self._timeout_ms)
