"""The driver's part: one request commits what all tasks of an epoch have written, or gives it up."""

from collections.abc import Sequence
from dataclasses import replace

from headrace.client.errors import BrokerError, ClientError
from headrace.model.errors import ErrorCode
from headrace.spark.broker_wait import BrokersAway
from headrace.spark.log_once import log_once, say
from headrace.spark.sink import connections
from headrace.spark.sink.identity import NAME_EACH_WRITE, Identity
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.reports import TaskReport
from headrace.spark.workers import freeze_imports

ABORT_MS_MAX = 10_000
"""The query has failed already: nobody is to wait long for what time does too."""


class EpochNotCommitted(RuntimeError):
    """The rows of an epoch are not in the topics; the query writes them again when it is restarted."""


def commit(options: SinkOptions, reports: Sequence[TaskReport]) -> None:
    """Everything that the tasks wrote, together; once committed, a repeat of it changes nothing."""
    freeze_imports()
    identity = _identity(reports)
    if identity is None:
        return
    members = [report.member for report in reports if report.member is not None]
    epochs = connections.kept_epochs(options)
    try:
        connections.retry_until_deadline(
            options,
            lambda: epochs.commit_epoch(
                identity.owner,
                run=identity.run,
                batch_id=identity.batch_id,
                members=members,
                write_id=identity.write_id,
            ),
        )
    except BrokerError as error:
        connections.drop("epochs", options.client)
        raise EpochNotCommitted(_explained(error, identity)) from error
    except (ClientError, BrokersAway):
        connections.drop("epochs", options.client)
        raise
    if not members:
        say(
            f"nothing was written: epoch {identity.batch_id} of {identity.owner}, or one above it, was committed before"
        )


def _explained(error: BrokerError, identity: Identity) -> str:
    if error.code == ErrorCode.INVALID_TXN_STATE:
        return (
            f"another write of this run has epoch {identity.batch_id} of {identity.owner}, so whether these rows are "
            f"in the topics cannot be known: {NAME_EACH_WRITE}"
        )
    if error.code == ErrorCode.TRANSACTION_ABORTABLE:
        return (
            f"a part of epoch {identity.batch_id} of {identity.owner} was given up before the commit, by a newer run "
            "or because the epoch took longer than kafka.transaction.timeout.ms: nothing of it is in the topics; "
            "restart the query, and raise that option if it was the time"
        )
    return f"epoch {identity.batch_id} of {identity.owner} is not committed: {error}"


def abort(options: SinkOptions, reports: Sequence[TaskReport]) -> None:
    """Give the rows up now rather than when the next run or the coordinator's clock does. Never raises.

    Spark also calls this after a commit that raised. A commit that took effect all the same stands.
    """
    identity = _identity(reports)
    if identity is None:
        return
    from headrace.client.blocking.epochs import Epochs

    config = replace(options.admin_config(), timeout_ms=min(ABORT_MS_MAX, int(options.patience_ms)))
    try:
        with Epochs(config=config) as epochs:
            epochs.abort_epoch(identity.owner, run=identity.run, batch_id=identity.batch_id)
    except ClientError as error:
        log_once(f"epoch {identity.batch_id} of {identity.owner} is left to its time-out: {error}")


def _identity(reports: Sequence[TaskReport]) -> Identity | None:
    """Whose epoch it is. All tasks of a write belong to one."""
    identities = {report.identity._replace(task_attempt_id=0) for report in reports if report.identity is not None}
    assert len(identities) <= 1, f"tasks of one write report different epochs: {identities}"
    return identities.pop() if identities else None
