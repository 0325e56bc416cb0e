"""DescribeClientQuotas: quotas that match a filter."""

from headrace.wire.schemas.notation import BOOL, FLOAT64, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    48,
    "DescribeClientQuotas",
    versions="0-1",
    flexible="1+",
    fields=[
        array(
            "components",
            [
                field("entity_type", STRING),
                field("match_type", INT8),
                field("match", STRING, nullable="0+"),
            ],
        ),
        field("strict", BOOL),
    ],
)

RESPONSE = response(
    48,
    "DescribeClientQuotas",
    versions="0-1",
    flexible="1+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+"),
        array(
            "entries",
            [
                array(
                    "entity",
                    [
                        field("entity_type", STRING),
                        field("entity_name", STRING, nullable="0+"),
                    ],
                ),
                array(
                    "values",
                    [
                        field("key", STRING),
                        field("value", FLOAT64),
                    ],
                ),
            ],
            nullable="0+",
        ),
    ],
)
