"""ReadIndex (32027): the active controller confirms that it still is, and names the offset that a read must see."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.core.raft.effects import Outcome, ReadAllowed
from headrace.model.errors import ErrorCode
from headrace.model.limits import FORWARD_WAIT_MS
from headrace.wire.messages.read_index import ReadIndexRequest, ReadIndexResponse


def handle(request: ReadIndexRequest, ctx: RequestContext) -> ReadIndexResponse | Parked:
    not_confirmed = ReadIndexResponse(error_code=ErrorCode.NOT_CONTROLLER)
    if not ctx.controller.is_active:
        return not_confirmed
    parked = ctx.park(timeout_ms=FORWARD_WAIT_MS, on_timeout=lambda: not_confirmed)

    def confirmed(outcome: Outcome) -> None:
        allowed = ReadIndexResponse(metadata_offset=outcome.index) if isinstance(outcome, ReadAllowed) else None
        parked.complete(allowed or not_confirmed)

    ctx.controller.quorum.read(confirmed)
    return parked
