"""CreateInvitation, a request of Headrace: an operator asks a node for a token with which another node may join."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, STRING, field, request, response

REQUEST = request(
    32026,
    "CreateInvitation",
    versions="0",
    flexible="0+",
    fields=[field("lifetime_ms", INT64)],
)

RESPONSE = response(
    32026,
    "CreateInvitation",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
        field("token", STRING),
        field("expiry_ms", INT64),
    ],
)
