"""LeaveGroup: members leave; from version 3 several in one request."""

from headrace.wire.schemas.notation import INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    13,
    "LeaveGroup",
    versions="0-5",
    flexible="4+",
    fields=[
        field("group_id", STRING),
        field("member_id", STRING, "0-2"),
        array(
            "members",
            [
                field("member_id", STRING),
                field("group_instance_id", STRING, nullable="0+", default=None),
                field("reason", STRING, "5+", nullable="0+", default=None),
            ],
            "3+",
        ),
    ],
)

RESPONSE = response(
    13,
    "LeaveGroup",
    versions="0-5",
    flexible="4+",
    fields=[
        field("throttle_time_ms", INT32, "1+"),
        field("error_code", INT16),
        array(
            "members",
            [
                field("member_id", STRING),
                field("group_instance_id", STRING, nullable="0+"),
                field("error_code", INT16),
            ],
            "3+",
        ),
    ],
)
