"""Requests of the tasks and drivers of batch commits."""

from collections.abc import Iterable

from headrace.sim.checkers.history import SendingProducer
from headrace.wire.messages import abort_batch, begin_batch_writer, commit_batch

VERSION = 0
TIMEOUT_MS = 4_000
"""The timeout of writers."""


def begin(owner: str, run: str, batch_id: int, attempt: int) -> object:
    return begin_batch_writer.BeginBatchWriterRequest(
        owner=owner, run=run, batch_id=batch_id, task_attempt_id=attempt, timeout_ms=TIMEOUT_MS
    )


def commit(owner: str, run: str, batch_id: int, writers: Iterable[tuple[str, SendingProducer]]) -> object:
    return commit_batch.CommitBatchRequest(
        owner=owner,
        run=run,
        batch_id=batch_id,
        writers=tuple(
            commit_batch.CommitBatchRequestWriter(
                transactional_id=transactional_id, producer_id=producer.producer_id, producer_epoch=producer.epoch
            )
            for transactional_id, producer in writers
        ),
    )


def abort(owner: str, run: str, batch_id: int) -> object:
    return abort_batch.AbortBatchRequest(owner=owner, run=run, batch_id=batch_id)
