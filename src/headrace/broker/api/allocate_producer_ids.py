"""AllocateProducerIds (67): the next block of producer ids for the clients of a peer."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.peer_requests import is_sender, park_until_decided
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.commands import ProducerIdBlock
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


def handle(request: AllocateProducerIdsRequest, ctx: RequestContext) -> AllocateProducerIdsResponse | Parked:
    if not is_sender(ctx, request.broker_id):
        return AllocateProducerIdsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    broker = ctx.image.brokers.get(NodeId(request.broker_id))
    if broker is None or broker.broker_epoch != request.broker_epoch:
        return AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)

    def respond(outcome: ProducerIdBlock | ProposalFailed) -> AllocateProducerIdsResponse:
        if isinstance(outcome, ProposalFailed):
            return AllocateProducerIdsResponse(error_code=outcome.code)
        return AllocateProducerIdsResponse(producer_id_start=outcome.first, producer_id_len=outcome.end - outcome.first)

    return park_until_decided(ctx, ctx.controller.allocate_producer_ids(broker.node_id), respond)
