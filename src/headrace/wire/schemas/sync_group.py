"""SyncGroup: the group leader sends the assignment, and every member receives its own."""

from headrace.wire.schemas.notation import BYTES, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    14,
    "SyncGroup",
    versions="0-5",
    flexible="4+",
    fields=[
        field("group_id", STRING),
        field("generation_id", INT32),
        field("member_id", STRING),
        field("group_instance_id", STRING, "3+", nullable="0+", default=None),
        field("protocol_type", STRING, "5+", nullable="0+", default=None),
        field("protocol_name", STRING, "5+", nullable="0+", default=None),
        array(
            "assignments",
            [
                field("member_id", STRING),
                field("assignment", BYTES),
            ],
        ),
    ],
)

RESPONSE = response(
    14,
    "SyncGroup",
    versions="0-5",
    flexible="4+",
    fields=[
        field("throttle_time_ms", INT32, "1+"),
        field("error_code", INT16),
        field("protocol_type", STRING, "5+", nullable="0+", default=None),
        field("protocol_name", STRING, "5+", nullable="0+", default=None),
        field("assignment", BYTES),
    ],
)
