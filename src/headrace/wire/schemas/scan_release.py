"""ScanRelease, Headrace's own: release the files of a lease."""

from headrace.wire.schemas.notation import INT16, INT32, STRING, UUID, field, request, response

REQUEST = request(
    32011,
    "ScanRelease",
    versions="0",
    flexible="0+",
    fields=[
        field("lease_id", UUID),
    ],
)

RESPONSE = response(
    32011,
    "ScanRelease",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
    ],
)
