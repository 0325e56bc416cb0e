"""Heartbeat: a member of a classic group reports that it is alive."""

from headrace.wire.schemas.notation import INT16, INT32, STRING, field, request, response

REQUEST = request(
    12,
    "Heartbeat",
    versions="0-4",
    flexible="4+",
    fields=[
        field("group_id", STRING),
        field("generation_id", INT32),
        field("member_id", STRING),
        field("group_instance_id", STRING, "3+", nullable="0+", default=None),
    ],
)

RESPONSE = response(
    12,
    "Heartbeat",
    versions="0-4",
    flexible="4+",
    fields=[
        field("throttle_time_ms", INT32, "1+"),
        field("error_code", INT16),
    ],
)
