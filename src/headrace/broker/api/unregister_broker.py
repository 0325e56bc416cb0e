"""UnregisterBroker (64): removes a broker that is gone for good."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import cluster_refusal
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.commands import BrokerResult
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(request: UnregisterBrokerRequest, ctx: RequestContext) -> UnregisterBrokerResponse | Parked:
    refusal = cluster_refusal(ctx, "brokers are unregistered")
    if refusal is not None:
        return UnregisterBrokerResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            error_message=refusal,
        )

    def respond(outcome: BrokerResult | ProposalFailed) -> UnregisterBrokerResponse:
        code = outcome.code if isinstance(outcome, ProposalFailed) else outcome.error
        return UnregisterBrokerResponse(
            throttle_time_ms=ctx.throttle_time_ms, error_code=code, error_message=outcome.message
        )

    return park_until_committed(ctx, ctx.membership.unregister(NodeId(request.broker_id)), respond)
