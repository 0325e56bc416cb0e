"""IncrementalAlterConfigs: set, delete, append to or subtract from single configs."""

from headrace.wire.schemas.notation import BOOL, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    44,
    "IncrementalAlterConfigs",
    versions="0-1",
    flexible="1+",
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
                        field("config_operation", INT8),
                        field("value", STRING, nullable="0+"),
                    ],
                ),
            ],
        ),
        field("validate_only", BOOL),
    ],
)

RESPONSE = response(
    44,
    "IncrementalAlterConfigs",
    versions="0-1",
    flexible="1+",
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
