"""The messages of tasks and drivers whose batches are committed as one."""

from collections.abc import Iterable

from headrace.sim.checkers.history import Producer
from headrace.wire.messages import abort_epoch, begin_epoch_member, commit_epoch

VERSION = 0
TIMEOUT_MS = 4_000
"""How long nothing may be heard of a run."""


def begin(owner: str, run: str, batch_id: int, attempt: int) -> object:
    return begin_epoch_member.BeginEpochMemberRequest(
        owner=owner, run=run, batch_id=batch_id, task_attempt_id=attempt, timeout_ms=TIMEOUT_MS
    )


def commit(owner: str, run: str, batch_id: int, members: Iterable[tuple[str, Producer]]) -> object:
    return commit_epoch.CommitEpochRequest(
        owner=owner,
        run=run,
        batch_id=batch_id,
        members=tuple(
            commit_epoch.CommitEpochRequestMember(
                transactional_id=transactional_id, producer_id=producer.producer_id, producer_epoch=producer.epoch
            )
            for transactional_id, producer in members
        ),
    )


def abort(owner: str, run: str, batch_id: int) -> object:
    return abort_epoch.AbortEpochRequest(owner=owner, run=run, batch_id=batch_id)
