"""The identity of a write: the query, its run and its micro-batch, from the local properties of a Spark task.

All of them are the same on every attempt and every replay of a micro-batch, except the run, which changes with a
restart of the query. Attempts are distinguished by `taskAttemptId`: `attemptNumber` begins again when a stage is
retried.
"""

from typing import NamedTuple, Protocol

import pyspark
from pyspark import TaskContext

from headrace.spark.option_names import OptionError

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
RUN_ID = "spark.jobGroup.id"

JOB_TAGS = "spark.job.tags"
CONNECT_TAG = "SparkConnect_OperationTag"
"""Part of the tag that a server of Spark Connect puts on all work of a client."""
STREAM_SETTING = "spark.sql.streaming.internal.stateStore.partitions"
"""A setting that Spark makes in the session in which it runs the batches of a query."""
STREAM_SETTING_SINCE = (4, 3)
"""From this version on Spark Connect runs the writes of foreachBatch in the session of the query."""

OWNER_PREFIX = "spark"

NAME_EACH_WRITE = "set a different option sinkName for each write in foreachBatch, and keep the name of the first"
"""The remedy for two writes of a batch under one name; the first may be committed under that name."""


class NamedWrite(Protocol):
    """The part of a sink's options that identifies its writes."""

    @property
    def sink_name(self) -> str: ...

    @property
    def idempotence_key(self) -> str | None: ...

    @property
    def idempotence_batch_id(self) -> int | None: ...

    @property
    def is_repeatable(self) -> bool:
        """Return whether the user has accepted repeated rows."""


class Identity(NamedTuple):
    """One attempt of one task of one batch of an owner."""

    owner: str
    run: str
    batch_id: int
    task_attempt_id: int
    write_id: str = ""
    """An id that all tasks of one write share, and no other write has."""


def task_identity(options: NamedWrite, *, write_id: str) -> Identity | None:
    """Return the identity of this task; None in a batch job without a key, which has nothing that a retry shares.

    A write under a key has no query, so that its `write_id` is its run. Its batch is idempotenceBatchId, or the
    micro-batch where the options do not set it.
    """
    task = TaskContext.get()
    assert task is not None, "a writer writes within a task"
    attempt = task.taskAttemptId()
    query, batch = task.getLocalProperty(QUERY_ID), task.getLocalProperty(BATCH_ID)
    if query is None and not options.is_repeatable:
        _refuse_unknown_batch(options, task)
    if options.idempotence_key is not None:
        owner = f"{OWNER_PREFIX}.key.{options.idempotence_key}.{options.sink_name}"
        batch_id = int(batch or 0) if options.idempotence_batch_id is None else options.idempotence_batch_id
        return Identity(owner, write_id, batch_id, attempt, write_id)
    if query is None or batch is None:
        return None
    run = task.getLocalProperty(RUN_ID) or write_id
    return Identity(f"{OWNER_PREFIX}.{query}.{options.sink_name}", run, int(batch), attempt, write_id)


def _refuse_unknown_batch(options: NamedWrite, task: TaskContext) -> None:
    """Refuse a write in foreachBatch on Spark Connect: it does not know its batch, so a replay would repeat it.

    Before Spark 4.3 such a write cannot be distinguished from a batch job, so that both need the options.
    """
    if CONNECT_TAG not in (task.getLocalProperty(JOB_TAGS) or ""):
        return
    is_batch = task.getLocalProperty(STREAM_SETTING) is None and _version() >= STREAM_SETTING_SINCE
    if is_batch or (options.idempotence_key is not None and options.idempotence_batch_id is not None):
        return
    raise OptionError(
        "on Spark Connect a write in foreachBatch does not know its query and its batch, so that a replay would write "
        "the batch again: set the options idempotenceKey (a name of this write alone) and idempotenceBatchId (the "
        "batch id that foreachBatch is called with). Nothing is written"
    )


def _version() -> tuple[int, ...]:
    return tuple(int(part) for part in pyspark.__version__.split(".")[:2])
