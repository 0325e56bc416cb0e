"""Who writes: the query, its run and its micro-batch, as Spark tells a task.

Spark gives these only as local properties of a task, under names of its own. They are the same on every attempt and
every replay of a micro-batch, but for the run, which a restart of the query changes. `attemptNumber` begins again when
a stage is retried, so a task is told from another by its `taskAttemptId`.
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
"""Part of a tag that a server of Spark Connect puts on all that a client has it do."""
STREAM_SETTING = "spark.sql.streaming.internal.stateStore.partitions"
"""Set by Spark in the session in which it runs the batches of a query."""
STREAM_SETTING_SINCE = (4, 3)
"""From this version on Spark Connect runs what foreachBatch asks for in the session of the query."""

OWNER_PREFIX = "spark"

NAME_EACH_WRITE = "give each write in foreachBatch an option sinkName of its own, and let the first keep its name"
"""What to do about two writes of a batch under one name: the first may be in, under that name."""


class NamedWrite(Protocol):
    """What the options of every sink have."""

    @property
    def sink_name(self) -> str: ...

    @property
    def idempotence_key(self) -> str | None: ...

    @property
    def idempotence_epoch(self) -> int | None: ...

    @property
    def is_repeatable(self) -> bool:
        """Whether the user has said that rows may come twice."""


class Identity(NamedTuple):
    """One attempt at one part of one epoch of an owner."""

    owner: str
    run: str
    batch_id: int
    task_attempt_id: int
    write_id: str = ""
    """The same for all tasks of one write, and no other's."""


def task_identity(options: NamedWrite, *, write_id: str) -> Identity | None:
    """None in a batch job that was given no key: nothing there would be the same on a second try.

    `write_id` is the run of a write under a key, which has no query to take one from. Under a key, the batch of a query
    is the epoch where the options name none.
    """
    task = TaskContext.get()
    assert task is not None, "a writer writes within a task"
    attempt = task.taskAttemptId()
    query, batch = task.getLocalProperty(QUERY_ID), task.getLocalProperty(BATCH_ID)
    if query is None and not options.is_repeatable:
        _refuse_unknown_batch(options, task)
    if options.idempotence_key is not None:
        owner = f"{OWNER_PREFIX}.key.{options.idempotence_key}.{options.sink_name}"
        epoch = int(batch or 0) if options.idempotence_epoch is None else options.idempotence_epoch
        return Identity(owner, write_id, epoch, attempt, write_id)
    if query is None or batch is None:
        return None
    run = task.getLocalProperty(RUN_ID) or write_id
    return Identity(f"{OWNER_PREFIX}.{query}.{options.sink_name}", run, int(batch), attempt, write_id)


def _refuse_unknown_batch(options: NamedWrite, task: TaskContext) -> None:
    """Refuse a write in foreachBatch on Spark Connect, which is not told its query and batch: a replay would repeat it.

    Before Spark 4.3 such a write cannot be told from a batch job, so both have to name what they write.
    """
    if CONNECT_TAG not in (task.getLocalProperty(JOB_TAGS) or ""):
        return
    is_batch = task.getLocalProperty(STREAM_SETTING) is None and _version() >= STREAM_SETTING_SINCE
    if is_batch or (options.idempotence_key is not None and options.idempotence_epoch is not None):
        return
    raise OptionError(
        "on Spark Connect a write in foreachBatch does not know its query and its batch, so a repeat of the batch "
        "would be written again: give it the options idempotenceKey (a name of this write alone) and idempotenceEpoch "
        "(the batch id that foreachBatch is called with). Nothing is written"
    )


def _version() -> tuple[int, ...]:
    return tuple(int(part) for part in pyspark.__version__.split(".")[:2])
