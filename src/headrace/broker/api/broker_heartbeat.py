"""BrokerHeartbeat (63): extends the session of a peer, and unfences, fences or releases it as it asks for."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.peer_requests import is_sender, park_until_decided
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.cluster.registration_messages import heartbeat
from headrace.core.controller.commands import BrokerState
from headrace.model.errors import ErrorCode
from headrace.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


def handle(request: BrokerHeartbeatRequest, ctx: RequestContext) -> BrokerHeartbeatResponse | Parked:
    if not is_sender(ctx, request.broker_id):
        return BrokerHeartbeatResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def respond(outcome: BrokerState | ProposalFailed) -> BrokerHeartbeatResponse:
        if isinstance(outcome, ProposalFailed):
            return BrokerHeartbeatResponse(error_code=outcome.code)
        return BrokerHeartbeatResponse(
            error_code=outcome.error,
            is_caught_up=outcome.is_caught_up,
            is_fenced=outcome.is_fenced,
            should_shut_down=outcome.should_shut_down,
        )

    return park_until_decided(ctx, ctx.membership.heartbeat(heartbeat(request)), respond)
