"""Shared code of the handlers of batch commits."""

from collections.abc import Callable
from typing import Any

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import when_known
from headrace.broker.api.support.transactions import id_error
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.core.controller.records import BATCH_VERSION
from headrace.core.transactions.batch_commands import BatchResult
from headrace.model.errors import ErrorCode


def refusal(ctx: RequestContext, owner: str) -> BatchResult | None:
    """Return None if the client may write under the owner's ids: an owner is a prefix of transactional ids."""
    if ctx.image.features.get(BATCH_VERSION, 0) < 1:
        return BatchResult(ErrorCode.UNSUPPORTED_VERSION, f"the feature {BATCH_VERSION} is off")
    error = id_error(ctx, owner)
    return None if error is ErrorCode.NONE else BatchResult(error)


def proposed(
    ctx: RequestContext, owner: str, ask: Callable[[], Proposal[BatchResult]], respond: Callable[[BatchResult], Any]
) -> object:
    """Propose the command unless it is refused, and return the response that `respond` builds from the result."""
    refused = refusal(ctx, owner)
    if refused is not None:
        return respond(refused)

    def known(outcome: BatchResult | ProposalFailed) -> object:
        if isinstance(outcome, ProposalFailed):
            return respond(BatchResult(outcome.code, outcome.message))
        return respond(outcome)

    return when_known(ctx, ask(), known)
