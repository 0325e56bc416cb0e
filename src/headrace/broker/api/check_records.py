"""CheckRecords (32037): a follower asks this leader to read records again that it has refused."""

from headrace.broker.api.context import RequestContext
from headrace.model.errors import ErrorCode
from headrace.wire.messages.check_records import CheckRecordsRequest, CheckRecordsResponse


def handle(request: CheckRecordsRequest, ctx: RequestContext) -> CheckRecordsResponse:
    local = ctx.partitions.by_id.get(request.topic_id)
    if local is None:
        return CheckRecordsResponse(error_code=ErrorCode.UNKNOWN_TOPIC_ID)
    found = local.partition(request.partition_index, request.leader_epoch)
    if isinstance(found, ErrorCode):
        return CheckRecordsResponse(error_code=found)
    error = found.check_leader_epoch(request.leader_epoch)
    if not error:
        ctx.partition_admin.check_records(found, request.offset)
    return CheckRecordsResponse(error_code=error)
