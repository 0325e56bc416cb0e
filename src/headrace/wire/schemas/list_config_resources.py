"""ListConfigResources: resources that have configs of their own."""

from headrace.wire.schemas.notation import INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    74,
    "ListConfigResources",
    versions="0-1",
    flexible="0+",
    fields=[
        array("resource_types", INT8, "1+"),
    ],
)

RESPONSE = response(
    74,
    "ListConfigResources",
    versions="0-1",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        array(
            "config_resources",
            [
                field("resource_name", STRING),
                field("resource_type", INT8, "1+", default=16),
            ],
        ),
    ],
)
