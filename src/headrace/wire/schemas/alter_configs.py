"""AlterConfigs: replace all configs of a resource."""

from headrace.wire.schemas.notation import BOOL, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    33,
    "AlterConfigs",
    versions="0-2",
    flexible="2+",
    fields=[
        array(
            "resources",
            [
                field("resource_type", INT8),
                field("resource_name", STRING),
                array(
                    "configs",
                    [
                        field("name", STRING),
                        field("value", STRING, nullable="0+"),
                    ],
                ),
            ],
        ),
        field("validate_only", BOOL),
    ],
)

RESPONSE = response(
    33,
    "AlterConfigs",
    versions="0-2",
    flexible="2+",
    fields=[
        field("throttle_time_ms", INT32),
        array(
            "responses",
            [
                field("error_code", INT16),
                field("error_message", STRING, nullable="0+"),
                field("resource_type", INT8),
                field("resource_name", STRING),
            ],
            named="Resource",
        ),
    ],
)
