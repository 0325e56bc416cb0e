"""DeleteAcls: remove the access rules that match filters."""

from headrace.wire.schemas.notation import INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    31,
    "DeleteAcls",
    versions="0-3",
    flexible="2+",
    fields=[
        array(
            "filters",
            [
                field("resource_type_filter", INT8),
                field("resource_name_filter", STRING, nullable="0+"),
                field("pattern_type_filter", INT8, "1+", default=3),
                field("principal_filter", STRING, nullable="0+"),
                field("host_filter", STRING, nullable="0+"),
                field("operation", INT8),
                field("permission_type", INT8),
            ],
        ),
    ],
)

RESPONSE = response(
    31,
    "DeleteAcls",
    versions="0-3",
    flexible="2+",
    fields=[
        field("throttle_time_ms", INT32),
        array(
            "filter_results",
            [
                field("error_code", INT16),
                field("error_message", STRING, nullable="0+"),
                array(
                    "matching_acls",
                    [
                        field("error_code", INT16),
                        field("error_message", STRING, nullable="0+"),
                        field("resource_type", INT8),
                        field("resource_name", STRING),
                        field("pattern_type", INT8, "1+", default=3),
                        field("principal", STRING),
                        field("host", STRING),
                        field("operation", INT8),
                        field("permission_type", INT8),
                    ],
                ),
            ],
        ),
    ],
)
