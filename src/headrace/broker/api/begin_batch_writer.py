"""BeginBatchWriter (32000): lends a task a producer identity for one batch, unless the batch is committed."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.batch_commits import proposed
from headrace.core.transactions.batch_commands import BatchResult, BeginBatchWriter
from headrace.wire.messages.begin_batch_writer import BeginBatchWriterRequest, BeginBatchWriterResponse


def handle(request: BeginBatchWriterRequest, ctx: RequestContext) -> object:
    command = BeginBatchWriter(
        owner=request.owner,
        run=request.run,
        batch_id=request.batch_id,
        task_attempt_id=request.task_attempt_id,
        timeout_ms=request.timeout_ms,
    )

    def respond(result: BatchResult) -> BeginBatchWriterResponse:
        return BeginBatchWriterResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            error_code=result.error,
            error_message=result.reason or None,
            already_committed=result.already_committed,
            transactional_id=result.transactional_id or None,
            producer_id=result.producer.producer_id,
            producer_epoch=result.producer.producer_epoch,
            timeout_ms=result.timeout_ms,
        )

    return proposed(ctx, request.owner, lambda: ctx.transactions.begin_batch_writer(command), respond)
