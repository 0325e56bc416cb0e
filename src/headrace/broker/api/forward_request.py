"""ForwardRequest (32022): a client's request that another broker received and only the active controller can answer."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.forwarded_requests import CarriedRequest
from headrace.model.errors import ErrorCode
from headrace.wire.errors import ProtocolError
from headrace.wire.messages.forward_request import ForwardRequestRequest, ForwardRequestResponse


def handle(request: ForwardRequestRequest, ctx: RequestContext) -> ForwardRequestResponse | Parked:
    if not ctx.controller.is_active:
        return ForwardRequestResponse(
            error_code=ErrorCode.NOT_CONTROLLER, error_message=f"node {ctx.node_id} is not the active controller"
        )
    parked = ctx.park()

    def collected(frame: bytes | None) -> None:
        # The image is at least as new as the changes that the response reports: they are committed before it is given.
        parked.complete(
            ForwardRequestResponse(metadata_offset=ctx.image.version, frame=frame or b"")
            if frame
            else ForwardRequestResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        )

    carried = CarriedRequest(ctx.connection, request, now_ms=ctx.clock.monotonic_ms(), collected=collected)
    try:
        ctx.dispatch(carried.stand_in, request.frame)
    except ProtocolError as error:
        carried.end()
        parked.complete(ForwardRequestResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=str(error)))
    return parked
