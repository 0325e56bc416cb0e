"""BrokerRegistration (62): a peer becomes a broker of the cluster; only the active controller registers it."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.peer_requests import is_sender, park_until_decided
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.cluster.registration_messages import new_broker
from headrace.core.controller.commands import BrokerRegistration
from headrace.model.errors import ErrorCode
from headrace.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


def handle(request: BrokerRegistrationRequest, ctx: RequestContext) -> BrokerRegistrationResponse | Parked:
    if not is_sender(ctx, request.broker_id):
        message = f"a node can register itself alone, not broker {request.broker_id}"
        return BrokerRegistrationResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=message)
    try:
        new = new_broker(request)
    except ValueError as wrong:
        return BrokerRegistrationResponse(error_code=ErrorCode.INVALID_REGISTRATION, error_message=str(wrong))

    def respond(outcome: BrokerRegistration | ProposalFailed) -> BrokerRegistrationResponse:
        if isinstance(outcome, ProposalFailed):
            return BrokerRegistrationResponse(error_code=outcome.code, error_message=outcome.message)
        return BrokerRegistrationResponse(
            error_code=outcome.error, error_message=outcome.message, broker_epoch=outcome.broker_epoch
        )

    return park_until_decided(ctx, ctx.membership.register(new), respond)
