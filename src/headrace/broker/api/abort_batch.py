"""AbortBatch (32002): aborts the open writers of a run for a batch; a committed batch stays."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.batch_commits import proposed
from headrace.core.transactions.batch_commands import AbortBatch, BatchResult
from headrace.wire.messages.abort_batch import AbortBatchRequest, AbortBatchResponse


def handle(request: AbortBatchRequest, ctx: RequestContext) -> object:
    command = AbortBatch(owner=request.owner, run=request.run, batch_id=request.batch_id)

    def respond(result: BatchResult) -> AbortBatchResponse:
        return AbortBatchResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            error_code=result.error,
            error_message=result.reason or None,
            already_committed=result.already_committed,
            aborted_writers=result.aborted,
        )

    return proposed(ctx, request.owner, lambda: ctx.transactions.abort_batch(command), respond)
