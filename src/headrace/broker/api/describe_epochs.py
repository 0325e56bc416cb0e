"""DescribeEpochs (32003): the newest run of an owner, its last committed batch, and the ids of its pool."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import when_known
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.transactions.epoch_commands import DescribedEpochs
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_epochs import (
    DescribeEpochsRequest,
    DescribeEpochsResponse,
    DescribeEpochsResponseMember,
)


def handle(request: DescribeEpochsRequest, ctx: RequestContext) -> object:
    def respond(outcome: DescribedEpochs | ProposalFailed) -> DescribeEpochsResponse:
        found = DescribedEpochs(outcome.code) if isinstance(outcome, ProposalFailed) else outcome
        return DescribeEpochsResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            error_code=found.error,
            run=found.run,
            committed_batch_id=found.committed_batch_id,
            committed_run=found.committed_run,
            updated_at_ms=found.updated_at_ms,
            members=tuple(
                DescribeEpochsResponseMember(
                    transactional_id=member.transactional_id,
                    producer_id=member.producer.producer_id,
                    producer_epoch=member.producer.producer_epoch,
                    state=member.state,
                    run=member.run,
                    batch_id=member.batch_id,
                    task_attempt_id=member.task_attempt_id,
                )
                for member in found.members
            ),
        )

    if not ctx.authorized(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, request.owner):
        return respond(DescribedEpochs(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if not request.owner:
        return respond(DescribedEpochs(ErrorCode.INVALID_REQUEST))
    return when_known(ctx, ctx.transactions.describe_epochs(request.owner), respond)
