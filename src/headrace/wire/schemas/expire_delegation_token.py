"""ExpireDelegationToken: let a token expire sooner, or at once."""

from headrace.wire.schemas.notation import BYTES, INT16, INT32, INT64, field, request, response

REQUEST = request(
    40,
    "ExpireDelegationToken",
    versions="1-2",
    flexible="2+",
    fields=[
        field("hmac", BYTES),
        field("expiry_time_period_ms", INT64),
    ],
)

RESPONSE = response(
    40,
    "ExpireDelegationToken",
    versions="1-2",
    flexible="2+",
    fields=[
        field("error_code", INT16),
        field("expiry_timestamp_ms", INT64),
        field("throttle_time_ms", INT32),
    ],
)
