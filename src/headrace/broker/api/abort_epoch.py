"""AbortEpoch (32002): abort what a run has open for a batch; what is committed stays."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.epochs import answered
from headrace.core.transactions.epoch_commands import AbortEpoch, EpochResult
from headrace.wire.messages.abort_epoch import AbortEpochRequest, AbortEpochResponse


def handle(request: AbortEpochRequest, ctx: RequestContext) -> object:
    command = AbortEpoch(owner=request.owner, run=request.run, batch_id=request.batch_id)

    def respond(result: EpochResult) -> AbortEpochResponse:
        return AbortEpochResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            error_code=result.error,
            error_message=result.reason or None,
            already_committed=result.already_committed,
            aborted_members=result.aborted,
        )

    return answered(ctx, request.owner, lambda: ctx.transactions.abort_epoch(command), respond)
