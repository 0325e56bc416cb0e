"""AlterPartition (56): the leader of partitions changes their in-sync replicas; only the active controller decides."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.peer_requests import is_sender, park_until_decided
from headrace.broker.cluster.isr_messages import alteration, alteration_response
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.commands import IsrResults
from headrace.model.errors import ErrorCode
from headrace.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


def handle(request: AlterPartitionRequest, ctx: RequestContext) -> AlterPartitionResponse | Parked:
    if not is_sender(ctx, request.broker_id):
        return AlterPartitionResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def respond(outcome: IsrResults | ProposalFailed) -> AlterPartitionResponse:
        if isinstance(outcome, ProposalFailed):
            return AlterPartitionResponse(error_code=outcome.code)
        if outcome.error:
            return AlterPartitionResponse(error_code=outcome.error)
        return alteration_response(outcome.results)

    return park_until_decided(ctx, ctx.controller.alter_isrs(alteration(request)), respond)
