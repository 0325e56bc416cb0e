"""DeleteGroups: remove empty groups."""

from headrace.wire.schemas.notation import INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    42,
    "DeleteGroups",
    versions="0-2",
    flexible="2+",
    fields=[
        array("groups_names", STRING),
    ],
)

RESPONSE = response(
    42,
    "DeleteGroups",
    versions="0-2",
    flexible="2+",
    fields=[
        field("throttle_time_ms", INT32),
        array(
            "results",
            [
                field("group_id", STRING),
                field("error_code", INT16),
            ],
        ),
    ],
)
