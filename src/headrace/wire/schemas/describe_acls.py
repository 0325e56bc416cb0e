"""DescribeAcls: the access rules that match a filter."""

from headrace.wire.schemas.notation import INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    29,
    "DescribeAcls",
    versions="0-3",
    flexible="2+",
    fields=[
        field("resource_type_filter", INT8),
        field("resource_name_filter", STRING, nullable="0+"),
        field("pattern_type_filter", INT8, "1+", default=3),
        field("principal_filter", STRING, nullable="0+"),
        field("host_filter", STRING, nullable="0+"),
        field("operation", INT8),
        field("permission_type", INT8),
    ],
)

RESPONSE = response(
    29,
    "DescribeAcls",
    versions="0-3",
    flexible="2+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+"),
        array(
            "resources",
            [
                field("resource_type", INT8),
                field("resource_name", STRING),
                field("pattern_type", INT8, "1+", default=3),
                array(
                    "acls",
                    [
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
