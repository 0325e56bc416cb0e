"""What the handlers of requests about epochs share."""

from collections.abc import Callable
from typing import Any

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import when_known
from headrace.broker.api.support.transactions import id_error
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.core.controller.records import EPOCH_VERSION
from headrace.core.transactions.epoch_commands import EpochResult
from headrace.model.errors import ErrorCode


def refusal(ctx: RequestContext, owner: str) -> EpochResult | None:
    """None if the sender may write under the owner's ids: an owner is a prefix of transactional ids."""
    if ctx.image.features.get(EPOCH_VERSION, 0) < 1:
        return EpochResult(ErrorCode.UNSUPPORTED_VERSION, f"{EPOCH_VERSION} is off")
    error = id_error(ctx, owner)
    return None if error is ErrorCode.NONE else EpochResult(error)


def answered(
    ctx: RequestContext, owner: str, ask: Callable[[], Proposal[EpochResult]], respond: Callable[[EpochResult], Any]
) -> object:
    """What `respond` makes of the result."""
    refused = refusal(ctx, owner)
    if refused is not None:
        return respond(refused)

    def known(outcome: EpochResult | ProposalFailed) -> object:
        if isinstance(outcome, ProposalFailed):
            return respond(EpochResult(outcome.code, outcome.message))
        return respond(outcome)

    return when_known(ctx, ask(), known)
