"""ScanRelease (32011): the files of a lease are not needed any more; one that is over already is no error."""

from headrace.broker.api.context import RequestContext
from headrace.wire.messages.scan_release import ScanReleaseRequest, ScanReleaseResponse


def handle(request: ScanReleaseRequest, ctx: RequestContext) -> ScanReleaseResponse:
    """Who knows the id of a lease is who got it: nobody else is told."""
    ctx.scans.release(request.lease_id)
    return ScanReleaseResponse(throttle_time_ms=ctx.throttle_time_ms)
