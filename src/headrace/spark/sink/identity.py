"""Who writes: the query, its run and its micro-batch, as Spark tells a task.

Spark gives these only as local properties of a task, under names of its own. They are the same on every attempt and
every replay of a micro-batch, but for the run, which a restart of the query changes. `attemptNumber` begins again when
a stage is retried, so a task is told from another by its `taskAttemptId`.
"""

from typing import NamedTuple, Protocol

from pyspark import TaskContext

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
RUN_ID = "spark.jobGroup.id"

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
    def idempotence_epoch(self) -> int: ...


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

    `write_id` is the run of a write under a key, which has no query to take one from.
    """
    task = TaskContext.get()
    assert task is not None, "a writer writes within a task"
    attempt = task.taskAttemptId()
    if options.idempotence_key is not None:
        owner = f"{OWNER_PREFIX}.key.{options.idempotence_key}.{options.sink_name}"
        return Identity(owner, write_id, options.idempotence_epoch, attempt, write_id)
    query, batch = task.getLocalProperty(QUERY_ID), task.getLocalProperty(BATCH_ID)
    if query is None or batch is None:
        return None
    run = task.getLocalProperty(RUN_ID) or write_id
    return Identity(f"{OWNER_PREFIX}.{query}.{options.sink_name}", run, int(batch), attempt, write_id)
