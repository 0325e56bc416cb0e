"""ScanRelease (32011): ends a lease of files; one that has ended already is no error."""

from headrace.broker.api.context import RequestContext
from headrace.wire.messages.scan_release import ScanReleaseRequest, ScanReleaseResponse


def handle(request: ScanReleaseRequest, ctx: RequestContext) -> ScanReleaseResponse:
    """End the lease if it belongs to the client."""
    ctx.scans.release(request.lease_id, ctx.principal)
    return ScanReleaseResponse(throttle_time_ms=ctx.throttle_time_ms)
