"""UnregisterBroker: remove a broker that is gone for good."""

from headrace.wire.schemas.notation import INT16, INT32, STRING, field, request, response

REQUEST = request(64, "UnregisterBroker", versions="0", flexible="0+", fields=[field("broker_id", INT32)])

RESPONSE = response(
    64,
    "UnregisterBroker",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+"),
    ],
)
