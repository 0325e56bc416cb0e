"""DescribeGroups: state, protocol and members of classic groups."""

from headrace.wire.schemas.notation import BOOL, BYTES, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    15,
    "DescribeGroups",
    versions="0-6",
    flexible="5+",
    fields=[
        array("groups", STRING),
        field("include_authorized_operations", BOOL, "3+"),
    ],
)

RESPONSE = response(
    15,
    "DescribeGroups",
    versions="0-6",
    flexible="5+",
    fields=[
        field("throttle_time_ms", INT32, "1+"),
        array(
            "groups",
            [
                field("error_code", INT16),
                field("error_message", STRING, "6+", nullable="0+", default=None),
                field("group_id", STRING),
                field("group_state", STRING),
                field("protocol_type", STRING),
                field("protocol_data", STRING),
                array(
                    "members",
                    [
                        field("member_id", STRING),
                        field("group_instance_id", STRING, "4+", nullable="0+", default=None),
                        field("client_id", STRING),
                        field("client_host", STRING),
                        field("member_metadata", BYTES),
                        field("member_assignment", BYTES),
                    ],
                ),
                field("authorized_operations", INT32, "3+", default=-2_147_483_648),
            ],
        ),
    ],
)
