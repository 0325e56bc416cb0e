"""ReportBrokerGone (32025): a peer saw the link to a broker reset and the next connection refused."""

from headrace.broker.api.context import RequestContext
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.wire.messages.report_broker_gone import ReportBrokerGoneRequest, ReportBrokerGoneResponse


def handle(request: ReportBrokerGoneRequest, ctx: RequestContext) -> ReportBrokerGoneResponse:
    if not ctx.controller.is_active:
        return ReportBrokerGoneResponse(error_code=ErrorCode.NOT_CONTROLLER)
    ctx.membership.broker_gone(NodeId(request.broker_id), request.broker_epoch)
    return ReportBrokerGoneResponse()
