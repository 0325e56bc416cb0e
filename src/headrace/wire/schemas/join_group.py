"""JoinGroup: a member asks to take part in the next generation of a group."""

from headrace.wire.schemas.notation import BOOL, BYTES, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    11,
    "JoinGroup",
    versions="0-9",
    flexible="6+",
    fields=[
        field("group_id", STRING),
        field("session_timeout_ms", INT32),
        field("rebalance_timeout_ms", INT32, "1+", default=-1),
        field("member_id", STRING),
        field("group_instance_id", STRING, "5+", nullable="0+", default=None),
        field("protocol_type", STRING),
        array(
            "protocols",
            [
                field("name", STRING),
                field("metadata", BYTES),
            ],
        ),
        field("reason", STRING, "8+", nullable="0+", default=None),
    ],
)

RESPONSE = response(
    11,
    "JoinGroup",
    versions="0-9",
    flexible="6+",
    fields=[
        field("throttle_time_ms", INT32, "2+"),
        field("error_code", INT16),
        field("generation_id", INT32, default=-1),
        field("protocol_type", STRING, "7+", nullable="0+", default=None),
        field("protocol_name", STRING, nullable="7+"),
        field("leader", STRING),
        field("skip_assignment", BOOL, "9+"),
        field("member_id", STRING),
        array(
            "members",
            [
                field("member_id", STRING),
                field("group_instance_id", STRING, "5+", nullable="0+", default=None),
                field("metadata", BYTES),
            ],
        ),
    ],
)
