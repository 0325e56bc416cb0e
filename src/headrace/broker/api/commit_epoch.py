"""CommitEpoch (32001): commit what the named members of a batch have written, and abort the others of its owner."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.epochs import answered
from headrace.core.coordination.machine import Producer
from headrace.core.transactions.epoch_commands import CommitEpoch, EpochResult, NamedMember
from headrace.wire.messages.commit_epoch import CommitEpochRequest, CommitEpochResponse


def handle(request: CommitEpochRequest, ctx: RequestContext) -> object:
    command = CommitEpoch(
        owner=request.owner,
        run=request.run,
        batch_id=request.batch_id,
        members=frozenset(
            NamedMember(member.transactional_id, Producer(member.producer_id, member.producer_epoch))
            for member in request.members
        ),
        write_id=request.write_id,
    )

    def respond(result: EpochResult) -> CommitEpochResponse:
        return CommitEpochResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            error_code=result.error,
            error_message=result.reason or None,
            already_committed=result.already_committed,
        )

    return answered(ctx, request.owner, lambda: ctx.transactions.commit_epoch(command), respond)
