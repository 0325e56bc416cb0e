"""Batch commits: borrow a writer for a task, commit or abort a batch. Every request is idempotent and retried."""

from collections.abc import Iterable
from typing import Any

from headrace.client.batch_commits import BatchesDescription, BatchOutcome, BatchWriter, PooledWriter
from headrace.client.core.admin.coordinators import ask_coordinators
from headrace.client.core.admin.routing import ATTEMPT_PAUSE_MS
from headrace.client.core.calls import ApiCodec, Call, Operation, Pause
from headrace.client.core.cluster import Cluster
from headrace.client.core.groups.coordinator import CoordinatorKind
from headrace.client.errors import BatchFenced, BrokerError, BrokerUnreachable
from headrace.model.errors import ErrorCode
from headrace.wire.messages import abort_batch as abort_api
from headrace.wire.messages import begin_batch_writer as begin_api
from headrace.wire.messages import commit_batch as commit_api
from headrace.wire.messages import describe_batches as describe_api

ATTEMPTS_MAX = 1_000
"""Attempts of one request while no broker can be reached; usually the deadline of the call ends it earlier."""


def begin_batch_writer(
    cluster: Cluster, owner: str, *, run: str, batch_id: int, task_attempt_id: int, timeout_ms: int = 0
) -> Operation[BatchWriter | None]:
    """Borrow a writer; None if the batch is committed, so that there is nothing left to write."""
    request = begin_api.BeginBatchWriterRequest(
        owner=owner, run=run, batch_id=batch_id, task_attempt_id=task_attempt_id, timeout_ms=timeout_ms
    )
    what = f'no writer was lent for batch {batch_id} of "{owner}"'
    reply: begin_api.BeginBatchWriterResponse = yield from _ask(cluster, owner, begin_api, request, what)
    if reply.already_committed:
        return None
    return BatchWriter(
        owner,
        run,
        batch_id,
        task_attempt_id,
        reply.transactional_id or "",
        reply.producer_id,
        reply.producer_epoch,
        reply.timeout_ms,
    )


def commit(
    cluster: Cluster, owner: str, *, run: str, batch_id: int, writers: Iterable[BatchWriter], write_id: str = ""
) -> Operation[BatchOutcome]:
    request = commit_api.CommitBatchRequest(
        owner=owner,
        run=run,
        batch_id=batch_id,
        writers=tuple(
            commit_api.CommitBatchRequestWriter(
                transactional_id=writer.transactional_id,
                producer_id=writer.producer_id,
                producer_epoch=writer.producer_epoch,
            )
            for writer in writers
        ),
        write_id=write_id,
    )
    what = f'batch {batch_id} of "{owner}" was not committed'
    reply: commit_api.CommitBatchResponse = yield from _ask(cluster, owner, commit_api, request, what)
    return BatchOutcome.ALREADY_COMMITTED if reply.already_committed else BatchOutcome.COMMITTED


def abort(cluster: Cluster, owner: str, *, run: str, batch_id: int) -> Operation[BatchOutcome]:
    request = abort_api.AbortBatchRequest(owner=owner, run=run, batch_id=batch_id)
    what = f'batch {batch_id} of "{owner}" was not aborted'
    reply: abort_api.AbortBatchResponse = yield from _ask(cluster, owner, abort_api, request, what)
    return BatchOutcome.ALREADY_COMMITTED if reply.already_committed else BatchOutcome.ABORTED


def describe(cluster: Cluster, owner: str) -> Operation[BatchesDescription]:
    request = describe_api.DescribeBatchesRequest(owner=owner)
    what = f'nothing is known of the owner "{owner}"'
    reply: describe_api.DescribeBatchesResponse = yield from _ask(cluster, owner, describe_api, request, what)
    writers = (
        PooledWriter(
            each.transactional_id,
            each.producer_id,
            each.producer_epoch,
            each.state,
            each.run,
            each.batch_id,
            each.task_attempt_id,
        )
        for each in reply.writers
    )
    return BatchesDescription(
        owner, reply.run, reply.committed_batch_id, reply.committed_run, reply.updated_at_ms, tuple(writers)
    )


def _ask(cluster: Cluster, owner: str, api: ApiCodec[Any, Any], request: Any, what: str) -> Operation[Any]:
    """Send the request to the owner's coordinator, and again when the connection broke before the response."""
    for attempt in range(ATTEMPTS_MAX):
        try:
            replies = yield from ask_coordinators(
                cluster,
                [owner],
                call=lambda _owner, node: Call(api, request, node),
                codes=lambda reply: (reply.error_code,),
                kind=CoordinatorKind.TRANSACTION,
            )
            break
        except BrokerUnreachable:
            if attempt == ATTEMPTS_MAX - 1:
                raise
            yield Pause(ATTEMPT_PAUSE_MS)
    _, reply = replies[owner]
    if reply.error_code == ErrorCode.PRODUCER_FENCED:
        raise BatchFenced(f"{what}: {reply.error_message}")
    if reply.error_code:
        raise BrokerError(reply.error_code, what, reply.error_message)
    return reply
