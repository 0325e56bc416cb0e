"""ListGroups: the groups this broker coordinates."""

from headrace.wire.schemas.notation import INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    16,
    "ListGroups",
    versions="0-5",
    flexible="3+",
    fields=[
        array("states_filter", STRING, "4+"),
        array("types_filter", STRING, "5+"),
    ],
)

RESPONSE = response(
    16,
    "ListGroups",
    versions="0-5",
    flexible="3+",
    fields=[
        field("throttle_time_ms", INT32, "1+"),
        field("error_code", INT16),
        array(
            "groups",
            [
                field("group_id", STRING),
                field("protocol_type", STRING),
                field("group_state", STRING, "4+"),
                field("group_type", STRING, "5+"),
            ],
        ),
    ],
)
