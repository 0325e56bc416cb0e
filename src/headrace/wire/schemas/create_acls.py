"""CreateAcls: add access rules."""

from headrace.wire.schemas.notation import INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    30,
    "CreateAcls",
    versions="0-3",
    flexible="2+",
    fields=[
        array(
            "creations",
            [
                field("resource_type", INT8),
                field("resource_name", STRING),
                field("resource_pattern_type", INT8, "1+", default=3),
                field("principal", STRING),
                field("host", STRING),
                field("operation", INT8),
                field("permission_type", INT8),
            ],
        ),
    ],
)

RESPONSE = response(
    30,
    "CreateAcls",
    versions="0-3",
    flexible="2+",
    fields=[
        field("throttle_time_ms", INT32),
        array(
            "results",
            [
                field("error_code", INT16),
                field("error_message", STRING, nullable="0+"),
            ],
        ),
    ],
)
