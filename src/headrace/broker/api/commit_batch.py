"""CommitBatch (32001): commits the named writers of a batch and aborts the owner's other writers."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.batch_commits import proposed
from headrace.broker.api.support.coordinators import known
from headrace.broker.cluster.proposal import Proposal
from headrace.core.coordination.machine import PendingProducer
from headrace.core.transactions.batch_commands import BatchResult, CommitBatch, NamedWriter
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.commit_batch import CommitBatchRequest, CommitBatchResponse


def handle(request: CommitBatchRequest, ctx: RequestContext) -> object:
    command = CommitBatch(
        owner=request.owner,
        run=request.run,
        batch_id=request.batch_id,
        writers=frozenset(
            NamedWriter(writer.transactional_id, PendingProducer(writer.producer_id, writer.producer_epoch))
            for writer in request.writers
        ),
        write_id=request.write_id,
    )

    def respond(result: BatchResult) -> CommitBatchResponse:
        return CommitBatchResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            error_code=result.error,
            error_message=result.reason or None,
            already_committed=result.already_committed,
        )

    def commit() -> Proposal[BatchResult]:
        topics = {topic for topic, _partition in ctx.transactions.written_by(command)}
        if all(ctx.authorized(Operation.WRITE, AclResourceType.TOPIC, topic) for topic in topics):
            return ctx.transactions.commit_batch(command)
        reason = "the writers have written to topics that this client may not write to"
        return known(BatchResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED, reason))

    return proposed(ctx, request.owner, commit, respond)
