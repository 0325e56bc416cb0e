"""The driver's part of a batch commit: one request commits or aborts the rows of all tasks."""

from collections.abc import Sequence
from dataclasses import replace

from headrace.client.errors import BrokerError, ClientError
from headrace.model.errors import ErrorCode
from headrace.spark.broker_wait import BrokersAway
from headrace.spark.log_once import log_line, log_once
from headrace.spark.sink import connections
from headrace.spark.sink.identity import NAME_EACH_WRITE, Identity
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.reports import TaskReport
from headrace.spark.workers import freeze_imports

ABORT_MS_MAX = 10_000
"""Short, since the query has failed already and the coordinator aborts the writers after their timeout anyway."""


class BatchNotCommitted(RuntimeError):
    """The rows of a batch are not in the topics; the query writes them again after a restart."""


def commit(options: SinkOptions, reports: Sequence[TaskReport]) -> None:
    """Commit the rows of all tasks together. A repetition after the commit changes nothing."""
    freeze_imports()
    identity = _identity(reports)
    if identity is None:
        return
    writers = [report.writer for report in reports if report.writer is not None]
    batch_commits = connections.kept_batch_commits(options)
    try:
        connections.retry_until_deadline(
            options,
            lambda: batch_commits.commit_batch(
                identity.owner,
                run=identity.run,
                batch_id=identity.batch_id,
                writers=writers,
                write_id=identity.write_id,
            ),
        )
    except BrokerError as error:
        connections.drop("batch commits", options.client)
        raise BatchNotCommitted(_explained(error, identity)) from error
    except (ClientError, BrokersAway):
        connections.drop("batch commits", options.client)
        raise
    if not writers:
        log_line(
            f"nothing was written: batch {identity.batch_id} of {identity.owner}, or a later one, is committed already"
        )


def _explained(error: BrokerError, identity: Identity) -> str:
    if error.code == ErrorCode.INVALID_TXN_STATE:
        return (
            f"another write of this run has written batch {identity.batch_id} of {identity.owner}, so it is unknown "
            f"whether these rows are in the topics: {NAME_EACH_WRITE}"
        )
    if error.code == ErrorCode.TRANSACTION_ABORTABLE:
        return (
            f"a writer of batch {identity.batch_id} of {identity.owner} was aborted before the commit: no task of the "
            "run was heard of for kafka.transaction.timeout.ms, or the broker's machine was restarted before the rows "
            "were synced. No row of it is in the topics: restart the query; raise the option if tasks pause for longer"
        )
    return f"batch {identity.batch_id} of {identity.owner} is not committed: {error}"


def abort(options: SinkOptions, reports: Sequence[TaskReport]) -> None:
    """Abort the writers now, rather than by the next run or by their timeout. Never raises.

    Spark also calls this after a commit that raised. A commit that took effect in spite of the error stands.
    """
    identity = _identity(reports)
    if identity is None:
        return
    from headrace.client.blocking.batch_commits import BatchCommits

    config = replace(options.admin_config(), timeout_ms=min(ABORT_MS_MAX, int(options.patience_ms)))
    try:
        with BatchCommits(config=config) as batch_commits:
            batch_commits.abort_batch(identity.owner, run=identity.run, batch_id=identity.batch_id)
    except ClientError as error:
        log_once(f"batch {identity.batch_id} of {identity.owner} is left to its timeout: {error}")


def _identity(reports: Sequence[TaskReport]) -> Identity | None:
    """Return the owner, run and batch of the write, which are the same for all of its tasks."""
    identities = {report.identity._replace(task_attempt_id=0) for report in reports if report.identity is not None}
    assert len(identities) <= 1, f"tasks of one write report different batches: {identities}"
    return identities.pop() if identities else None
