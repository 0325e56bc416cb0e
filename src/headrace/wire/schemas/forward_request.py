"""ForwardRequest, a request of Headrace: a client's request that only the active controller can answer."""

from headrace.wire.schemas.notation import BOOL, BYTES, INT16, INT64, STRING, field, request, response

REQUEST = request(
    32022,
    "ForwardRequest",
    versions="0",
    flexible="0+",
    fields=[
        field("principal_type", STRING),
        field("principal_name", STRING),
        field("client_address", STRING),
        field("listener_name", STRING),
        field("frame", BYTES),
        field("by_token", BOOL, tag=0),
    ],
)

RESPONSE = response(
    32022,
    "ForwardRequest",
    versions="0",
    flexible="0+",
    fields=[
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
        field("metadata_offset", INT64, default=-1),
        field("frame", BYTES),
    ],
)
