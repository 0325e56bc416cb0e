"""DescribeBatches (32003): describe the newest run of an owner, its last committed batch and its pool."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import when_known
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.transactions.batch_commands import DescribedBatches
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_batches import (
    DescribeBatchesRequest,
    DescribeBatchesResponse,
    DescribeBatchesResponseWriter,
)


def handle(request: DescribeBatchesRequest, ctx: RequestContext) -> object:
    def respond(outcome: DescribedBatches | ProposalFailed) -> DescribeBatchesResponse:
        found = DescribedBatches(outcome.code) if isinstance(outcome, ProposalFailed) else outcome
        return DescribeBatchesResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            error_code=found.error,
            run=found.run,
            committed_batch_id=found.committed_batch_id,
            committed_run=found.committed_run,
            updated_at_ms=found.updated_at_ms,
            writers=tuple(
                DescribeBatchesResponseWriter(
                    transactional_id=writer.transactional_id,
                    producer_id=writer.producer.producer_id,
                    producer_epoch=writer.producer.producer_epoch,
                    state=writer.state,
                    run=writer.run,
                    batch_id=writer.batch_id,
                    task_attempt_id=writer.task_attempt_id,
                )
                for writer in found.writers
            ),
        )

    if not ctx.authorized(Operation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, request.owner):
        return respond(DescribedBatches(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if not request.owner:
        return respond(DescribedBatches(ErrorCode.INVALID_REQUEST))
    return when_known(ctx, ctx.transactions.describe_batches(request.owner), respond)
