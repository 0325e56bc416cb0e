"""Epochs: borrow an identity for a task, commit or abort a batch. Each request is safe to repeat, and is repeated."""

from collections.abc import Iterable
from typing import Any

from headrace.client.core.admin.coordinators import CoordinatorKind, ask_coordinators
from headrace.client.core.admin.routing import ATTEMPT_PAUSE_MS
from headrace.client.core.calls import Api, Call, Operation, Pause
from headrace.client.core.cluster import Cluster
from headrace.client.epochs import EpochMember, EpochOutcome, EpochsDescription, PooledMember
from headrace.client.errors import BrokerError, BrokerUnreachable, EpochFenced
from headrace.model.errors import ErrorCode
from headrace.wire.messages import abort_epoch as abort_api
from headrace.wire.messages import begin_epoch_member as begin_api
from headrace.wire.messages import commit_epoch as commit_api
from headrace.wire.messages import describe_epochs as describe_api

ATTEMPTS_MAX = 1_000
"""Of one request while the broker is away; the time for the whole call is usually over before."""


def begin_member(
    cluster: Cluster, owner: str, *, run: str, batch_id: int, task_attempt_id: int, timeout_ms: int = 0
) -> Operation[EpochMember | None]:
    """None if the batch is committed: there is nothing left to write."""
    request = begin_api.BeginEpochMemberRequest(
        owner=owner, run=run, batch_id=batch_id, task_attempt_id=task_attempt_id, timeout_ms=timeout_ms
    )
    what = f'no member for batch {batch_id} of "{owner}"'
    reply: begin_api.BeginEpochMemberResponse = yield from _ask(cluster, owner, begin_api, request, what)
    if reply.already_committed:
        return None
    return EpochMember(
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
    cluster: Cluster, owner: str, *, run: str, batch_id: int, members: Iterable[EpochMember], write_id: str = ""
) -> Operation[EpochOutcome]:
    request = commit_api.CommitEpochRequest(
        owner=owner,
        run=run,
        batch_id=batch_id,
        members=tuple(
            commit_api.CommitEpochRequestMember(
                transactional_id=member.transactional_id,
                producer_id=member.producer_id,
                producer_epoch=member.producer_epoch,
            )
            for member in members
        ),
        write_id=write_id,
    )
    what = f'batch {batch_id} of "{owner}" was not committed'
    reply: commit_api.CommitEpochResponse = yield from _ask(cluster, owner, commit_api, request, what)
    return EpochOutcome.ALREADY_COMMITTED if reply.already_committed else EpochOutcome.COMMITTED


def abort(cluster: Cluster, owner: str, *, run: str, batch_id: int) -> Operation[EpochOutcome]:
    request = abort_api.AbortEpochRequest(owner=owner, run=run, batch_id=batch_id)
    what = f'batch {batch_id} of "{owner}" was not aborted'
    reply: abort_api.AbortEpochResponse = yield from _ask(cluster, owner, abort_api, request, what)
    return EpochOutcome.ALREADY_COMMITTED if reply.already_committed else EpochOutcome.ABORTED


def describe(cluster: Cluster, owner: str) -> Operation[EpochsDescription]:
    request = describe_api.DescribeEpochsRequest(owner=owner)
    what = f'nothing is known of the owner "{owner}"'
    reply: describe_api.DescribeEpochsResponse = yield from _ask(cluster, owner, describe_api, request, what)
    members = (
        PooledMember(
            each.transactional_id,
            each.producer_id,
            each.producer_epoch,
            each.state,
            each.run,
            each.batch_id,
            each.task_attempt_id,
        )
        for each in reply.members
    )
    return EpochsDescription(
        owner, reply.run, reply.committed_batch_id, reply.committed_run, reply.updated_at_ms, tuple(members)
    )


def _ask(cluster: Cluster, owner: str, api: Api[Any, Any], request: Any, what: str) -> Operation[Any]:
    """The owner's coordinator is asked until it answers; a connection that broke is no answer."""
    for attempt in range(ATTEMPTS_MAX):
        try:
            answers = yield from ask_coordinators(
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
    _, reply = answers[owner]
    if reply.error_code == ErrorCode.PRODUCER_FENCED:
        raise EpochFenced(f"{what}: {reply.error_message}")
    if reply.error_code:
        raise BrokerError(reply.error_code, what, reply.error_message)
    return reply
