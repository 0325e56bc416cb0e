"""Requests that change metadata: parked until their proposal is committed or failed, or their time is over."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.core.controller.commands import TopicResult
from headrace.model.errors import ErrorCode

Outcome = TypeVar("Outcome")

COMMIT_WAIT_MS_MIN = 1_000
"""Minimum wait: clients that ask for none (librdkafka's default) get the outcome too, which is there a turn later."""

COMMIT_WAIT_MS = 30_000
"""For requests that do not say how long they wait."""

COMMIT_WAIT_MS_MAX = 600_000


def park_until_committed(
    ctx: RequestContext,
    proposal: Proposal[Outcome],
    respond: Callable[[Outcome | ProposalFailed], object],
    *,
    timeout_ms: int = COMMIT_WAIT_MS,
) -> Parked:
    """Respond to the outcome, once the partitions that it created can be used."""
    too_late = ProposalFailed(
        ErrorCode.REQUEST_TIMED_OUT, f"commit timed out after {timeout_ms} ms; the outcome is unknown"
    )
    parked = ctx.park(
        timeout_ms=min(max(timeout_ms, COMMIT_WAIT_MS_MIN), COMMIT_WAIT_MS_MAX), on_timeout=lambda: respond(too_late)
    )

    def committed(outcome: Outcome | ProposalFailed) -> None:
        ctx.partition_admin.when_ready(lambda: None if parked.completed else parked.complete(respond(outcome)))

    proposal.then(committed)
    return parked


def with_failed_storage(ctx: RequestContext, results: Iterable[TopicResult]) -> Iterator[TopicResult]:
    """Yield the results, with an error for committed topics whose partitions could not be created on disk."""
    for result in results:
        failure = ctx.partition_admin.failure_of(result.name or "") if result.error is ErrorCode.NONE else None
        if failure is None:
            yield result
        else:
            yield TopicResult(result.name, error=ErrorCode.KAFKA_STORAGE_ERROR, message=failure)
