"""ForwardRequest (32022): a client's request that another broker received and only the active controller can answer."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.forwarded_requests import CarriedRequest
from headrace.broker.api.response_writer import has_error
from headrace.model.errors import ErrorCode
from headrace.wire.apis import codec
from headrace.wire.errors import ProtocolError
from headrace.wire.frames import SIZE_BYTES, read_request_header, read_response_header
from headrace.wire.messages.forward_request import ForwardRequestRequest, ForwardRequestResponse


def handle(request: ForwardRequestRequest, ctx: RequestContext) -> ForwardRequestResponse | Parked:
    if not ctx.controller.is_active:
        return ForwardRequestResponse(
            error_code=ErrorCode.NOT_CONTROLLER, error_message=f"node {ctx.node_id} is not the active controller"
        )
    parked = ctx.park()
    term = ctx.controller.term

    def collected(frame: bytes | None) -> None:
        has_moved = ctx.controller.term != term or not ctx.controller.is_active
        if frame and has_moved and _has_code(request.frame, frame, ErrorCode.NOT_CONTROLLER):
            # The controller has moved meanwhile: the broker finds it, so that its client need not.
            parked.complete(ForwardRequestResponse(error_code=ErrorCode.NOT_CONTROLLER))
            return
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


def _has_code(request_frame: bytes, response_frame: bytes, code: ErrorCode) -> bool:
    """Return whether the response to a carried request has this error code in any part."""
    header = read_request_header(request_frame, 0, len(request_frame))
    key, version = header.api_key, header.api_version
    content = memoryview(response_frame)[SIZE_BYTES:]
    _number, position = read_response_header(content, 0, len(content), api_key=key, api_version=version)
    return has_error(codec(key).decode_response(content, position, len(content), version), code)
