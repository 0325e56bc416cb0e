"""AlterClientQuotas: set and remove quotas."""

from headrace.wire.schemas.notation import BOOL, FLOAT64, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    49,
    "AlterClientQuotas",
    versions="0-1",
    flexible="1+",
    fields=[
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
                    "ops",
                    [
                        field("key", STRING),
                        field("value", FLOAT64),
                        field("remove", BOOL),
                    ],
                ),
            ],
        ),
        field("validate_only", BOOL),
    ],
)

RESPONSE = response(
    49,
    "AlterClientQuotas",
    versions="0-1",
    flexible="1+",
    fields=[
        field("throttle_time_ms", INT32),
        array(
            "entries",
            [
                field("error_code", INT16),
                field("error_message", STRING, nullable="0+"),
                array(
                    "entity",
                    [
                        field("entity_type", STRING),
                        field("entity_name", STRING, nullable="0+"),
                    ],
                ),
            ],
        ),
    ],
)
