"""BeginEpochMember (32000): lend a task the producer identity to write one batch under, unless the batch is in."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.epochs import answered
from headrace.core.transactions.epoch_commands import BeginMember, EpochResult
from headrace.wire.messages.begin_epoch_member import BeginEpochMemberRequest, BeginEpochMemberResponse


def handle(request: BeginEpochMemberRequest, ctx: RequestContext) -> object:
    command = BeginMember(
        owner=request.owner,
        run=request.run,
        batch_id=request.batch_id,
        task_attempt_id=request.task_attempt_id,
        timeout_ms=request.timeout_ms,
    )

    def respond(result: EpochResult) -> BeginEpochMemberResponse:
        return BeginEpochMemberResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            error_code=result.error,
            error_message=result.reason or None,
            already_committed=result.already_committed,
            transactional_id=result.transactional_id or None,
            producer_id=result.producer.producer_id,
            producer_epoch=result.producer.producer_epoch,
            timeout_ms=result.timeout_ms,
        )

    return answered(ctx, request.owner, lambda: ctx.transactions.begin_member(command), respond)
