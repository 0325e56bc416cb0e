"""ReportLogEnds (32035): a peer reports the log ends of replicas, of which none is known to have every record."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.peer_requests import is_sender
from headrace.core.controller.recoveries import REPORTED_PER_REQUEST_MAX, LogEnd
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId, TopicId
from headrace.wire.messages.report_log_ends import ReportLogEndsRequest, ReportLogEndsResponse


def handle(request: ReportLogEndsRequest, ctx: RequestContext) -> ReportLogEndsResponse:
    if not is_sender(ctx, request.broker_id):
        return ReportLogEndsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not ctx.controller.is_active:
        return ReportLogEndsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    if len(request.partitions) > REPORTED_PER_REQUEST_MAX:
        return ReportLogEndsResponse(error_code=ErrorCode.INVALID_REQUEST)
    ends = [
        LogEnd(TopicId(each.topic_id), each.partition_index, each.leader_epoch, each.end_offset)
        for each in request.partitions
    ]
    ctx.membership.log_ends(NodeId(request.broker_id), request.broker_epoch, ends)
    return ReportLogEndsResponse()
